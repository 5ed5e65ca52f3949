"""The SDK inside real frameworks; needs torch, transformers, lightning and accelerate, so it is not found by plain discovery."""
from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, List, Optional

from .world import PACKAGE, WorldWithAgent

EXAMPLES = os.path.join(os.path.dirname(PACKAGE), "examples")


class Frameworks(WorldWithAgent):
    def example(self, name: str, *arguments: str) -> str:
        env = dict(self.environment(self.agent.url), HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1")
        done = subprocess.run(
            [sys.executable, os.path.join(EXAMPLES, name)] + list(arguments),
            env=env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=300,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def logged(self) -> List[Dict[str, Any]]:
        self.agent.end()
        return sorted(self.agent.logged(), key=lambda line: line["step"])

    def run_of(self, framework: str) -> Dict[str, Any]:
        (found,) = [run for run in self.agent.get("/api/v1/runs")["runs"] if run["framework"] == framework]
        run: Dict[str, Any] = self.agent.get("/api/v1/runs/" + found["id"])
        self.assertEqual(run["outcome"], "success")
        return run

    def test_plain_pytorch(self) -> None:
        self.example("plain_pytorch.py", "--steps", "120")
        self.run_of("pytorch")
        lines = self.logged()
        self.assertEqual([line["step"] for line in lines], list(range(120)))
        self.assertLess(lines[-1]["loss"], lines[0]["loss"])
        self.assertTrue(all(line["gradient_norm"] > 0 for line in lines))

    def test_transformers_fine_tune(self) -> None:
        self.example("qlora_finetune_monitored.py", "--max-steps", "40", "--output-dir", "results", "--monitoring-log-dir", "logs", "--gpu-index", "0", "--enable-prometheus", "--prometheus-port", "9090")
        self.assertEqual(self.run_of("transformers")["totalSteps"], 40)
        lines = self.logged()
        self.assertEqual([line["step"] for line in lines], list(range(1, 41)))
        with_loss = [line for line in lines if line.get("loss") is not None]
        self.assertEqual([line["step"] for line in with_loss], list(range(5, 41, 5)))
        self.assertTrue(all(line["learning_rate"] > 0 for line in lines[:-1]))
        self.assertTrue(all(line["gradient_norm"] > 0 for line in with_loss))
        self.assertLess(with_loss[-1]["loss"], with_loss[0]["loss"])
        self.assertTrue(os.path.exists(os.path.join(self.folder, "results", "adapters.pt")))
        with open(os.path.join(self.folder, "results", "summary.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["sent"]["delivered"], 40)

    def test_lightning_with_loader_workers(self) -> None:
        self.example("lightning_example.py", "--epochs", "2", "--samples", "1024")
        run = self.run_of("lightning")
        self.assertIn("train_mse", run["training"]["custom"])
        self.assertEqual(run["totalSteps"], 32)
        lines = self.logged()
        self.assertEqual([line["step"] for line in lines], list(range(1, 33)))
        self.assertTrue(all(line["loss"] > 0 for line in lines))

    def test_lightning_says_how_it_failed(self) -> None:
        done = self.run_script(
            """
            import torch, lightning.pytorch as pl
            from gpuwarden.lightning import GPUWardenCallback
            class Fails(pl.LightningModule):
                def __init__(self):
                    super().__init__()
                    self.layer = torch.nn.Linear(2, 1)
                def training_step(self, batch, index):
                    if index == 3: raise ValueError("the fourth batch is bad")
                    return self.layer(batch[0]).sum()
                def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
            data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(16, 2)), batch_size=2)
            pl.Trainer(max_epochs=1, callbacks=[GPUWardenCallback()], logger=False, enable_checkpointing=False, enable_progress_bar=False).fit(Fails(), data)
            """,
            self.agent.url,
            timeout=200,
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        (run,) = self.agent.get("/api/v1/runs")["runs"]
        self.assertEqual(run["outcome"], "failed")
        self.assertIn("the fourth batch is bad", run["message"])

    def test_accelerate_tracker(self) -> None:
        done = self.run_script(
            """
            from accelerate import Accelerator
            from gpuwarden.accelerate import GPUWardenTracker
            accelerator = Accelerator(cpu=True, log_with=GPUWardenTracker("accelerated"))
            accelerator.init_trackers("accelerated", config={"lr": 0.1})
            for step in range(10):
                accelerator.log({"train_loss": 1.0 / (step + 1), "learning_rate": 0.1, "accuracy": 0.5, "loss": 3.0}, step=step)
            accelerator.end_training()
            """,
            self.agent.url,
            timeout=200,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_of("accelerate")["name"], "accelerated")
        lines = self.logged()
        self.assertEqual([line["step"] for line in lines], list(range(10)))
        self.assertEqual((lines[1]["loss"], lines[1]["learning_rate"]), (0.5, 0.1))


TRANSFORMERS = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): tokens = torch.randint(0, 100, (32,)); return {"input_ids": tokens, "labels": tokens}
model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=1, n_head=2))
arguments = TrainingArguments("out", max_steps=12, per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=5,
    eval_strategy="steps", eval_steps=6, save_steps=6, report_to=[], use_cpu=True, disable_tqdm=True)
trainer = Trainer(model, arguments, train_dataset=Data(), eval_dataset=Data(), callbacks=%s)
trainer.train()
assert sum(type(callback).__name__ == "GPUMonitoringCallback" for callback in trainer.callback_handler.callbacks) == 1
"""
LIGHTNING = """
import torch, lightning.pytorch as pl
class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, index): return self.layer(batch[0]).pow(2).mean()
    def validation_step(self, batch, index): self.layer(batch[0])
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
def loader(): return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(48, 8)), batch_size=4)
trainer = pl.Trainer(max_epochs=2, accelerator="cpu", gradient_clip_val=0.5, logger=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Model(), loader(), loader())
assert type(trainer.callbacks[-1]).__name__ == "ModelCheckpoint"
"""
ACCELERATE = """
import torch
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(48, 8)), batch_size=4)
model = torch.nn.Linear(8, 1)
model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
for (x,) in data:
    with accelerator.accumulate(model):
        accelerator.backward(model(x).pow(2).mean())
        if accelerator.sync_gradients: accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.log({"accuracy": 0.5})
"""
TRL = """
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer
words = Tokenizer(models.WordLevel({"<pad>": 0, "<unk>": 1, "<eos>": 2, "a": 3, "b": 4, "c": 5}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>")
model = GPT2LMHeadModel(GPT2Config(vocab_size=6, n_positions=64, n_embd=32, n_layer=1, n_head=2))
arguments = SFTConfig("out", max_steps=10, per_device_train_batch_size=2, gradient_accumulation_steps=1, logging_steps=2, report_to=[], use_cpu=True,
    disable_tqdm=True, max_length=32, bf16=False, gradient_checkpointing=False, save_strategy="no", learning_rate=0.001)
SFTTrainer(model, args=arguments, train_dataset=Dataset.from_dict({"text": ["a b c a b c"] * 40}), processing_class=tokenizer).train()
"""
FSDP = """
import torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 1))
mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
for layer in model: fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(12 * 8, 64)), batch_size=8):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
dist.destroy_process_group()
"""
PLAIN = """
import torch
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(40, 8)), batch_size=4):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
"""
COMPILED = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
moved = torch.compile(lambda x: x.to(torch.float32).to("cpu") * 2, backend="aot_eager", fullgraph=True)
clip = torch.compile(lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0), backend="aot_eager", fullgraph=True)
for _ in range(8):
    optimizer.zero_grad()
    compiled(moved(torch.randn(4, 8))).pow(2).mean().backward()
    clip()
    optimizer.step()
"""
CONVOLUTION = """
import time, torch
torch.manual_seed(0)
parts = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(128, 10)]
model = torch.nn.Sequential(*parts)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(24 * 16, 3, 32, 32), torch.zeros(24 * 16).long()), batch_size=16):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    time.sleep(0.3)
"""
WORKERS = """
import sys, torch
def main():
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(80, 8))
    for (x,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="%s"):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
if __name__ == "__main__": main()
"""
RANKS = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(60 * 8, 64)), batch_size=8):
    time.sleep(0.07 if dist.get_rank() == 1 else 0.02)
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""


class Unchanged(WorldWithAgent):
    """Programs without a line of ours, as `gpuwarden run` starts them."""

    def train(self, code: str, *launcher: str, program: Optional[List[str]] = None) -> List[Dict[str, Any]]:
        """`program`: the whole command; by default this Python with `launcher` and the script."""
        path = os.path.join(self.folder, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        startup = os.path.join(PACKAGE, "gpuwarden", "startup")
        more = {"PYTHONPATH": startup, "GPUWARDEN_RUN_ID": "unchanged", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        command = program or [sys.executable] + list(launcher) + [path]
        env = self.environment(self.agent.url, **more)
        done = subprocess.run(command, env=env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.run_record: Dict[str, Any] = self.agent.get("/api/v1/runs/unchanged")
        self.agent.end()
        return sorted(self.agent.logged(), key=lambda line: (line["rank"], line["step"]))

    def assert_whole(self, lines: List[Dict[str, Any]], steps: int, framework: str, *phases: str) -> None:
        self.assertEqual([line["step"] for line in lines], list(range(1, steps + 1)))
        self.assertEqual(self.run_record["framework"], framework)
        for line in lines:
            self.assertTrue(line["loss"] is not None and line["learning_rate"] > 0 and line["throughput_samples_per_sec"] > 0, line)
        seen = {name for line in lines for name in line["phase_seconds"]}
        self.assertLessEqual({"data", "forward", "backward", "optimizer", *phases}, seen)
        for line in lines[1:]:
            self.assertLessEqual(sum(line["phase_seconds"].values()), line["step_duration_seconds"] * 1.001)

    def test_transformers(self) -> None:
        lines = self.train(TRANSFORMERS % "None")
        self.assert_whole(lines, 12, "transformers", "evaluation", "checkpoint", "logging")
        self.assertTrue(all(line["gradient_norm"] > 0 for line in lines))
        self.assertGreater(lines[-1]["custom"]["tokens_per_second"], 0)

    def test_transformers_where_the_user_has_the_callback(self) -> None:
        own = '[__import__("gpuwarden.transformers").transformers.GPUMonitoringCallback()]'
        self.assert_whole(self.train(TRANSFORMERS % own), 12, "transformers", "evaluation")

    def test_transformers_by_the_older_names(self) -> None:
        older = """
import gpuwarden.compat
from monitoring.gpu_monitor import GPUMonitor
from training.qlora_finetune_monitored import GPUMonitoringCallback
gpu_monitor = GPUMonitor(gpu_index=0)
monitoring_callback = GPUMonitoringCallback(gpu_monitor, log_interval=10)
"""
        self.assert_whole(self.train(older + TRANSFORMERS % "[monitoring_callback]"), 12, "transformers", "evaluation")
        kept = self.run_record["hyperparameters"]
        self.assertEqual((kept["max_steps"], kept["per_device_train_batch_size"], kept["model.hidden_size"]), (12, 4, 32))

    def test_lightning(self) -> None:
        lines = self.train(LIGHTNING)
        self.assert_whole(lines, 24, "lightning", "evaluation", "checkpoint")
        self.assertTrue(all(line["gradient_norm"] > 0 for line in lines))

    def test_what_a_model_needs_is_counted(self) -> None:
        self.train(CONVOLUTION)
        model = self.run_record["model"]
        # Forward: 2 · 8 · 3 · 9 per pixel and 2 · 128 · 10; twice that for the backward.
        self.assertEqual(model["flopsPerSample"], 3 * (2 * 8 * 27 * 32 * 32 + 2 * 128 * 10))
        self.assertEqual((model["parameters"], model["computeType"]), (1514, "float32"))
        time = self.run_record["training"]["time"]
        self.assertAlmostEqual(sum(part or 0 for part in time["seconds"].values()), time["wallSeconds"], 3)
        self.assertGreater(time["seconds"]["productive"], 0)
        self.assertEqual(self.run_record["training"]["samples"], 24 * 16)
        self.assertEqual([(place["rank"], place["gpu"]) for place in self.run_record["places"]], [(0, None)])

    def test_accelerate(self) -> None:
        lines = self.train(ACCELERATE)
        self.assert_whole(lines, 6, "accelerate", "logging")
        self.assertEqual(lines[-1]["custom"]["accuracy"], 0.5)

    def test_trl(self) -> None:
        if importlib.util.find_spec("trl") is None:
            self.skipTest("TRL is not installed")
        lines = self.train(TRL)
        self.assert_whole(lines, 10, "transformers")
        self.assertEqual(self.run_record["hyperparameters"]["learning_rate"], 0.001)

    def test_fully_sharded_ranks(self) -> None:
        lines = self.train(FSDP, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        self.assertEqual([(line["rank"], line["step"]) for line in lines], [(rank, step) for rank in (0, 1) for step in range(1, 13)])
        self.assertTrue(all(line["loss"] > 0 and line["gradient_norm"] > 0 and "backward" in line["phase_seconds"] for line in lines))

    def test_a_module(self) -> None:
        self.assert_whole(self.train(PLAIN, program=[sys.executable, "-m", "train"]), 10, "pytorch")

    def launched(self, name: str, *arguments: str) -> None:
        program = shutil.which(name, path=os.path.dirname(sys.executable))
        if program is None:
            self.skipTest("%s is not installed" % name)
        self.assert_whole(self.train(PLAIN, program=[program] + list(arguments)), 10, "pytorch")

    def test_torchrun(self) -> None:
        self.launched("torchrun", "--standalone", "--nproc-per-node", "1", "train.py")

    def test_accelerate_launch(self) -> None:
        self.launched("accelerate", "launch", "--cpu", "--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "train.py")

    def test_uv_run(self) -> None:
        self.launched("uv", "run", "--no-project", "--offline", "--python", sys.executable, "train.py")

    def test_deepspeed(self) -> None:
        self.launched("deepspeed", "--no_local_rank", "--num_gpus", "1", "train.py")

    def test_compiled_whole(self) -> None:
        self.assertEqual(len(self.train(COMPILED)), 8)

    def test_workers(self) -> None:
        self.assert_whole(self.train(WORKERS % "fork"), 10, "pytorch")

    def test_workers_that_are_started_anew(self) -> None:
        self.assert_whole(self.train(WORKERS % "spawn"), 10, "pytorch")

    def test_ranks_of_which_one_is_slow(self) -> None:
        lines = self.train(RANKS, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
        self.assertEqual(len(lines), 120)
        findings = [line for line in self.found() if line.get("detector") == "straggler"]
        self.assertEqual({finding["rank"] for finding in findings}, {1})

    def found(self) -> List[Dict[str, Any]]:
        lines: List[Dict[str, Any]] = []
        for folder, _, names in os.walk(self.agent.log_dir):
            for name in names:
                if name.endswith(".jsonl") and "finding" in name:
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        lines.extend(json.loads(line) for line in file)
        return lines

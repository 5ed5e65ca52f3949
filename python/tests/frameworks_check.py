"""The SDK inside real frameworks; needs torch, transformers, lightning and accelerate, so it is not found by plain discovery."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List

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
        self.example("qlora_finetune_monitored.py", "--max-steps", "40", "--output-dir", "results", "--monitoring-log-dir", "logs", "--gpu-index", "0")
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

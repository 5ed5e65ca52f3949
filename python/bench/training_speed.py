"""What watching takes of a framework's training: PYTHONPATH=python python python/bench/training_speed.py --framework transformers|lightning

The same fine-tune of a GPT-2 in turns, without gpuwarden at all and with the callback and an agent that is started for it.
Needs torch and the framework; `--agent` says how the agent is started.
"""
from __future__ import annotations

import argparse
import os
import random
import shlex
import statistics
import subprocess
import tempfile
import time
import urllib.request
from typing import Any, Callable, Dict, List, Optional

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

SKIPPED_STEPS = 10
SIZES = {"tiny": dict(n_layer=2, n_head=2, n_embd=64), "gpt2": dict(n_layer=12, n_head=12, n_embd=768)}
SCRATCH = tempfile.mkdtemp(prefix="gpuwarden-bench-")


class Tokens(Dataset):  # type: ignore[type-arg,unused-ignore]
    def __init__(self, length: int) -> None:
        self.data = torch.randint(0, 1000, (256, length))

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Dict[str, Any]:
        row = self.data[index % len(self.data)]
        return {"input_ids": row, "labels": row}


class Clock:
    """Steps a second after the first few; the GPU is waited for at both ends only."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.done = 0
        self.began = self.ended = 0.0

    def step(self) -> None:
        self.done += 1
        if self.done in (SKIPPED_STEPS, self.steps):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.began, self.ended = self.ended or time.perf_counter(), time.perf_counter()

    def speed(self) -> float:
        return (self.steps - SKIPPED_STEPS) / (self.ended - self.began)


class Agent:
    def __init__(self, command: str, port: int) -> None:
        self.url = "http://127.0.0.1:%d" % port
        logs = os.path.join(SCRATCH, "logs")
        arguments = ["monitor", "--port", str(port), "--log-dir", logs, "--quiet"]
        self.child = subprocess.Popen(shlex.split(command) + arguments, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            try:
                urllib.request.urlopen(self.url + "/readyz", timeout=2).close()
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("no agent answers at %s: was it started by `%s`?" % (self.url, command))

    def end(self) -> None:
        self.child.terminate()
        self.child.wait(20)


def train_transformers(model: Any, data: Tokens, batch: int, clock: Clock, watch: bool) -> Any:
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Ticks(TrainerCallback):  # type: ignore[misc,unused-ignore]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.step()

    callbacks: List[Any] = [Ticks()]
    if watch:
        from gpuwarden.transformers import GPUMonitoringCallback

        callbacks.append(timed(GPUMonitoringCallback(run_name="speed")))
    options = TrainingArguments(
        output_dir=SCRATCH,
        max_steps=clock.steps,
        per_device_train_batch_size=batch,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        bf16=torch.cuda.is_available(),
    )
    Trainer(model=model, args=options, train_dataset=data, callbacks=callbacks).train()
    return callbacks[-1] if watch else None


def train_lightning(model: Any, data: Tokens, batch: int, clock: Clock, watch: bool) -> Any:
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl  # type: ignore[no-redef,import-not-found,unused-ignore]

    class Module(pl.LightningModule):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, rows: Any, index: int) -> Any:
            loss = self.model(**rows).loss
            self.log("train_loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    class Ticks(pl.Callback):  # type: ignore[misc,name-defined,unused-ignore]
        def on_train_batch_end(self, *_: Any, **__: Any) -> None:
            clock.step()

    callbacks: List[Any] = [Ticks()]
    if watch:
        from gpuwarden.lightning import GPUWardenCallback

        callbacks.append(timed(GPUWardenCallback(run_name="speed")))
    trainer = pl.Trainer(
        max_steps=clock.steps,
        callbacks=callbacks,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        precision="bf16-mixed" if torch.cuda.is_available() else "32-true",
        default_root_dir=SCRATCH,
    )
    trainer.fit(Module(), DataLoader(data, batch_size=batch, num_workers=0))
    return callbacks[-1] if watch else None


STEP_COSTS: List[int] = []


def timed(callback: Any) -> Any:
    """All that the callback does in a step, on the thread that trains: several calls, added up at the end of the step."""
    spent = [0]

    def wrap(name: str, last: bool) -> None:
        inner: Optional[Callable[..., Any]] = getattr(callback, name, None)
        if inner is None:
            return

        def measured(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter_ns()
            answer = inner(*arguments, **named)
            spent[0] += time.perf_counter_ns() - began
            if last:
                STEP_COSTS.append(spent[0])
                spent[0] = 0
            return answer

        setattr(callback, name, measured)

    for name in ("on_step_begin", "on_pre_optimizer_step", "on_optimizer_step", "on_log", "on_train_batch_start", "on_before_backward", "on_after_backward"):
        wrap(name, False)
    for name in ("on_step_end", "on_train_batch_end"):
        wrap(name, True)
    return callback


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=["transformers", "lightning"], default="transformers")
    parser.add_argument("--agent", default="gpuwarden", help="the command that starts the agent (default: gpuwarden)")
    parser.add_argument("--port", type=int, default=4797)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=100, help="of each kind in a round")
    parser.add_argument("--model", choices=sorted(SIZES), default="gpt2" if torch.cuda.is_available() else "tiny")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--sequence-length", type=int, default=512 if torch.cuda.is_available() else 32)
    arguments = parser.parse_args()
    os.environ.update(GPUWARDEN_NO_START="1", GPUWARDEN_SPOOL=os.path.join(SCRATCH, "spool"), GPUWARDEN_URL="http://127.0.0.1:%d" % arguments.port)
    train = train_transformers if arguments.framework == "transformers" else train_lightning
    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=1024, **SIZES[arguments.model]))
    data = Tokens(arguments.sequence_length)
    speeds: Dict[bool, List[float]] = {False: [], True: []}
    train(model, data, arguments.batch_size, Clock(SKIPPED_STEPS + 20), False)
    for number in range(arguments.rounds):
        for watch in random.sample([False, True], 2):
            agent = Agent(arguments.agent, arguments.port) if watch else None
            clock = Clock(arguments.steps)
            callback = train(model, data, arguments.batch_size, clock, watch)
            speeds[watch].append(clock.speed())
            if agent is not None:
                agent.end()
                sent = callback.run.statistics()
                if sent["delivered"] != arguments.steps:
                    raise SystemExit("not every step was delivered: %s" % sent)
    for watch, values in speeds.items():
        print("%-8s %.2f steps/s in the middle (%.2f to %.2f)" % ("with" if watch else "without", statistics.median(values), min(values), max(values)))
    ratios = sorted(one / other for one, other in zip(speeds[True], speeds[False]))
    print("with / without, round by round: median %.4f (%.4f to %.4f)" % (statistics.median(ratios), ratios[0], ratios[-1]))
    STEP_COSTS.sort()
    print(
        "callback, all of a step: median %.1f us, p99 %.1f us over %d steps"
        % (statistics.median(STEP_COSTS) / 1000, STEP_COSTS[len(STEP_COSTS) * 99 // 100] / 1000, len(STEP_COSTS))
    )
    print("%s on %s" % (arguments.framework, torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU"))


if __name__ == "__main__":
    main()

"""What following an unchanged loop costs per step, beside a bare loop and other tools, in turns within one run.

    python3 python/bench/hook_cost.py [--device cuda] [--steps 3000] [--rounds 5] [--variants bare,gpuwarden,wandb,traceml]

Each turn is a process of its own. `gpuwarden` is what `gpuwarden run` does, with the agent at `--url` (default: nobody answers, and
steps go to a spool file). wandb logs the loss, offline; traceml follows by `traceml run` and `traceml.init(mode="auto")`. One that is not installed is left out.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Dict, List

STARTUP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpuwarden", "startup")


def train(variant: str, device: str, steps: int, width: int) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    run = None
    traced = None
    if variant == "wandb":
        import wandb

        run = wandb.init(mode="offline", project="bench", dir=tempfile.mkdtemp(), settings=wandb.Settings(silent=True))
    elif variant == "traceml":
        import traceml_ai as traceml

        traceml.init(mode="auto")
        traced = traceml.trace_step
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(torch.randn(1024, 64), torch.randn(1024, 1)), batch_size=32)
    costs: List[float] = []

    def one(x: "torch.Tensor", y: "torch.Tensor") -> "torch.Tensor":
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    at = time.perf_counter()
    while len(costs) < steps:
        for x, y in loader:
            if traced is not None:
                with traced(model):
                    loss = one(x, y)
            else:
                loss = one(x, y)
            if run is not None:
                run.log({"loss": float(loss.detach())} if device == "cpu" else {"steps": len(costs)})
            now = time.perf_counter()
            costs.append(now - at)
            at = now
    print(json.dumps({"median_us": statistics.median(costs[len(costs) // 5 :]) * 1e6}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--url", default="http://127.0.0.1:9")
    parser.add_argument("--variants", default="bare,gpuwarden,wandb,traceml")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train, arguments.device, arguments.steps, arguments.width)
        return
    medians: Dict[str, List[float]] = {}
    skipped: Dict[str, str] = {}
    for _ in range(arguments.rounds):
        for variant in arguments.variants.split(","):
            env = dict(os.environ, GPUWARDEN_URL=arguments.url, GPUWARDEN_SPOOL=tempfile.mkdtemp(prefix="gpuwarden-bench-"), OMP_NUM_THREADS="1")
            if variant == "gpuwarden":
                env["PYTHONPATH"] = STARTUP
            command = [sys.executable, os.path.abspath(__file__)]
            if variant == "traceml":
                # Without its launcher it does not trace.
                program = os.path.join(os.path.dirname(sys.executable), "traceml")
                command = [program, "run", os.path.abspath(__file__), "--logs-dir", tempfile.mkdtemp(prefix="traceml-"), "--args"]
            command += ["--train", variant, "--device", arguments.device, "--steps", str(arguments.steps), "--width", str(arguments.width)]
            try:
                done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
            except OSError as error:
                skipped[variant] = str(error)
                continue
            lines = [line for line in done.stdout.splitlines() if '{"median_us"' in line]
            if done.returncode != 0 or not lines:
                skipped[variant] = (done.stderr.strip().splitlines() or ["no result"])[-1]
                continue
            medians.setdefault(variant, []).append(json.loads(lines[0][lines[0].index("{") :])["median_us"])
    bare = medians["bare"]
    for variant, values in medians.items():
        more = [value - base for value, base in zip(values, bare)]
        print(
            "%-10s median step %7.1f us, more than bare: median %+6.1f us (%s)"
            % (variant, statistics.median(values), statistics.median(more), ", ".join("%+.0f" % one for one in more))
        )
    for variant, reason in skipped.items():
        print("%-10s left out: %s" % (variant, reason))


if __name__ == "__main__":
    main()

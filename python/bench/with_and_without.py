"""What the SDK takes of a training's speed: PYTHONPATH=python python python/bench/with_and_without.py [--url URL]. Needs torch.

The same loop in short stretches, in turn without the SDK and with it, so that whatever else the machine does weighs on both.
"""
from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from typing import Any, Callable, Dict, List

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:4780", help="the agent")
    parser.add_argument("--stretches", type=int, default=40, help="of each kind")
    parser.add_argument("--steps", type=int, default=100, help="in a stretch")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch, on the CPU")
    arguments = parser.parse_args()
    os.environ["GPUWARDEN_URL"] = arguments.url
    os.environ.setdefault("GPUWARDEN_SPOOL", tempfile.mkdtemp(prefix="gpuwarden-bench-"))
    import gpuwarden

    torch.set_num_threads(arguments.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    width = arguments.width
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randn(width, width, device=device)

    def stretch(tell: Callable[..., Any]) -> float:
        began = time.perf_counter()
        for step in range(arguments.steps):
            loss = model(inputs).square().mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            tell(loss=loss, lr=1e-3)
        if device == "cuda":
            torch.cuda.synchronize()
        return arguments.steps / (time.perf_counter() - began)

    def nothing(**_: Any) -> None:
        pass

    costs: List[int] = []

    with gpuwarden.run("with and without") as run:

        def log(**values: Any) -> None:
            began = time.perf_counter_ns()
            run.log(**values)
            costs.append(time.perf_counter_ns() - began)

        kinds: Dict[str, Callable[..., Any]] = {"without": nothing, "with": log}
        speeds: Dict[str, List[float]] = {name: [] for name in kinds}
        for tell in kinds.values():
            stretch(tell)
        for _ in range(arguments.stretches):
            for name in random.sample(sorted(kinds), len(kinds)):
                speeds[name].append(stretch(kinds[name]))
    for name, values in speeds.items():
        low, middle, high = statistics.quantiles(values, n=4)
        print("%-8s %.0f steps/s (middle half %.0f to %.0f)" % (name, middle, low, high))
    ratios = [one / other for one, other in zip(speeds["with"], speeds["without"])]
    print("with / without, pair by pair: median %.4f (middle half %.4f to %.4f)" % (statistics.median(ratios), *statistics.quantiles(ratios, n=4)[::2]))
    costs.sort()
    print("log(): median %.1f us, p99 %.1f us over %d steps" % (costs[len(costs) // 2] / 1000, costs[len(costs) * 99 // 100] / 1000, len(costs)))
    print("on %s; sent: %s" % (device, run.statistics()))


if __name__ == "__main__":
    main()

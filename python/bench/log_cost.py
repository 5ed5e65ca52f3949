"""What `run.log` costs the training thread: PYTHONPATH=python python3 python/bench/log_cost.py [--url URL] [--torch]

Steps come at the pace of `--steps-per-second`, as in training, with the sender's thread at work meanwhile.
Without `--url` nobody answers and steps go to a spool file in a folder of their own.
"""
from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from typing import List


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="the agent; nobody answers when not given")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--steps-per-second", type=float, default=2000.0)
    parser.add_argument("--torch", action="store_true", help="with CUDA in use: allocator figures and a loss that lies on the GPU")
    arguments = parser.parse_args()
    os.environ["GPUWARDEN_URL"] = arguments.url or "http://127.0.0.1:9"
    os.environ.setdefault("GPUWARDEN_SPOOL", tempfile.mkdtemp(prefix="gpuwarden-bench-"))
    import gpuwarden

    loss: object = 0.5
    if arguments.torch:
        import torch

        loss = torch.full((), 0.5, device="cuda")
    costs: List[int] = []
    with gpuwarden.run("log cost") as run:
        next_at = time.perf_counter()
        for step in range(arguments.steps):
            began = time.perf_counter_ns()
            run.log(step=step, epoch=0.1, loss=loss, lr=1e-4, grad_norm=0.9, throughput=512.0, tokens=4096)
            costs.append(time.perf_counter_ns() - began)
            next_at += 1 / arguments.steps_per_second
            time.sleep(max(0.0, next_at - time.perf_counter()))
    costs.sort()
    percentile = lambda share: costs[min(len(costs) - 1, int(len(costs) * share))] / 1000  # noqa: E731
    print(
        "log(): median %.1f us, mean %.1f us, p99 %.1f us, p99.9 %.1f us, worst %.0f us over %d steps"
        % (percentile(0.5), statistics.mean(costs) / 1000, percentile(0.99), percentile(0.999), costs[-1] / 1000, len(costs))
    )
    print(run.statistics())


if __name__ == "__main__":
    main()

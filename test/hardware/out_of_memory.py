"""Runs a real GPU out of memory in a training that gpuwarden watches: python test/hardware/out_of_memory.py leak|fragmentation|others

    gpuwarden run --report oom.html -- python test/hardware/out_of_memory.py leak

leak           every step keeps its activations, as a list of losses with their graphs does; ends at `--seconds` or so
fragmentation  free memory lies in pieces between tensors that stay
others         another process has most of the card
"""
from __future__ import annotations

import argparse
import subprocess
import sys
import time

import torch
from torch import nn

import gpuwarden

GIB = 1 << 30


def leak(run: gpuwarden.Run, seconds: float) -> None:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)]).cuda()
    free = torch.cuda.mem_get_info()[0]
    # 17 activations of batch × 1024 floats stay with every step.
    pace = 0.2
    batch = int(free / (seconds / pace) / (17 * 1024 * 4))
    losses = []
    for step in range(1_000_000):
        began = time.perf_counter()
        loss = model(torch.randn(batch, 1024, device="cuda")).square().mean()
        losses.append(loss)
        run.log(step=step, loss=loss, lr=1e-3)
        torch.cuda.synchronize()
        time.sleep(max(0.0, pace - (time.perf_counter() - began)))


def fragmentation(run: gpuwarden.Run, seconds: float) -> None:
    free = torch.cuda.mem_get_info()[0] - GIB
    large = torch.empty(free, dtype=torch.uint8, device="cuda")
    del large
    pieces = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(free // (64 << 20))]
    kept = pieces[::2]
    del pieces
    for step in range(int(seconds)):
        run.log(step=step, loss=1.0)
        time.sleep(1)
    asked = torch.empty(8 * GIB, dtype=torch.uint8, device="cuda")
    print(len(kept), asked.numel())


def others(run: gpuwarden.Run, seconds: float) -> None:
    free = torch.cuda.mem_get_info()[0]
    code = "import torch, time; kept = torch.empty(%d, dtype=torch.uint8, device='cuda'); print('ready', flush=True); time.sleep(600)" % (free * 8 // 10)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            for step in range(int(seconds)):
                run.log(step=step, loss=1.0)
                time.sleep(1)
            torch.empty(free // 2, dtype=torch.uint8, device="cuda")
        finally:
            # The report is made with the exception: the other process has to be there until then.
            run.fail(sys.exc_info()[1] or RuntimeError("there was room for both"))
            other.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["leak", "fragmentation", "others"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--record", action="store_true", help="record where memory is allocated, for the lines that hold it and a snapshot")
    arguments = parser.parse_args()
    if arguments.record:
        torch.cuda.memory._record_memory_history(max_entries=100_000)
    with gpuwarden.run("out of memory: " + arguments.kind, framework="pytorch") as run:
        {"leak": leak, "fragmentation": fragmentation, "others": others}[arguments.kind](run, arguments.seconds)


if __name__ == "__main__":
    main()

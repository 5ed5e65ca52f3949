"""Runs a real GPU out of memory in a training that gpuwarden watches, in one of the ways it has to tell apart.

    gpuwarden run --report oom.html -- python test/hardware/out_of_memory.py leak

leak           every step keeps its activations, as a list of losses with their graphs does; ends at `--seconds` or so
late_leak      the same after half of the time in which nothing grows
fragmentation  free memory lies in pieces between tensors that stay
others         another process has most of the card
limit          the process may use a tenth of the card, and its steps need more
sudden         one step has a batch many times as large as all before it
growing_steps  the sequences get longer, and so does what a step needs; nothing is kept
evaluation     evaluation needs many times what a training step needs
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


def leak(run: gpuwarden.Run, seconds: float, flat: float = 0.0) -> None:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)]).cuda()
    free = torch.cuda.mem_get_info()[0]
    # 17 activations of batch × 1024 floats stay with every step.
    pace = 0.2
    batch = int(free / (seconds / pace) / (17 * 1024 * 4))
    losses = []
    for step in range(1_000_000):
        began = time.perf_counter()
        loss = model(torch.randn(batch, 1024, device="cuda")).square().mean()
        if step * pace >= flat:
            losses.append(loss)
        run.log(step=step, loss=loss, lr=1e-3)
        torch.cuda.synchronize()
        time.sleep(max(0.0, pace - (time.perf_counter() - began)))


def late_leak(run: gpuwarden.Run, seconds: float) -> None:
    leak(run, seconds / 2, flat=seconds / 2)


def train(model: nn.Module, rows: int) -> torch.Tensor:
    """One step whose activations are freed again."""
    loss = model(torch.randn(rows, 1024, device="cuda")).square().mean()
    loss.backward()
    model.zero_grad()
    return loss


def model_and_rows() -> "tuple[nn.Module, int]":
    """A model, and the rows of a batch that fills the card."""
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)]).cuda()
    return model, torch.cuda.mem_get_info()[0] // (17 * 1024 * 4)


def limit(run: gpuwarden.Run, seconds: float) -> None:
    model, most = model_and_rows()
    torch.cuda.set_per_process_memory_fraction(0.1)
    for step in range(int(seconds)):
        run.log(step=step, loss=train(model, most // 20))
        time.sleep(1)
    train(model, most // 5)


def sudden(run: gpuwarden.Run, seconds: float) -> None:
    model, most = model_and_rows()
    for step in range(int(seconds)):
        run.log(step=step, loss=train(model, most // 50))
        time.sleep(1)
    train(model, most * 2)


def growing_steps(run: gpuwarden.Run, seconds: float) -> None:
    model, most = model_and_rows()
    for step in range(1_000_000):
        run.log(step=step, loss=train(model, int(most * (0.1 + step / seconds))))
        time.sleep(1)


def evaluation(run: gpuwarden.Run, seconds: float) -> None:
    model, most = model_and_rows()
    for step in range(int(seconds)):
        run.log(step=step, loss=train(model, most // 50))
        time.sleep(1)
    evaluate(model, most * 2)


def evaluate(model: nn.Module, rows: int) -> None:
    """Its name is how gpuwarden knows what was running."""
    with torch.no_grad():
        model(torch.randn(rows, 1024, device="cuda"))


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


KINDS = {
    one.__name__: one for one in (leak, late_leak, fragmentation, others, limit, sudden, growing_steps, evaluation)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--record", action="store_true", help="record where memory is allocated, for the lines that hold it and a snapshot")
    arguments = parser.parse_args()
    if arguments.record:
        torch.cuda.memory._record_memory_history(max_entries=100_000)
    with gpuwarden.run("out of memory: " + arguments.kind, framework="pytorch") as run:
        KINDS[arguments.kind](run, arguments.seconds)


if __name__ == "__main__":
    main()

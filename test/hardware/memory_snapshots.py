"""Writes memory snapshots of small trainings, with what PyTorch itself says of each, for `gpuwarden snapshot`. Needs a GPU and PyTorch.

python test/hardware/memory_snapshots.py FOLDER
    then, where gpuwarden is: node test/hardware/compare-snapshots.js FOLDER
"""
import gzip
import json
import os
import sys

import torch
from torch import nn

FOLDER = sys.argv[1]
MIB = 1 << 20


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def fresh():
    """An allocator without a past."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(enabled=None)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()


def dump(name, pickled=None, **truth):
    stats = torch.cuda.memory_stats()
    if pickled is None:
        path = os.path.join(FOLDER, name + ".pickle")
        torch.cuda.memory._dump_snapshot(path)
        with open(path, "rb") as file:
            pickled = file.read()
        os.remove(path)
    with open(os.path.join(FOLDER, name + ".pickle.gz"), "wb") as file:
        file.write(gzip.compress(pickled, 6))
    for key in ("requested_bytes", "reserved_bytes"):
        truth[key] = {part: stats["%s.all.%s" % (key, part)] for part in ("current", "peak")}
    truth.update(retries=stats["num_alloc_retries"], ooms=stats["num_ooms"], torch=torch.__version__)
    with open(os.path.join(FOLDER, name + ".truth.json"), "w") as file:
        json.dump(truth, file, indent=1)
    print(name, json.dumps(truth), flush=True)


def train(steps, width=512, layers=4, keep=None, batch=lambda step: 64):
    model = nn.Sequential(*[Block(width) for _ in range(layers)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        x = torch.randn(batch(step), 128, width, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if keep is not None:
            keep.append(torch.empty(MIB, dtype=torch.uint8, device="cuda"))  # the leak
    torch.cuda.synchronize()


def pickled_by_cpp():
    """What PyTorch's C++ writes when it dumps by itself."""
    from torch.utils.cpp_extension import load_inline

    source = """
    #include <torch/extension.h>
    #include <torch/csrc/cuda/memory_snapshot.h>
    py::bytes pickled() { return py::bytes(torch::cuda::_memory_snapshot_pickled()); }
    """
    return load_inline("snapshot_pickled", cpp_sources=source, functions=["pickled"], with_cuda=True).pickled()


def main():
    os.makedirs(FOLDER, exist_ok=True)
    record = torch.cuda.memory._record_memory_history

    fresh()
    record(max_entries=1_000_000)
    kept = []
    train(20, keep=kept, batch=lambda step: 16 * (1 + step % 4))
    dump("leak", leak_bytes_per_step=MIB)
    try:
        dump("leak_cpp", pickled=pickled_by_cpp(), leak_bytes_per_step=MIB)
    except Exception as error:  # noqa: BLE001 - a machine without a compiler still gives the rest
        print("no C++ pickle:", repr(error)[-1500:], flush=True)
    kept.clear()

    fresh()
    record(context="alloc", stacks="python", max_entries=3000)
    train(20)
    dump("ring_of_alloc_context")

    fresh()
    record(max_entries=1_000_000)
    side = torch.cuda.Stream()
    other = []
    for _ in range(8):
        x = torch.randn(4096, 4096, device="cuda")
        with torch.cuda.stream(side):
            x.record_stream(side)
            for _ in range(20):
                x = x @ x
            other.append(x.sum())
        del x
    dump("streams")
    torch.cuda.synchronize()
    del other

    fresh()
    record(max_entries=1_000_000)
    torch.cuda.set_per_process_memory_fraction(0.02)
    pins, held = [], []
    try:
        while True:
            held.append(torch.empty(63 * MIB, dtype=torch.uint8, device="cuda"))
            pins.append(torch.empty(MIB + 512, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
    held.clear()
    train(8, width=128)
    dump("oom_in_the_middle")
    torch.cuda.set_per_process_memory_fraction(1.0)
    pins.clear()


main()

"""What looking at the layers of a model costs: the same loop with and without, in turns, in one process.

python bench/watch_cost.py [--every 100] [--rounds 10] [--width 256] [--blocks 12] [--batch 64]
"""
from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ.setdefault("GPUWARDEN_SPOOL", "off")
os.environ.setdefault("GPUWARDEN_URL", "http://127.0.0.1:9")

import torch  # noqa: E402
from torch import nn  # noqa: E402

import gpuwarden  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("every", 100), ("rounds", 10), ("width", 256), ("blocks", 12), ("batch", 64)):
        parser.add_argument("--" + name, type=int, default=default)
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer = nn.TransformerEncoderLayer(given.width, 4, 4 * given.width, batch_first=True)
    model = nn.TransformerEncoder(layer, given.blocks, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    batch = torch.randn(given.batch // 16 or 1, 16, given.width, device=device)

    def seconds(steps: int) -> float:
        began = time.process_time() if device == "cpu" else time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.process_time() if device == "cpu" else time.perf_counter()) - began

    gpuwarden.attach()
    seconds(2 * given.every)
    ratios = []
    for _ in range(given.rounds):
        without = seconds(given.every)
        watch = gpuwarden.watch(model, every=given.every)
        watch.missed(3)
        with_it = seconds(given.every)
        watch.stop()
        ratios.append(with_it / without)
    print("%s, %d blocks of width %d, every %d steps, %d rounds" % (device, given.blocks, given.width, given.every, given.rounds))
    print("with ÷ without: median %.4f, from %.4f to %.4f" % (statistics.median(ratios), min(ratios), max(ratios)))


if __name__ == "__main__":
    main()

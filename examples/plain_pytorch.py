"""A training loop of one's own, watched with two lines. Needs torch:

    python examples/plain_pytorch.py [--steps 500] [--cpu]
"""
from __future__ import annotations

import argparse

import torch
from torch import nn

import gpuwarden


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--cpu", action="store_true", help="even if there is a GPU")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() and not arguments.cpu else "cpu"
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.steps)
    weights = torch.randn(64, 1, device=device)

    with gpuwarden.run("plain-pytorch", framework="pytorch") as run:
        for step in range(arguments.steps):
            inputs = torch.randn(arguments.batch_size, 64, device=device)
            loss = nn.functional.mse_loss(model(inputs), torch.tanh(inputs @ weights))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            schedule.step()
            # Tensors as they are: what lies on the GPU is fetched without waiting for it.
            run.log(step=step, loss=loss, lr=schedule.get_last_lr()[0], grad_norm=grad_norm)
    print("loss at the end: %.4f; steps: %s" % (loss.item(), run.statistics()))


if __name__ == "__main__":
    main()

"""A real training on a GPU that diverges for good, to be watched by gpuwarden: at most two alerts may come of it.

    gpuwarden run -- python test/hardware/diverging.py

After half of the steps the learning rate is a thousand times too high; `--settle` takes it back later, with the weights as they were.
"""
from __future__ import annotations

import argparse
import copy
import time

import torch
from torch import nn

import gpuwarden


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--settle", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    healthy = copy.deepcopy(model.state_dict())
    turn, back = arguments.steps // 2, arguments.steps * 3 // 4
    with gpuwarden.run("diverging", framework="pytorch", total_steps=arguments.steps) as run:
        for step in range(arguments.steps):
            if step == turn:
                healthy = copy.deepcopy(model.state_dict())
                optimizer.param_groups[0]["lr"] = 20.0
            if step == back and arguments.settle:
                model.load_state_dict(healthy)
                optimizer.param_groups[0]["lr"] = 0.02
            inputs = torch.randn(128, 64, device=device)
            loss = (model(inputs) - inputs.sum(1, keepdim=True) / 8).square().mean()
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1e9)
            # Too large steps end in NaN within a few; clipped, the loss stays finite and bad, as it often does in practice.
            if step >= turn:
                for parameter in model.parameters():
                    parameter.grad.clamp_(-1.0, 1.0)
            optimizer.step()
            run.log(step=step, loss=loss, lr=optimizer.param_groups[0]["lr"], grad_norm=norm)
            time.sleep(0.05)


if __name__ == "__main__":
    main()

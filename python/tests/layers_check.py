"""Watching the layers of real PyTorch models; needs torch, so it is not found by plain discovery."""
from __future__ import annotations

import math
import os
import unittest
from typing import Any, Dict, List

import torch
from torch import nn

from .stand import Stand
from .world import World

TRAIN = """
import sys, torch, gpuwarden
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.ReLU()
        self.down = nn.Linear(2 * width, width)
    def forward(self, x):
        return x + self.down(self.act(self.up(x)))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(8) for _ in range(4)])
        self.head = nn.Linear(8, 1)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
def step(x=None):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 8) if x is None else x).pow(2).mean()
    loss.backward()
    {clip}
    optimizer.step()
    return loss
"""


class Watching(World):
    def setUp(self) -> None:
        super().setUp()
        self.stand = Stand()
        self.addCleanup(self.stand.close)

    def train(self, code: str, clip: str = "pass", **env: str) -> List[Dict[str, Any]]:
        done = self.run_script(TRAIN.replace("{clip}", clip) + code, self.stand.url, **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return [self.stand.steps[key] for key in sorted(self.stand.steps, key=lambda key: (key[1], key[2]))]

    def test_figures_of_each_layer(self) -> None:
        lines = self.train("gpuwarden.watch(model, every=5)\nfor _ in range(12): step()\n")
        self.assertEqual([line["step"] for line in lines if "layers" in line], [3, 5, 10])
        layers = lines[4]["layers"]
        self.assertEqual(layers["names"][:3], ["blocks.0.up", "blocks.0.act", "blocks.0.down"])
        row = {name: column[0] for name, column in layers.items()}
        self.assertGreater(row["gradient_norm"], 0)
        self.assertAlmostEqual(row["update_ratio"], 0.01 * row["gradient_norm"] / row["weight_norm"], delta=0.05 * row["update_ratio"])
        self.assertEqual((row["non_finite_share"], row["zero_share"]), (0, 0))
        self.assertTrue(0.2 < layers["dead_share"][1] < 0.8)
        self.assertIsNone(layers["gradient_norm"][1])

    def test_unchanged_program(self) -> None:
        startup = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpuwarden", "startup")
        lines = self.train("for _ in range(8): step()\n".replace("gpuwarden", ""), GPUWARDEN_WATCH_MODEL="4", PYTHONPATH=startup)
        self.assertEqual([line["step"] for line in lines if "layers" in line], [3, 4, 8])

    def test_nan_in_weights(self) -> None:
        for watch in ("gpuwarden.attach()", "gpuwarden.watch(model, every=1)"):
            lines = self.train(watch + "\nfor i in range(8):\n  if i == 5: model.blocks[2].up.weight.data[0, 0] = float('nan')\n  step()\n")
            self.assertEqual(lines[5]["non_finite"], {"layer": "blocks.2.up", "part": "weights"}, watch)
            self.assertTrue(math.isnan(lines[5]["loss"]))
            self.stand.steps.clear()

    def test_nan_in_activations(self) -> None:
        plant = "model.blocks[1].down.register_forward_hook(lambda m, a, out: out * float('nan') if i == 5 else None)\n"
        for watch in ("gpuwarden.attach()", "gpuwarden.watch(model, every=1)"):
            lines = self.train("i = 0\n" + plant + watch + "\nfor i in range(8): step()\n")
            self.assertEqual(lines[5]["non_finite"], {"layer": "blocks.1.down", "part": "activations"}, watch)
            self.stand.steps.clear()

    def test_nan_in_gradients(self) -> None:
        plant = "model.blocks[1].down.weight.register_hook(lambda g: g * float('nan') if i == 5 else g)\n"
        clip = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
        # Clipping by a norm that is NaN breaks them all: what is seen is seen before.
        lines = self.train("i = 0\n" + plant + "gpuwarden.watch(model, every=1)\nfor i in range(7): step()\n")
        self.assertEqual(lines[5]["non_finite"], {"layer": "blocks.1.down", "part": "gradients"})
        self.stand.steps.clear()
        lines = self.train("i = 0\n" + plant + "gpuwarden.attach()\nfor i in range(7): step()\n", clip)
        self.assertEqual([line.get("non_finite") for line in lines][:5], [None] * 5)


class Odd(World):
    """Models of all kinds: the training goes on as if nobody watched."""

    def setUp(self) -> None:
        super().setUp()
        self.stand = Stand()
        self.addCleanup(self.stand.close)

    def losses(self, code: str, watched: bool) -> List[float]:
        done = self.run_script(
            TRAIN.replace("{clip}", "pass") + code.replace("WATCH", "gpuwarden.watch(model, every=1)" if watched else "pass"), self.stand.url
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return [float(word) for word in done.stdout.split()]

    def same(self, code: str, looks: bool = True) -> Dict[str, Any]:
        watched = self.losses(code, True)
        self.assertEqual(watched, self.losses(code, False))
        found = [line["layers"] for line in self.stand.steps.values() if "layers" in line]
        self.assertEqual(bool(found), looks)
        return found[-1] if found else {}

    def test_shared_frozen_sparse_half_complex_meta(self) -> None:
        layers = self.same(
            """
class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 8, sparse=True)
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.low = nn.Linear(8, 8).bfloat16()
        self.waves = nn.Parameter(torch.randn(8, dtype=torch.complex64))
        self.nothing = nn.Linear(4, 4, device="meta")
        self.again = nn.Linear(8, 8)
        self.same = nn.Linear(8, 8)
        self.same.weight = self.again.weight
        self.high = nn.Linear(8, 8).double()
        self.empty = nn.Parameter(torch.zeros(0))
        self.conv = nn.Conv2d(3, 3, 3, padding=1).to(memory_format=torch.channels_last)
    def forward(self, x):
        x = self.frozen(self.words(x).mean(1)).bfloat16()
        x = self.low(x).float()
        x = self.again(self.again(x)) + self.same(x) * self.waves.abs() + self.high(x.double()).float()
        return x.mean() + self.conv(torch.ones(1, 3, 4, 4)).mean()
model = Odd()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.device.type == "cpu"], 0.01)
WATCH
for _ in range(6): print(step(torch.randint(50, (4, 5))).item())
"""
        )
        row = {name: index for index, name in enumerate(layers["names"])}
        self.assertIsNone(layers["gradient_norm"][row["frozen"]])
        self.assertGreater(layers["weight_norm"][row["frozen"]], 0)
        for name in ("words", "low", "again", "high", "Odd", "conv"):
            self.assertGreater(layers["gradient_norm"][row[name]], 0, name)
        self.assertIsNone(layers["weight_norm"][row["nothing"]])

    def test_compiled(self) -> None:
        self.same("WATCH\ncompiled = torch.compile(model, backend='eager')\nmodel, inner = compiled, model\nfor _ in range(8): print(step().item())\n")

    def test_compiled_step(self) -> None:
        self.same("WATCH\nforward = torch.compile(lambda x: model(x), backend='eager')\nold = model.__class__.__call__\nfor _ in range(8): print(step().item())\n")

    def test_distributed(self) -> None:
        self.same(
            """
import os
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
model = nn.parallel.DistributedDataParallel(model)
WATCH
for _ in range(6): print(step().item())
torch.distributed.destroy_process_group()
"""
        )

    def test_accumulated_and_checkpointed(self) -> None:
        self.same(
            """
from torch.utils.checkpoint import checkpoint
def step():
    optimizer.zero_grad()
    for _ in range(3):
        x = torch.randn(16, 8, requires_grad=True)
        for block in model.blocks: x = checkpoint(block, x, use_reentrant=False)
        loss = model.head(x).pow(2).mean()
        loss.backward()
    optimizer.step()
    return loss
WATCH
for _ in range(6): print(step().item())
"""
        )

    def test_attention(self) -> None:
        layers = self.same(
            """
class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
    def forward(self, x):
        return self.attention(x, x, x, need_weights=True)[0]
model = Mixer()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
WATCH
for _ in range(6): print(step(torch.randn(2, 5, 8)).item())
"""
        )
        row = layers["names"].index("attention")
        self.assertTrue(0 < layers["attention_entropy"][row] <= math.log(5))
        self.assertTrue(0.2 <= layers["attention_largest"][row] <= 1)

    def test_forked_and_two_optimizers(self) -> None:
        self.same(
            """
import os
WATCH
other = torch.optim.SGD(model.head.parameters(), 0.01)
optimizer = torch.optim.SGD(model.blocks.parameters(), 0.01)
for i in range(6):
    print(step().item())
    other.step()
    if i == 3 and os.fork() == 0:
        step()
        os._exit(0)
"""
        )

    def test_a_figure_that_fails_ends_the_watching(self) -> None:
        self.same(
            """
class Strange(torch.Tensor):
    def numel(self): raise ValueError("never")
from gpuwarden import model_watch
model_watch.add_activation = lambda *_: 1 / 0
WATCH
for _ in range(6): print(step().item())
""",
            looks=False,
        )

    def test_many_layers_are_grouped(self) -> None:
        layers = self.same(
            """
model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.LayerNorm(8)) for _ in range(120)])
optimizer = torch.optim.SGD(model.parameters(), 0.01)
WATCH
for _ in range(5): print(step().item())
"""
        )
        self.assertEqual(layers["names"], [str(index) for index in range(120)])
        self.assertTrue(all(value is not None for value in layers["activation_mean"]))


if __name__ == "__main__":
    unittest.main()

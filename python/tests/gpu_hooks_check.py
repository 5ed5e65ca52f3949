"""Training that is followed without a line of code, on a real GPU: `python3 -m unittest tests.gpu_hooks_check`. Needs PyTorch with CUDA."""
from __future__ import annotations

import os
from typing import Any, Dict, List

from .stand import Stand
from .test_hooks import STARTUP
from .world import World

LOOP = """
import time, torch
from torch.utils.data import DataLoader, TensorDataset
wait = %r
class Slow(TensorDataset):
    def __getitem__(self, index):
        if wait: time.sleep(wait / 16)
        return super().__getitem__(index)
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for (x,) in DataLoader(Slow(torch.randn(16 * 120, 4096)), batch_size=16, pin_memory=True):
    x = x.cuda(non_blocking=True)
    for part in range(%d): loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
torch.cuda.synchronize()
"""


class OnGpu(World):
    def train(self, code: str) -> List[Dict[str, Any]]:
        stand = Stand()
        done = self.run_script(code, stand.url, timeout=240, PYTHONPATH=STARTUP)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [stand.steps[key] for key in sorted(stand.steps, key=lambda key: key[2])]

    def shares(self, steps: List[Dict[str, Any]], suffix: str) -> Dict[str, float]:
        timed = [step for step in steps[20:] if "forward" + suffix in step.get("phases", {})]
        self.assertGreater(len(timed), 3, "too few steps were timed")
        names = {name for step in timed for name in step["phases"] if name.endswith("@gpu") == bool(suffix)}
        whole = sum(step["step_seconds"] for step in timed)
        return {name: sum(step["phases"].get(name, 0.0) for step in timed) / whole for name in sorted(names)}

    def test_a_gpu_that_works_all_the_time(self) -> None:
        steps = self.train(LOOP % (0, 40))
        self.assertEqual(len(steps), 120)
        self.assertTrue(all(step["loss"] > 0 and step["grad_norm"] > 0 for step in steps[:-1]))
        gpu, host = self.shares(steps, "@gpu"), self.shares(steps, "")
        print("\nbusy:", {name: round(value, 3) for name, value in {**gpu, **host}.items()})
        self.assertGreater(gpu["forward@gpu"], 0.5)
        self.assertLess(gpu.get("data@gpu", 0.0), 0.1)

    def test_a_gpu_that_waits_for_data(self) -> None:
        gpu = self.shares(self.train(LOOP % (0.02, 1)), "@gpu")
        print("\nwaiting:", {name: round(value, 3) for name, value in gpu.items()})
        self.assertGreater(gpu["data@gpu"], 0.5)

    def test_graphs_and_compiled_models(self) -> None:
        steps = self.train(
            """
            import torch
            model = torch.nn.Linear(512, 512).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
            x = torch.randn(64, 512, device="cuda")
            graphed = torch.cuda.make_graphed_callables(model, (x,))
            for _ in range(300):
                loss = graphed(x).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            whole = torch.cuda.CUDAGraph()
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    optimizer.zero_grad(set_to_none=True)
                    model(x).square().mean().backward()
                    optimizer.step()
            torch.cuda.current_stream().wait_stream(side)
            optimizer.zero_grad(set_to_none=True)
            with torch.cuda.graph(whole):
                model(x).square().mean().backward()
                optimizer.step()
            for _ in range(100): whole.replay()
            compiled = torch.compile(model, fullgraph=True)
            for _ in range(100):
                compiled(x.cpu().to("cuda")).square().mean().backward()
                optimizer.step()
            torch.cuda.synchronize()
            """
        )
        self.assertGreaterEqual(len(steps), 400)

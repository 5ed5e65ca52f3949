"""Host memory that real programs leak, with real PyTorch and the real agent; needs torch, so it is not found by plain discovery."""
from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Dict, List

from gpuwarden.python_memory import PythonMemory

from .world import PACKAGE, World, WorldWithAgent, until

HEAD = """
import sys, time, torch
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
def step():
    optimizer.zero_grad()
    model(torch.randn(4, 8)).pow(2).mean().backward()
    optimizer.step()
"""
TENSORS = (
    HEAD
    + """
kept = []
end = time.time() + 300
while time.time() < end:
    step()
    kept.append(torch.ones(4 << 20))  # 16 MiB
    time.sleep(0.3)
    if len(kept) > 220: time.sleep(3600)
"""
)
WORKERS = (
    HEAD
    + """
class Data(torch.utils.data.Dataset):
    kept = []
    def __len__(self): return 100000
    def __getitem__(self, index):
        self.kept.append(bytearray(8 << 20))
        if len(self.kept) > 220: time.sleep(3600)
        return torch.zeros(8)
for batch in torch.utils.data.DataLoader(Data(), batch_size=1, num_workers=2, prefetch_factor=1):
    step()
    time.sleep(0.3)
"""
)
HEALTHY = (
    HEAD
    + """
loaded = [torch.ones(4 << 20) for _ in range(20)]
end = time.time() + 40
while time.time() < end:
    step()
    torch.ones(4 << 20)
    time.sleep(0.05)
"""
)


class HostLeaks(WorldWithAgent):
    def follow(self, code: str, seconds: float) -> List[Dict[str, Any]]:
        """The leaks that are found while it runs; ends it."""
        path = os.path.join(self.folder, "train.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        env = self.environment(self.agent.url, PYTHONPATH=os.path.join(PACKAGE, "gpuwarden", "startup"), OMP_NUM_THREADS="1")
        child = subprocess.Popen([sys.executable, path], env=env, cwd=self.folder, stdin=subprocess.DEVNULL, start_new_session=True)
        found: List[Dict[str, Any]] = []

        def look() -> bool:
            found[:] = [one for one in self.agent.get("/api/v1/findings")["findings"] if one["detector"] == "leak"]
            return bool(found) or child.poll() is not None

        try:
            until("a leak was found", look, seconds)
            return list(found)
        finally:
            # A program that ended by itself has no group anymore.
            if child.poll() is None:
                os.killpg(child.pid, 9)
            child.wait()

    def test_tensors_kept_on_the_cpu(self) -> None:
        (leak,) = self.follow(TENSORS, 240)
        self.assertEqual(leak["evidence"]["source"], "host memory")
        self.assertIn("of host memory", leak["message"])

    def test_workers_that_grow(self) -> None:
        (leak,) = self.follow(WORKERS, 240)
        self.assertIn("processes) leaks", leak["message"])

    def test_a_healthy_one(self) -> None:
        self.assertEqual(self.follow(HEALTHY, 120), [])


class GuiltyLines(World):
    def test_tensors_count_with_their_line(self) -> None:
        import torch

        memory = PythonMemory(interval=1000)
        memory.start()
        kept = []
        try:
            for _ in range(4):
                kept.append([torch.ones(1 << 20) for _ in range(4)])
                memory.look()
            lines = memory.report()["lines"]
        finally:
            memory.stop()
        self.assertEqual((lines[0]["file"], lines[0]["growing"]), (os.path.abspath(__file__), True))
        self.assertIn("torch.ones(1 << 20)", lines[0]["source"])
        self.assertGreaterEqual(lines[0]["grown_bytes"], 3 * 16 * 1024 * 1024)
        self.assertFalse([line for line in lines if line["file"].startswith(os.path.join(PACKAGE, "gpuwarden"))])

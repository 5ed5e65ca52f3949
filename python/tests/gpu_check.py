"""The SDK on a real CUDA GPU; needs torch and a card, so it is not found by plain discovery: python3 -m unittest tests.gpu_check"""
from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import time
import unittest
from typing import Any, Callable, Dict, List
from unittest import mock

import torch

import gpuwarden
from gpuwarden import allocator, deferred, oom_moment, oom_report
from gpuwarden.steps import scalar


def arrived(values: List[Any]) -> List[Any]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not all(value.has_come() for value in values):
        time.sleep(0.001)
    return [value.value for value in values]


def busy(seconds: float) -> None:
    """Work for the GPU that it is not through with when this returns."""
    torch.cuda._sleep(int(seconds * 1.5e9))


@unittest.skipUnless(torch.cuda.is_available(), "needs a CUDA GPU")
class DeferredOnGpu(unittest.TestCase):
    def setUp(self) -> None:
        deferred.forget_after_fork()
        torch.zeros(1, device="cuda")

    def test_numbers_come_as_they_are(self) -> None:
        numbers = torch.randn(5000, device="cuda")
        values = []
        for number in numbers:
            values.append(scalar(number))
            if len(values) % 256 == 0:
                torch.cuda.synchronize()
        self.assertEqual(arrived(values), numbers.tolist())

    def test_special_numbers_and_types(self) -> None:
        special = [math.nan, math.inf, -math.inf, 0.0, -0.0]
        values = [scalar(torch.tensor(number, device="cuda")) for number in special]
        values += [scalar(torch.tensor(0.0, device="cuda") / 0.0), scalar(torch.tensor(-1.0, device="cuda").sqrt())]
        self.assertEqual([str(value) for value in arrived(values)], ["nan", "inf", "-inf", "0.0", "-0.0", "nan", "nan"])
        kinds = (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)
        self.assertEqual(arrived([scalar(torch.tensor([3], device="cuda").to(kind)) for kind in kinds]), [3.0] * len(kinds))

    def test_nobody_waits_for_the_gpu(self) -> None:
        busy(1.0)
        began = time.perf_counter()
        value = scalar(torch.full((), 4.5, device="cuda"))
        took = time.perf_counter() - began
        self.assertFalse(value.has_come(), "the GPU was not busy: this test shows nothing")
        self.assertLess(took, 0.5)
        self.assertEqual(arrived([value]), [4.5])

    def test_late_numbers_are_not_mixed_up(self) -> None:
        numbers = torch.arange(1, 100, device="cuda", dtype=torch.float32)
        rows = list(numbers)
        with mock.patch.object(deferred, "SLOTS", 64):
            torch.cuda.synchronize()
            busy(1.0)
            values = [scalar(number) for number in rows]
            self.assertFalse(values[0].has_come(), "the GPU was not busy: this test shows nothing")
            self.assertEqual(arrived(values), [float(number) for number in range(1, 65)] + [None] * 35)
            self.assertEqual(arrived([scalar(number) for number in rows[:64]]), [float(number) for number in range(1, 65)])

    def test_the_driver_is_asked_directly(self) -> None:
        with mock.patch.object(torch.Tensor, "copy_", side_effect=AssertionError("through PyTorch")):
            value = scalar(torch.full((1, 1), 3.5, device="cuda"))
        self.assertEqual(arrived([value]), [3.5])
        negated = torch._neg_view(torch.full((), 2.0, device="cuda"))
        self.assertEqual(arrived([scalar(negated)]), [-2.0])

    def test_in_the_places_where_training_puts_it(self) -> None:
        weight = torch.ones(3, device="cuda", requires_grad=True)
        loss = (weight * 2).sum()
        with torch.inference_mode():
            inside = scalar(loss)
        outside = scalar(loss)
        loss.backward()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            beside = scalar(torch.full((), 9.0, device="cuda"))
        self.assertEqual(arrived([inside, outside, beside]), [6.0, 6.0, 9.0])
        self.assertEqual(weight.grad.tolist(), [2.0, 2.0, 2.0])  # type: ignore[union-attr]
        deferred.forget_after_fork()
        torch.set_default_device("cuda")
        try:
            self.assertEqual(arrived([scalar(torch.full((), 2.0))]), [2.0])
        finally:
            torch.set_default_device(None)  # type: ignore[arg-type,unused-ignore]

    def test_a_captured_graph_stays_whole(self) -> None:
        static = torch.ones(4, device="cuda")
        early = scalar(static.sum())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            doubled = static * 2
            during = scalar(doubled.sum())
            early.has_come()
        self.assertEqual((during.has_come(), during.value), (True, None))
        graph.replay()
        self.assertEqual(arrived([early, scalar(doubled.sum())]), [4.0, 8.0])


@unittest.skipUnless(torch.cuda.is_available(), "needs a CUDA GPU")
class OutOfMemoryOnGpu(unittest.TestCase):
    def setUp(self) -> None:
        torch.zeros(1, device="cuda")
        oom_moment.attach()

    def caught(self, work: Callable[[], Any]) -> Dict[str, Any]:
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, True)
        self.addCleanup(torch.cuda.empty_cache)
        try:
            work()
        except torch.OutOfMemoryError as error:
            report = oom_report.build(error, "run", 0, folder)
            json.dumps(report)
            total = torch.cuda.mem_get_info()[1]
            # What rounding, printed to two places by PyTorch, cannot move further.
            self.assertLess(abs(sum(entry["bytes"] for entry in report["ledger"]) - total), 0.01 * total)
            return report
        raise AssertionError("CUDA did not run out of memory")

    def test_capacity(self) -> None:
        """The tensors are gone when the exception is caught."""
        free = torch.cuda.mem_get_info()[0]
        report = self.caught(lambda: [torch.empty(free // 4, dtype=torch.uint8, device="cuda") for _ in range(5)])
        self.assertEqual(report["cause"]["kind"], "capacity", report)
        self.assertEqual(report["stack"][-1]["file"], __file__)
        self.assertGreater(report["allocator"]["allocated"], 0.7 * free)

    def test_capacity_by_the_message_alone(self) -> None:
        free = torch.cuda.mem_get_info()[0]
        with mock.patch.object(oom_moment, "take", return_value=None):
            report = self.caught(lambda: [torch.empty(free // 4, dtype=torch.uint8, device="cuda") for _ in range(5)])
        self.assertEqual(report["cause"]["kind"], "capacity", report)

    def test_a_limit(self) -> None:
        torch.cuda.set_per_process_memory_fraction(0.1)
        try:
            report = self.caught(lambda: torch.empty(torch.cuda.mem_get_info()[1] // 5, dtype=torch.uint8, device="cuda"))
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        self.assertEqual(report["cause"]["kind"], "limit", report)

    def test_fragmentation(self) -> None:
        """Every other piece of a nearly full card is free, and none of them is large enough."""

        def work() -> Any:
            piece = 64 << 20
            free = torch.cuda.mem_get_info()[0]
            # One large segment that is cut into pieces, so that a free one cannot be given back by itself.
            big = torch.empty(free - (1 << 30), dtype=torch.uint8, device="cuda")
            del big
            pieces = [torch.empty(piece, dtype=torch.uint8, device="cuda") for _ in range((free - (1 << 30)) // piece)]
            kept = pieces[::2]
            del pieces
            return kept, torch.empty(8 << 30, dtype=torch.uint8, device="cuda")

        report = self.caught(work)
        self.assertEqual(report["cause"]["kind"], "fragmentation", report)
        self.assertIn("expandable_segments", report["cause"]["message"])

    def test_with_a_snapshot(self) -> None:
        torch.cuda.memory._record_memory_history(max_entries=10_000)
        kept: List[Any] = []

        def work() -> None:
            kept.append(torch.empty(3 << 30, dtype=torch.uint8, device="cuda"))
            temporary = torch.empty(5 << 30, dtype=torch.uint8, device="cuda")
            kept.append(torch.empty(1 << 40, dtype=torch.uint8, device="cuda"))
            del temporary

        try:
            report = self.caught(work)
        finally:
            torch.cuda.memory._record_memory_history(enabled=None)
        self.assertIsNotNone(report["snapshot"]["path"], report["snapshot"])
        first = work.__code__.co_firstlineno
        held = {holder["line"] - first: holder["bytes"] >> 30 for holder in report["holders"] if holder["file"] == __file__}
        self.assertEqual((held.get(1), held.get(2)), (3, 5), report["holders"])

    def test_allocator_figures(self) -> None:
        kept = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
        figures = allocator.figures() or {}
        self.assertEqual(figures["allocated"], torch.cuda.memory_allocated())
        self.assertEqual(figures["reserved"], torch.cuda.memory_reserved())
        self.assertEqual(figures["peak_allocated"], torch.cuda.max_memory_allocated())
        self.assertEqual(figures["peak_reserved"], torch.cuda.max_memory_reserved())
        ids = allocator.device_ids() or []
        self.assertTrue(ids and ids[0].startswith("GPU-"), ids)
        del kept


@unittest.skipUnless(torch.cuda.is_available(), "needs a CUDA GPU")
class RunOnGpu(unittest.TestCase):
    def test_the_last_losses_are_kept_too(self) -> None:
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, True)
        settings = {"GPUWARDEN_URL": "http://127.0.0.1:9", "GPUWARDEN_SPOOL": folder, "GPUWARDEN_NO_START": "1"}
        with mock.patch.dict(os.environ, settings), gpuwarden.run("on the gpu") as run:
            for step in range(300):
                run.log(step=step, loss=torch.full((), float(step), device="cuda"))
            busy(0.05)
            run.log(step=300, loss=torch.full((), 300.0, device="cuda"))
        (name,) = os.listdir(folder)
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        steps = [line for line in lines if "seq" in line]
        self.assertEqual([line["loss"] for line in steps], [float(step) for step in range(301)])
        self.assertEqual(run.statistics()["spooled"], 301)


if __name__ == "__main__":
    print(sys.version, torch.__version__)
    unittest.main()

"""Memory and numbers of a GPU that is played: no agent, no process of their own. On a real one: gpu_check.py."""
from __future__ import annotations

import contextlib
import ctypes
import json
import math
import pickle
import random
import subprocess
import sys
import tempfile
import types
import unittest
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

from gpuwarden import deferred, oom_ledger, oom_moment, oom_report, snapshots
from gpuwarden.growth import Growth
from gpuwarden.steps import Step, encode, is_ready, scalar

GIB = 1 << 30


class FakeGpu:
    """Copies wait until the GPU comes to them; memory is real, as pinned memory is."""

    def __init__(self) -> None:
        self.queued: List[Tuple[Any, int, float]] = []
        self.is_capturing = False

    def catch_up(self, count: Optional[int] = None) -> None:
        count = len(self.queued) if count is None else count
        for memory, position, number in self.queued[:count]:
            memory[position] = number
        del self.queued[:count]

    def zeros(self, size: int, dtype: Any, device: str, pin_memory: bool) -> Any:
        assert pin_memory and device == "cpu"
        memory = (ctypes.c_float * size)()
        cells = [FakeCell(self, memory, position) for position in range(size)]
        return types.SimpleNamespace(unbind=lambda: cells, data_ptr=lambda: ctypes.addressof(memory))

    def torch(self) -> Any:
        cuda = types.SimpleNamespace(is_current_stream_capturing=lambda: self.is_capturing)
        return types.SimpleNamespace(cuda=cuda, float32=None, zeros=self.zeros, inference_mode=lambda on: contextlib.nullcontext())


class FakeCell:
    def __init__(self, gpu: FakeGpu, memory: Any, position: int) -> None:
        self.gpu, self.memory, self.position = gpu, memory, position

    def copy_(self, other: "FakeTensor", non_blocking: bool) -> None:
        assert non_blocking, "a blocking copy waits for the GPU"
        self.gpu.queued.append((self.memory, self.position, other.held))


class FakeTensor:
    is_cuda = True
    device = types.SimpleNamespace(type="cuda")

    def __init__(self, held: float, dimensions: int = 0) -> None:
        self.held = held
        self.dimensions = dimensions

    def numel(self) -> int:
        return 1

    def dim(self) -> int:
        return self.dimensions

    def detach(self) -> "FakeTensor":
        return self

    def reshape(self, shape: Any) -> "FakeTensor":
        return FakeTensor(self.held)

    def __float__(self) -> float:
        raise AssertionError("float() of a tensor on the GPU waits for it")

    item = __float__


class DeferredTest(unittest.TestCase):
    def setUp(self) -> None:
        self.gpu = FakeGpu()
        patch = mock.patch.dict(sys.modules, {"torch": self.gpu.torch()})
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(deferred.forget_after_fork)
        deferred.forget_after_fork()

    def test_it_is_read_when_the_gpu_has_come_to_it(self) -> None:
        value = scalar(FakeTensor(2.5))
        self.assertFalse(value.has_come())
        self.assertIsNone(value.value)
        self.gpu.catch_up()
        self.assertTrue(value.has_come())
        self.assertEqual(value.value, 2.5)

    def test_every_number_can_come(self) -> None:
        numbers = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, -3.25]
        values = [scalar(FakeTensor(number, dimensions=1)) for number in numbers]
        self.gpu.catch_up()
        self.assertTrue(all(value.has_come() for value in values))
        self.assertEqual([str(value.value) for value in values[:5]], [str(number) for number in numbers[:5]])
        self.assertGreater(values[5].value, 0)

    def test_a_number_that_finds_no_cell_is_left_out(self) -> None:
        values = [scalar(FakeTensor(float(number))) for number in range(deferred.SLOTS + 3)]
        self.assertEqual([value.has_come() for value in values[-4:]], [False, True, True, True])
        self.assertEqual([value.value for value in values[-3:]], [None] * 3)
        # One has come: its cell is free, and what comes later still is not taken for the number that has it next.
        self.gpu.catch_up(1)
        late = scalar(FakeTensor(-1.0))
        self.assertEqual(values[0].value, 0.0)
        self.gpu.catch_up(deferred.SLOTS - 1)
        self.assertFalse(late.has_come())
        self.assertTrue(values[deferred.SLOTS - 1].has_come())
        self.gpu.catch_up()
        self.assertTrue(late.has_come())
        self.assertEqual(late.value, -1.0)
        self.assertTrue(all(value.has_come() for value in values))
        self.assertEqual([value.value for value in values[: deferred.SLOTS]], [float(number) for number in range(deferred.SLOTS)])

    def test_nothing_is_copied_into_a_graph_that_is_captured(self) -> None:
        self.gpu.is_capturing = True
        self.assertIsNone(scalar(FakeTensor(1.0)))
        self.gpu.is_capturing = False
        before = scalar(FakeTensor(2.0))
        self.gpu.is_capturing = True
        during = scalar(FakeTensor(3.0))
        self.assertEqual((during.has_come(), during.value, len(self.gpu.queued)), (True, None, 1))
        self.gpu.catch_up()
        self.assertTrue(before.has_come())

    def test_a_step_is_ready_with_its_last_number(self) -> None:
        step = Step(1, 1, 0, None, scalar(FakeTensor(0.5)), scalar(FakeTensor(0.1)), None, None, None, None, None, {"a": scalar(FakeTensor(7.0))})
        for _ in range(3):
            self.assertFalse(is_ready(step))
            self.gpu.catch_up(1)
        self.assertTrue(is_ready(step))
        line = json.loads(encode(step, {}))
        self.assertEqual((line["loss"], round(line["lr"], 6), line["custom"]), (0.5, 0.1, {"a": 7.0}))

    def test_a_step_sent_before_its_number_came_goes_without(self) -> None:
        step = Step(1, 1, 0, None, scalar(FakeTensor(0.5)), None, None, None, None, None, None, None)
        self.assertNotIn("loss", json.loads(encode(step, {})))


class OomReportTest(unittest.TestCase):
    def test_recognized_behind_other_exceptions(self) -> None:
        cause = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        try:
            try:
                raise cause
            except RuntimeError as error:
                raise ValueError("step failed") from error
        except ValueError as outer:
            self.assertTrue(oom_report.is_out_of_memory(outer))
        self.assertFalse(oom_report.is_out_of_memory(RuntimeError("out of patience")))
        self.assertFalse(oom_report.is_out_of_memory(MemoryError("out of memory")))

    def test_causes(self) -> None:
        def cause(requested: Optional[int], growth: Any = None, allowed: Optional[int] = None, **more: int) -> str:
            held = dict({"torch_allocated": 50, "torch_inactive_split": 0, "torch_releasable_cache": 0, "torch_pending_free": 0, "free": 1}, **more)
            entries = [{"name": name, "bytes": amount} for name, amount in held.items()]
            return oom_ledger.cause(requested, entries, growth, allowed)["kind"]

        self.assertEqual(cause(10), "capacity")
        self.assertEqual(cause(10, torch_inactive_split=12), "fragmentation")
        self.assertEqual(cause(10, torch_pending_free=12), "pending_free")
        self.assertEqual(cause(10, other_processes=40), "other_processes")
        self.assertEqual(cause(10, allowed=60, free=30), "limit")
        self.assertEqual(cause(None), "unknown")
        # A little that is unused everywhere was not what was missing.
        self.assertEqual(cause(1, torch_inactive_split=2), "capacity")
        grown = {"bytes": 40, "steps": 20, "bytes_per_step": 2.0, "seconds": 10.0}
        self.assertEqual(cause(10, growth=grown, torch_inactive_split=12), "leak")
        self.assertEqual(oom_ledger.cause(10, [], None)["kind"], "unknown")
        self.assertEqual(cause(60, growth={**grown, "bytes": 3}), "capacity", "a rise that made no difference")

    def test_causes_of_a_step_that_needed_more(self) -> None:
        def cause(requested: Optional[int], needs: Any, evaluation: Optional[str] = None, free: int = 1) -> str:
            held = {"torch_allocated": 50, "torch_inactive_split": 0, "torch_releasable_cache": 0, "torch_pending_free": 0, "free": free}
            entries = [{"name": name, "bytes": amount} for name, amount in held.items()]
            return oom_ledger.cause(requested, entries, None, None, needs, evaluation)["kind"]

        usual = {"bytes": 35, "held": 20, "grew": 0, "steps": 0}
        self.assertEqual(cause(5, usual), "capacity", "it needed no more than steps do")
        self.assertEqual(cause(40, usual), "sudden")
        self.assertEqual(cause(40, usual, "validation_step"), "evaluation")
        self.assertEqual(cause(40, {**usual, "grew": 12, "steps": 30}), "growing_steps")
        self.assertEqual(cause(None, usual, free=40), "host_memory", "the driver said so, with memory left on the GPU")

    def test_the_line_is_one_of_the_program(self) -> None:
        hook: Dict[str, Any] = {}
        exec(compile("def backward(original):\n    return original()", oom_report._PACKAGE + "torch_hooks.py", "exec"), hook)

        def train() -> None:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

        try:
            hook["backward"](train)
        except RuntimeError as error:
            names = [frame["function"] for frame in oom_report._stack(error)]
        self.assertEqual(names, ["test_the_line_is_one_of_the_program", "train"])

    def test_the_function_that_evaluates(self) -> None:
        frames = lambda *names: [{"file": "a.py", "line": 1, "function": name} for name in names]  # noqa: E731
        self.assertEqual(oom_report._evaluation(frames("main", "evaluate", "forward")), "evaluate")
        self.assertEqual(oom_report._evaluation(frames("fit", "validation_step")), "validation_step")
        self.assertIsNone(oom_report._evaluation(frames("main", "retrieval", "invalidate_cache", "contest")))

    #: As PyTorch 2.11 says it.
    MESSAGE = (
        "CUDA out of memory. Tried to allocate 34.77 GiB. GPU 0 has a total capacity of 139.80 GiB of which 35.12 MiB is free. Including non-PyTorch memory, "
        "this process has 139.76 GiB memory in use. Of the allocated memory 139.09 GiB is allocated by PyTorch, and 4.88 MiB is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    )

    def test_the_message_is_read(self) -> None:
        said = oom_ledger.read_message(self.MESSAGE)
        in_mib = {name: round(amount / 2**20) for name, amount in said.items()}
        self.assertEqual(
            in_mib,
            {"requested": 35604, "device_total": 143155, "device_free": 35, "process": 143114, "allocated": 142428, "unallocated": 5},
        )
        self.assertEqual(oom_ledger.read_message("CUDA out of memory. 10.00 GiB allowed; Tried to allocate 2.00 bytes")["allowed"], 10 * GIB)
        self.assertEqual(oom_ledger.read_message("something else"), {})

    def test_frames_that_let_go_before_the_report_do_not_change_the_cause(self) -> None:
        """Everything was freed on the way up: the allocator's cache is whole now, and was not then."""
        amount = lambda current: {"all": {"current": current, "peak": current}}  # noqa: E731
        stats = {"allocated_bytes": amount(0), "active_bytes": amount(0), "reserved_bytes": amount(139 * GIB), "inactive_split_bytes": amount(0)}
        said = oom_ledger.read_message(self.MESSAGE)
        total = said["device_total"]
        entries = oom_ledger.ledger(oom_ledger.held_by_torch(stats, said, False), said, said["device_free"], total)
        self.assertEqual(sum(entry["bytes"] for entry in entries), total)
        self.assertEqual(oom_ledger.cause(said["requested"], entries, None)["kind"], "capacity")
        self.assertEqual(oom_ledger.held_by_torch(stats, said, True).releasable_cache, 139 * GIB)

    def test_the_moment_is_kept_for_the_error_it_belongs_to(self) -> None:
        observers: List[Any] = []
        stats = {"allocated_bytes": {"all": {"current": 7 * GIB}}}
        cuda = types.SimpleNamespace(
            is_initialized=lambda: True, current_device=lambda: 0, memory=types.SimpleNamespace(memory_stats_as_nested_dict=lambda device: stats, _snapshot=dict)
        )
        native = types.SimpleNamespace(_cuda_attach_out_of_memory_observer=observers.append, _cuda_isHistoryEnabled=lambda: True)
        with mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(cuda=cuda, _C=native)}), mock.patch.object(oom_moment, "_is_attached", False):
            oom_moment.attach()
            oom_moment.attach()
            self.assertEqual(len(observers), 1)
            observers[0](0, 2 * GIB + 1000, 80 * GIB, GIB)
            moment = oom_moment.take(2 * GIB)
            assert moment is not None
            self.assertEqual((moment.free, moment.stats, moment.snapshot), (GIB, stats, {}))
            self.assertIsNone(oom_moment.take(2 * GIB), "it is told once")
            observers[0](0, 2 * GIB, 80 * GIB, GIB)
            self.assertIsNone(oom_moment.take(5 * GIB), "another error")
            cuda.memory.memory_stats_as_nested_dict = None
            observers[0](0, 2 * GIB, 80 * GIB, GIB)
            self.assertIsNone(oom_moment.take(2 * GIB))

    def test_who_holds_the_memory(self) -> None:
        def block(size: int, line: int, state: str = "active_allocated", file: str = "/home/user/train.py") -> Dict[str, Any]:
            inner = {"filename": "/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py", "line": 1, "name": "gelu"}
            return {"size": size, "state": state, "frames": [{"filename": "??", "line": 0, "name": ""}, inner, {"filename": file, "line": line, "name": "step"}]}

        segments = [{"blocks": [block(10, 7), block(30, 8), block(25, 7), block(99, 9, "inactive"), {"size": 50, "state": "active_allocated"}]}]
        found = snapshots.holders({"segments": segments})
        self.assertEqual([(holder["line"], holder["bytes"], holder["blocks"]) for holder in found], [(7, 35, 2), (8, 30, 1)])
        self.assertEqual(snapshots.holders({}), [])

    def test_a_snapshot_is_cut_to_its_limit(self) -> None:
        folder = tempfile.mkdtemp()
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", folder], check=True))
        traces = [[{"action": "alloc", "addr": number, "size": 512} for number in range(20_000)]]
        written = snapshots.write_snapshot({"segments": [1], "device_traces": traces}, folder, "a.pickle", limit_bytes=100_000)
        self.assertLessEqual(written["bytes"], 100_000)
        self.assertFalse(written["complete"])
        with open(written["path"], "rb") as file:
            saved = pickle.load(file)
        self.assertEqual(saved["segments"], [1])
        self.assertEqual(saved["device_traces"][0][-1]["addr"], 19_999)
        refused = snapshots.write_snapshot({"segments": ["x" * 200_000]}, folder, "b.pickle", limit_bytes=100_000)
        self.assertIsNone(refused["path"])


def _noise(dice: random.Random, base: float) -> float:
    return dice.choice([0.0, 0.0, 0.001, 0.02]) * base


def _flat(dice: random.Random, level: float, steps: int, noise: float) -> List[float]:
    return [level + dice.uniform(0, noise) for _ in range(steps)]


def _climb(dice: random.Random, level: float, rise: float, steps: int, noise: float) -> List[float]:
    return [level + rise * (step + 1) / steps + dice.uniform(0, noise) for step in range(steps)]


def leak_that_begins_late(dice: random.Random) -> List[float]:
    base = dice.uniform(1, 80)
    noise = _noise(dice, base)
    rise = max(dice.uniform(0.1, 3) * base, 6 * noise)
    return _flat(dice, base, dice.randint(0, 2000), noise) + _climb(dice, base, rise, dice.randint(10, 1500), noise)


def leak_with_pauses(dice: random.Random) -> List[float]:
    level = dice.uniform(1, 80)
    noise = _noise(dice, level)
    parts = dice.randint(2, 6)
    rise = max(dice.uniform(0.3, 3) * level, 6 * noise) / parts
    levels: List[float] = []
    for part in range(parts):
        levels += _climb(dice, level, rise, dice.randint(10, 200), noise)
        level += rise
        levels += _flat(dice, level, dice.randint(0, len(levels) // 4 if part == parts - 1 else 300), noise)
    return levels


def leak_in_few_large_steps(dice: random.Random) -> List[float]:
    level = dice.uniform(1, 80)
    noise = _noise(dice, level)
    count, every = dice.randint(5, 20), dice.randint(3, 200)
    rise = max(dice.uniform(0.3, 3) * level, 8 * noise) / count
    levels = _flat(dice, level, dice.randint(3, 200), noise)
    for _ in range(count):
        level += rise
        levels += _flat(dice, level, every, noise)
    return levels


def leak_of_many_small_blocks(dice: random.Random) -> List[float]:
    base = dice.uniform(1, 80)
    noise = _noise(dice, base)
    return _climb(dice, base, max(dice.uniform(0.3, 2) * base, 6 * noise), dice.randint(2000, 8000), noise)


def leak_after_a_start(dice: random.Random) -> List[float]:
    base = dice.uniform(1, 20)
    level = base * dice.uniform(2, 8)
    noise = _noise(dice, base)
    rise = max(dice.uniform(0.1, 1) * level, 6 * noise)
    return [base] * dice.randint(1, 2) + _flat(dice, level, dice.randint(0, 500), noise) + _climb(dice, level, rise, dice.randint(10, 1500), noise)


def leak_that_fills_the_gpu_in_seconds(dice: random.Random) -> List[float]:
    base = dice.uniform(1, 80)
    return _flat(dice, base, dice.randint(20, 800), 0) + _climb(dice, base, 2 * base, dice.randint(7, 12), 0)


def level(dice: random.Random) -> List[float]:
    base = dice.uniform(1, 80)
    return _flat(dice, base, dice.randint(1, 3000), _noise(dice, base))


def jumps(dice: random.Random) -> List[float]:
    held = dice.uniform(1, 30)
    noise = _noise(dice, held)
    levels: List[float] = []
    for _ in range(dice.randint(2, 4)):
        levels += _flat(dice, held, dice.randint(5, 300), noise)
        held *= 1.6
    return levels


def swings(dice: random.Random) -> List[float]:
    base = dice.uniform(1, 80)
    return [base * (1 + dice.lognormvariate(-1, 1)) for _ in range(dice.randint(30, 3000))]


def saw_teeth(dice: random.Random) -> List[float]:
    base, period = dice.uniform(1, 80), dice.randint(3, 100)
    height = base * dice.uniform(0.05, 2)
    return [base + height * (step % period) / period for step in range(dice.randint(2 * period, 40 * period))]


def a_rise_that_settled(dice: random.Random) -> List[float]:
    base, steps = dice.uniform(1, 80), dice.randint(5, 100)
    noise, rise = _noise(dice, base), base * dice.uniform(0.5, 3)
    return _climb(dice, base, rise, steps, noise) + _flat(dice, base + rise, dice.randint(2 * steps + 8, 20 * steps + 20), noise)


def given_back_before_the_end(dice: random.Random) -> List[float]:
    base = dice.uniform(1, 80)
    noise = _noise(dice, base)
    return _climb(dice, base, base * dice.uniform(0.5, 3), dice.randint(20, 200), noise) + _flat(dice, base, dice.randint(4, 50), noise)


HISTORIES = {
    leak_that_begins_late: True,
    leak_with_pauses: True,
    leak_in_few_large_steps: True,
    leak_of_many_small_blocks: True,
    leak_after_a_start: True,
    leak_that_fills_the_gpu_in_seconds: True,
    level: False,
    jumps: False,
    swings: False,
    saw_teeth: False,
    a_rise_that_settled: False,
    given_back_before_the_end: False,
}


class GrowthTest(unittest.TestCase):
    def rise(self, levels: List[float]) -> Optional[Dict[str, float]]:
        growth = Growth()
        for step, level in enumerate(levels):
            growth.add(step * 0.25, step, int(level * GIB))
        return growth.steady_rise()

    def test_a_leak(self) -> None:
        rise = self.rise([10 + 0.5 * step for step in range(200)])
        assert rise is not None
        self.assertEqual((rise["bytes"], rise["steps"], rise["bytes_per_step"]), (99.5 * GIB, 199, GIB / 2))

    def test_a_long_one_in_bounded_memory(self) -> None:
        rise = self.rise([1 + 0.001 * step for step in range(100_000)])
        assert rise is not None
        self.assertAlmostEqual(rise["bytes_per_step"] / GIB, 0.001, places=4)
        self.assertGreater(rise["steps"], 99_000)

    def test_with_a_ragged_edge(self) -> None:
        self.assertIsNotNone(self.rise([10 + 0.5 * step + (0.3 if step % 3 else 0) for step in range(200)]))

    def test_no_leak(self) -> None:
        self.assertIsNone(self.rise([]))
        self.assertIsNone(self.rise([50.0] * 100))
        self.assertIsNone(self.rise([1, 20, 40, 60, 70]), "a start")
        self.assertIsNone(self.rise([1.0] + [70.0] * 50), "a start and then level")
        self.assertIsNone(self.rise([10.0] * 50 + [60.0] * 50), "one jump")
        self.assertIsNone(self.rise([30 + 10 * (step % 5) for step in range(100)]), "up and down")
        self.assertIsNone(self.rise([10 + 0.5 * step for step in range(100)] + [10.0] * 20), "given back before the end")

    def test_every_kind_of_history(self) -> None:
        """Made-up histories of each kind, with flat parts and noise anywhere; each kind many times."""
        for kind, is_leak in HISTORIES.items():
            for seed in range(60):
                levels = kind(random.Random("%s %d" % (kind.__name__, seed)))
                with self.subTest(kind=kind.__name__, seed=seed):
                    self.assertEqual(self.rise(levels) is not None, is_leak)

    def test_the_rate_is_of_the_rise_and_not_of_the_flat_part_before_it(self) -> None:
        rise = self.rise([10.0] * 4000 + [10 + 1.4 * step for step in range(1, 90)])
        assert rise is not None
        self.assertAlmostEqual(rise["bytes_per_step"] / GIB, 1.4, places=1)
        self.assertLess(rise["steps"], 95)

    def test_what_steps_need(self) -> None:
        def needs(peaks: List[float], held: float = 10.0) -> Dict[str, float]:
            growth = Growth()
            for step, peak in enumerate(peaks):
                growth.add(step, step, int(held * GIB), int(max(peaks[: step + 1]) * GIB))
            found = growth.step_needs()
            assert found is not None
            return found

        self.assertEqual(needs([30.0] * 50), {"bytes": 20 * GIB, "held": 10 * GIB, "grew": 0, "steps": 0})
        growing = needs([30 + 0.5 * step for step in range(100)])
        self.assertGreater(growing["grew"], 40 * GIB)
        self.assertEqual(needs([30.0] * 50 + [60.0])["grew"], 0, "one large step")
        self.assertIsNone(Growth().step_needs())
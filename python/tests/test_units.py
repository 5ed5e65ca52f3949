"""The parts by themselves: no agent, no process of their own."""
from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import tracemalloc
import types
import unittest
from typing import Any, Dict, List, Optional, Tuple
from unittest import mock

from gpuwarden import OOMDetector, RiskLevel, allocator, deferred, oom_ledger, oom_moment, oom_report, snapshots
from gpuwarden.growth import Growth
from gpuwarden.gpu_metrics import GPUMetrics, _metrics
from gpuwarden.provenance import git_commit
from gpuwarden.python_memory import PythonMemory
from gpuwarden.ranks import Ranks, read_ranks, shared_run_id
from gpuwarden.settings import read_settings
from gpuwarden.spool import Spool, leftovers
from gpuwarden.steps import CUSTOM_LIMIT, Step, encode, is_ready, scalar, scalars
from gpuwarden.training_run import whole_steps

GIB = 1 << 30


class PlanTest(unittest.TestCase):
    def test_only_what_is_a_number_of_steps_counts(self) -> None:
        self.assertEqual([whole_steps(count) for count in (100, 100.0, "7", True)], [100, 100, 7, 1])
        for count in (None, 0, -1, math.inf, math.nan, "many", [], 2**60):
            self.assertIsNone(whole_steps(count))


class RanksTest(unittest.TestCase):
    def test_launchers(self) -> None:
        self.assertEqual(read_ranks({}), Ranks(0, 0, 1))
        self.assertEqual(read_ranks({"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}), Ranks(5, 1, 8))
        self.assertEqual(read_ranks({"SLURM_PROCID": "3", "SLURM_LOCALID": "3", "SLURM_NTASKS": "16"}), Ranks(3, 3, 16))
        self.assertEqual(read_ranks({"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "9"}), Ranks(0, 0, 2))
        self.assertEqual(read_ranks({"RANK": "many"}), Ranks(0, 0, 1))

    def test_every_rank_comes_to_the_same_id(self) -> None:
        elastic = {"TORCHELASTIC_RUN_ID": "job-1"}
        ids = {shared_run_id("train", 1, dict(elastic, RANK=str(rank))) for rank in range(8)}
        self.assertEqual(len(ids), 1)
        others = [
            shared_run_id("train", 2, elastic),
            shared_run_id("eval", 1, elastic),
            shared_run_id("train", 1, dict(elastic, TORCHELASTIC_RESTART_COUNT="1")),
            shared_run_id("train", 1, {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}),
            shared_run_id("train", 1, {"RANK": "0", "MASTER_ADDR": "node1", "TORCHELASTIC_RUN_ID": "none"}),
        ]
        self.assertEqual(len(ids | set(others)), 6)
        self.assertIsNone(shared_run_id("train", 1, {}))


class SettingsTest(unittest.TestCase):
    def test_defaults_and_variables(self) -> None:
        settings = read_settings({})
        self.assertEqual((settings.url, settings.token, settings.disabled, settings.is_loopback), ("http://127.0.0.1:4780", None, False, True))
        settings = read_settings({"GPUWARDEN_URL": "http://node7:4780/", "GPUWARDEN_TOKEN": "t", "GPUWARDEN_SPOOL": "off", "GPUWARDEN_DISABLED": "true"})
        self.assertEqual((settings.url, settings.token, settings.spool_folder), ("http://node7:4780", "t", None))
        self.assertEqual((settings.disabled, settings.is_loopback), (True, False))
        self.assertEqual(read_settings({"TRACEPARENT": "00-%s-b7ad6b7169203331-01" % ("a" * 32)}).correlation_id, "a" * 32)


class StepsTest(unittest.TestCase):
    def line(self, **values: Any) -> Dict[str, Any]:
        fields: Dict[str, Any] = dict.fromkeys(Step._fields)
        fields.update(seq=1, step=2, at_ms=3, **values)
        decoded: Dict[str, Any] = json.loads(encode(Step(**fields), {"rank": 0}))
        return decoded

    def test_not_a_number_survives(self) -> None:
        line = self.line(loss=math.nan, grad_norm=math.inf, lr=-math.inf)
        self.assertTrue(math.isnan(line["loss"]))
        self.assertEqual((line["grad_norm"], line["lr"]), (math.inf, -math.inf))

    def test_what_is_not_known_is_left_out(self) -> None:
        self.assertEqual(self.line(), {"seq": 1, "step": 2, "t": 3, "rank": 0})
        self.assertEqual(self.line(loss=0)["loss"], 0)

    def test_numbers_of_all_kinds(self) -> None:
        class Scalar:
            def __float__(self) -> float:
                return 1.5

        self.assertEqual(scalars({"a": 1, "b": True, "c": Scalar(), "d": "text", "e": None}), {"a": 1, "b": 1, "c": 1.5})
        self.assertIsNone(scalar("text"))
        self.assertIsNone(scalar(object()))
        self.assertEqual(len(scalars({str(number): number for number in range(500)}) or {}), CUSTOM_LIMIT)


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


class SpoolTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.folder], check=True))
        self.head = {"run": {"id": "a", "name": "n"}, "url": "http://agent", "format": 1}

    def test_bounded(self) -> None:
        spool = Spool(self.folder, "a", self.head, limit_bytes=1000)
        kept, reason = spool.append([b"x" * 99 + b"\n"] * 20)
        self.assertTrue(0 < kept < 10)
        self.assertIn("has reached", reason or "")
        spool.close()

    def test_read_back_in_order_and_gone_when_delivered(self) -> None:
        spool = Spool(self.folder, "a", self.head)
        lines = [b'{"seq":%d}\n' % number for number in range(10)]
        spool.append(lines)
        first, offset = spool.read(4, 10**6)
        spool.advance(offset)
        spool.append([b'{"seq":10}\n'])
        rest, offset = spool.read(100, 10**6)
        self.assertEqual(first + rest, lines + [b'{"seq":10}\n'])
        spool.advance(offset)
        self.assertTrue(spool.is_empty)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_file_that_was_imported_and_removed_goes_on_in_a_new_one(self) -> None:
        spool = Spool(self.folder, "a", self.head)
        spool.append([b'{"seq":1}\n'])
        os.unlink(os.path.join(self.folder, "a.jsonl"))
        spool.append([b'{"seq":2}\n'])
        spool.close()
        with open(os.path.join(self.folder, "a.jsonl"), "rb") as file:
            self.assertEqual(file.read().splitlines()[1:], [b'{"seq":1}', b'{"seq":2}'])

    def test_a_file_that_a_living_node_process_writes_is_left_alone(self) -> None:
        with open("/proc/self/stat", encoding="utf-8") as file:
            start = int(file.read().rpartition(")")[2].split()[19])
        for name, began in (("alive", start), ("gone", start + 1)):
            with open(os.path.join(self.folder, name + ".jsonl"), "w", encoding="utf-8") as file:
                file.write(json.dumps(dict(self.head, process={"pid": os.getpid(), "start": began})) + "\n")
        found = list(leftovers(self.folder, "http://agent"))
        self.assertEqual([os.path.basename(leftover.path) for leftover in found], ["gone.jsonl"])
        found[0].release(delivered=True)
        self.assertEqual(os.listdir(self.folder), ["alive.jsonl"])

    def test_a_file_in_use_is_nobody_elses(self) -> None:
        spool = Spool(self.folder, "a", self.head)
        spool.append([b'{"seq":1}\n'])
        self.assertEqual(list(leftovers(self.folder, "http://agent")), [])
        spool.close()
        self.assertEqual(list(leftovers(self.folder, "http://another")), [])
        found = list(leftovers(self.folder, "http://agent"))
        self.assertEqual([one.head["run"]["id"] for one in found], ["a"])
        found[0].release(delivered=True)
        self.assertEqual(os.listdir(self.folder), [])


class AllocatorTest(unittest.TestCase):
    def test_nothing_without_torch_or_before_cuda_is_in_use(self) -> None:
        with mock.patch.dict(sys.modules):
            sys.modules.pop("torch", None)
            self.assertIsNone(allocator.figures())
        unused = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: False))
        half_imported = types.SimpleNamespace()
        for torch in (unused, half_imported):
            with mock.patch.dict(sys.modules, {"torch": torch}):
                self.assertIsNone(allocator.figures())

    def test_figures_that_are_missing_are_left_out(self) -> None:
        stats = {"allocated_bytes": {"all": {"current": 5, "peak": 7}}, "num_ooms": 0}
        self.assertEqual(allocator.figures(stats), {"allocated": 5, "peak_allocated": 7, "ooms": 0})


class OomReportTest(unittest.TestCase):
    def test_recognised_behind_other_exceptions(self) -> None:
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


class OomDetectorTest(unittest.TestCase):
    def gpu(self, percent: float, live: bool = True) -> GPUMetrics:
        view = {
            "info": {"index": 0, "label": "0", "id": "GPU-1", "provenance": "live", "name": "H200"},
            "sample": {"at": 1_000, "memoryUsedBytes": percent * GIB, "memoryTotalBytes": 100 * GIB, "utilizationRatio": 0.5},
            "live": live,
        }
        metrics = _metrics(view)
        assert metrics is not None
        return metrics

    def finding(self, **more: Any) -> Dict[str, Any]:
        finding: Dict[str, Any] = {
            "detector": "oom",
            "state": "active",
            "subject": {"gpuIndex": 0, "run": "r"},
            "riskLevel": "critical",
            "predictedAt": 46_200,
            "confidence": 0.82,
            "advice": ["Save a checkpoint now"],
        }
        finding.update(more)
        return finding

    def test_the_forecast_is_passed_on(self) -> None:
        (prediction,) = OOMDetector().assess([self.gpu(87.3)], [self.finding()], 1_000)
        self.assertEqual((prediction.risk_level.value, prediction.device_id, prediction.confidence), ("critical", 0, 0.82))
        self.assertAlmostEqual(prediction.predicted_time or 0, 45.2)
        self.assertEqual(
            str(prediction).split("\n"),
            [
                "[WARNING] OOM Warning: GPU 0",
                "   Risk Level: critical",
                "   Current Usage: 87.3%",
                "   Predicted OOM Time: 45.2 seconds later",
                "   Confidence: 0.82",
                "   Recommendation: Save a checkpoint now",
            ],
        )

    def test_a_level_alone_is_no_forecast(self) -> None:
        detector = OOMDetector(threshold=85.0)
        self.assertEqual(detector.assess([self.gpu(84.9)], [], 0), [])
        (prediction,) = detector.assess([self.gpu(86)], [], 0)
        self.assertEqual((prediction.risk_level, prediction.predicted_time), (RiskLevel.MEDIUM, None))
        self.assertEqual(detector.assess([self.gpu(99)], [], 0)[0].risk_level, RiskLevel.HIGH)
        self.assertEqual(detector.assess([self.gpu(99, live=False)], [], 0), [])
        self.assertEqual(OOMDetector(devices=[1]).assess([self.gpu(99)], [], 0), [])

    def test_other_findings_are_not_its_business(self) -> None:
        for other in (self.finding(detector="thermal"), self.finding(state="resolved"), self.finding(subject={"gpuIndex": None})):
            self.assertEqual(OOMDetector().assess([], [other], 0), [])

    def test_wrong_arguments_are_named(self) -> None:
        with self.assertRaisesRegex(ValueError, "threshold"):
            OOMDetector(threshold=850)


class PythonMemoryTest(unittest.TestCase):
    def test_the_line_that_grows_is_named(self) -> None:
        memory = PythonMemory(interval=3600)
        kept = []
        memory.start()
        self.addCleanup(memory.stop)
        for _ in range(5):
            kept.append([bytes(1000) for _ in range(200)])  # this line grows
            memory.look()
        report = memory.report()
        worst = report["lines"][0]
        self.assertTrue(worst["growing"], worst)
        self.assertIn("this line grows", worst["source"])
        self.assertTrue(worst["file"].endswith("test_units.py"))
        self.assertGreater(worst["grown_bytes"], 900_000)
        memory.stop()
        self.assertFalse(tracemalloc.is_tracing())


class GitTest(unittest.TestCase):
    def test_the_commit_without_starting_git(self) -> None:
        folder = tempfile.mkdtemp()
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", folder], check=True))
        git = os.path.join(folder, ".git")
        below = os.path.join(folder, "a", "b")
        os.makedirs(os.path.join(git, "refs", "heads"))
        os.makedirs(below)

        def write(name: str, text: str) -> None:
            with open(os.path.join(git, name), "w", encoding="utf-8") as file:
                file.write(text)

        write("HEAD", "ref: refs/heads/main\n")
        self.assertIsNone(git_commit(below))
        write("packed-refs", "# pack-refs\n%s refs/heads/main\n" % ("b" * 40))
        self.assertEqual(git_commit(below), "b" * 40)
        write("refs/heads/main", "c" * 40 + "\n")
        self.assertEqual(git_commit(below), "c" * 40)
        write("HEAD", "d" * 40 + "\n")
        self.assertEqual(git_commit(below), "d" * 40)


if __name__ == "__main__":
    unittest.main()

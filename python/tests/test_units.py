"""The parts by themselves: no agent, no process of their own."""
from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import tracemalloc
import types
import unittest
from typing import Any, Dict
from unittest import mock

from gpuwarden import OOMDetector, RiskLevel, allocator
from gpuwarden.formats import format_bytes, format_percent
from gpuwarden.gpu_metrics import GPUMetrics, _metrics
from gpuwarden.hyperparameters import changed_fields, flat
from gpuwarden.provenance import git_commit
from gpuwarden.python_memory import PythonMemory
from gpuwarden.ranks import Ranks, read_ranks, shared_run_id
from gpuwarden.settings import read_settings
from gpuwarden.spool import Spool, leftovers
from gpuwarden.steps import CUSTOM_LIMIT, Step, encode, scalar, scalars, whole_steps

GIB = 1 << 30


class FormatsTest(unittest.TestCase):
    def test_the_same_text_as_on_every_screen(self) -> None:
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "fixtures", "formats.json"), encoding="utf-8") as file:
            examples = json.load(file)
        for written, cases in ((format_bytes, examples["bytes"]), (format_percent, examples["percent"])):
            self.assertEqual([written(value) for value, _ in cases], [text for _, text in cases])
        self.assertEqual(format_percent(None), "N/A")


class HyperparametersTest(unittest.TestCase):
    def test_the_same_are_kept_and_masked_as_by_the_agent(self) -> None:
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "fixtures", "hyperparameters.json"), encoding="utf-8") as file:
            for given, kept in json.load(file):
                self.assertEqual(flat(given), kept)

    def test_what_programs_call_a_config(self) -> None:
        given = argparse.Namespace(lr=0.1, betas=(0.9, 0.95), inf=math.inf, big=2**60, folder=pathlib.PurePosixPath("/x"))
        self.assertEqual(flat(given), {"lr": 0.1, "betas": "(0.9, 0.95)", "inf": "inf", "big": str(2**60), "folder": "/x"})
        config = dataclasses.make_dataclass("Config", [("lr", float, 0.5), ("steps", int, 7), ("name", str, "a")])
        self.assertEqual(flat(config(steps=9)), {"lr": 0.5, "steps": 9, "name": "a"})
        self.assertEqual(changed_fields(config(steps=9), ("lr",)), {"lr": 0.5, "steps": 9})

    def test_bounded_and_never_an_error(self) -> None:
        many = {"n%d" % number: "v" * 5000 for number in range(1000)}
        self.assertLess(len(json.dumps(flat(many))), 64 * 1024)
        loop: Dict[str, Any] = {}
        loop["again"] = loop
        self.assertLess(len(flat(loop)), 10)
        for odd in (None, 7, "text", [1], object(), type, mock.MagicMock(to_dict=mock.MagicMock(side_effect=ValueError))):
            self.assertEqual(flat(odd), {})


class OldestPythonTest(unittest.TestCase):
    def test_every_file_is_written_for_python_3_8(self) -> None:
        root = os.path.join(os.path.dirname(__file__), "..", "gpuwarden")
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names if name.endswith(".py")]
        self.assertGreater(len(paths), 40)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read(), path, feature_version=(3, 8))
            # `list[int]` and `int | None` are fine in annotations that nobody evaluates, and nowhere else.
            annotated = any(isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation is not None for node in ast.walk(tree))
            postponed = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
            self.assertTrue(postponed or not annotated, "%s: annotations without `from __future__ import annotations`" % path)


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

    def test_the_limit_that_the_program_set(self) -> None:
        cuda = types.SimpleNamespace(
            is_initialized=lambda: True,
            current_device=lambda: 0,
            get_device_properties=lambda device: types.SimpleNamespace(total_memory=80 * GIB),
        )
        for functions, limit in (
            ({"_cuda_getMemoryFraction": lambda device: 0.25}, 20 * GIB),
            ({"_cuda_getMemoryFraction": lambda device: 1.0}, None),
            ({}, None),
        ):
            torch = types.SimpleNamespace(cuda=cuda, _C=types.SimpleNamespace(**functions))
            with mock.patch.dict(sys.modules, {"torch": torch}):
                found = allocator.figures({"num_ooms": 0})
                assert found is not None
                self.assertEqual(found.get("limit"), limit)


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

    def test_a_forecast_of_a_recording_is_ahead_of_its_own_time(self) -> None:
        today = 1_900_000_000_000.0
        (prediction,) = OOMDetector().assess([self.gpu(87.3)], [self.finding(at=900)], today)
        self.assertAlmostEqual(prediction.predicted_time or 0, 45.2)
        (prediction,) = OOMDetector().assess([], [self.finding(at=1_200)], today)
        self.assertAlmostEqual(prediction.predicted_time or 0, 45.0)
        (prediction,) = OOMDetector().assess([self.gpu(87.3)], [self.finding(predictedAt=500)], today)
        self.assertEqual(prediction.predicted_time, 0.0)

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

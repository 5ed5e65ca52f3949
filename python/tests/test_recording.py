"""Which lines keep memory: the recording itself, with a PyTorch that is played. On a real one: test/hardware/live_leak.py."""
from __future__ import annotations

import contextlib
import sys
import tempfile
import tracemalloc
import types
import unittest
from typing import Any, Dict, Iterator, List, Optional, Tuple
from unittest import mock

import gpuwarden
from gpuwarden import device_recording, recording, snapshots
from gpuwarden.memory import MemoryDebugger
from gpuwarden.recording import Recorder, Recording
from gpuwarden.settings import read_settings

MIB = 1 << 20
LIBRARY = {"filename": "/opt/venv/lib/python3.12/site-packages/torch/nn/functional.py", "line": 1, "name": "linear"}


class FakeTorch:
    """An allocator that gives the lowest free address, as a caching one tends to; stacks only while it records."""

    def __init__(self, signature: str = "new") -> None:
        self.blocks: Dict[int, Tuple[int, List[Any]]] = {}
        self.enabled: Optional[str] = None
        self.calls: List[Any] = []
        self.signature = signature
        self.native = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: self.enabled is not None, _cuda_record_memory_history=self._native)

    def _native(self, enabled: Optional[str], *_: Any) -> None:
        self.calls.append(enabled)
        self.enabled = enabled

    def record(self, enabled: Any = "all", *args: Any, **named: Any) -> None:
        if enabled is not None and set(named) != {"context", "stacks"}:
            raise TypeError("unexpected")
        self.native._cuda_record_memory_history(enabled, *args)

    def record_as_in_2_0(self, enabled: bool, record_context: bool = True, trace_alloc_max_entries: int = 1) -> None:
        self.enabled = "all" if enabled else None

    def make(self, size: int, file: str = "/home/user/train.py", line: int = 1, name: str = "step") -> int:
        address = 0x7F0000000000
        while address in self.blocks:
            address += 1 << 30
        frames = [LIBRARY, {"filename": file, "line": line, "name": name}] if self.enabled else []
        self.blocks[address] = (size, frames)
        return address

    def free(self, address: int) -> None:
        del self.blocks[address]

    def memory_snapshot(self) -> List[Dict[str, Any]]:
        blocks = [{"address": at, "size": size, "state": "active_allocated", "frames": frames} for at, (size, frames) in self.blocks.items()]
        idle = {"address": 1, "size": 99, "state": "inactive", "frames": []}
        return [{"device": 0, "address": 1, "blocks": [*blocks, idle]}, {"device": 1, "blocks": [{"size": 5, "state": "active_allocated", "frames": [LIBRARY]}]}]

    def stats(self, device: int) -> Dict[str, Any]:
        return {"allocated_bytes": {"all": {"current": sum(size for size, _ in self.blocks.values())}}}

    def module(self) -> Any:
        memory = types.SimpleNamespace(
            memory_snapshot=self.memory_snapshot,
            _snapshot=lambda: {"segments": self.memory_snapshot(), "device_traces": []},
            memory_stats_as_nested_dict=self.stats,
            _record_memory_history=self.record if self.signature == "new" else self.record_as_in_2_0,
        )
        cuda = types.SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0, get_device_properties=lambda _: None, memory=memory)
        return types.SimpleNamespace(cuda=cuda, _C=self.native)


class Played(unittest.TestCase):
    def setUp(self) -> None:
        self.sent: List[Dict[str, Any]] = []
        self.recorder = Recorder(self.sent.append, 0, True)
        self.torch = FakeTorch()
        self.step = 0

    @contextlib.contextmanager
    def with_torch(self) -> Iterator[None]:
        with mock.patch.dict(sys.modules, {"torch": self.torch.module()}):
            yield

    def ask(self, steps: int = 20, kind: str = "gpu", trigger: str = "leak", **more: Any) -> None:
        self.recorder.ask(dict({"id": "r%d" % self.step, "kind": kind, "steps": steps, "trigger": trigger}, **more))

    def end_of_step(self, seconds: float = 0.01) -> None:
        self.step += 1
        if self.recorder.is_wanted:
            self.recorder.on_step(self.step, seconds)
        else:
            self.recorder.recent.append(seconds)


class DeviceRecordingTest(Played):
    def test_the_line_that_leaks_is_named_with_every_byte(self) -> None:
        with self.with_torch():
            weights = self.torch.make(500 * MIB)
            gradient = output = None
            log: List[int] = []

            def train(count: int) -> None:
                nonlocal gradient, output
                for _ in range(count):
                    # A gradient that is made anew, an output that lives for two steps, and a list of losses that is emptied every five.
                    if gradient is not None:
                        self.torch.free(gradient)
                    before, output = output, self.torch.make(8 * MIB, line=30, name="forward")
                    gradient = self.torch.make(40 * MIB, line=31, name="backward")
                    if before is not None:
                        self.torch.free(before)
                    log.append(self.torch.make(2 * MIB, line=50, name="log"))
                    if len(log) == 5:
                        for address in log:
                            self.torch.free(address)
                        del log[:]
                    self.torch.make(6 * MIB, line=77, name="remember")
                    self.end_of_step()

            train(60)
            self.assertEqual(self.torch.calls, [], "nothing is switched without a request")
            self.ask(20)
            train(30)
            self.assertEqual(self.torch.calls, ["state", None])
            self.torch.free(weights)
        (result,) = self.sent
        self.assertEqual([(line["file"], line["line"], line["function"]) for line in result["lines"]], [("/home/user/train.py", 77, "remember")])
        line = result["lines"][0]
        self.assertEqual((line["bytes"], line["blocks"], line["bytes_per_step"]), (18 * 6 * MIB, 18, 6 * MIB))
        self.assertGreater(line["share"], 0.9)
        self.assertEqual((result["id"], result["steps"], result["trigger"], result["step_seconds_before"]), ("r60", 20, "leak", 0.01))

    def test_a_healthy_program_has_no_line(self) -> None:
        with self.with_torch():
            self.ask(20)
            held: List[int] = []
            for _ in range(30):
                held.append(self.torch.make(8 * MIB, line=30))
                if len(held) > 3:
                    self.torch.free(held.pop(0))
                self.end_of_step()
        self.assertEqual(self.sent[0]["lines"], [])
        self.assertNotIn("reason", self.sent[0])

    def test_a_leak_every_fourth_step_has_its_mean(self) -> None:
        with self.with_torch():
            self.ask(26)
            for number in range(40):
                if number % 4 == 0:
                    self.torch.make(8 * MIB, line=12)
                self.end_of_step()
        self.assertAlmostEqual(self.sent[0]["lines"][0]["bytes_per_step"] / MIB, 2.0, delta=0.1)

    def test_steps_that_are_logged_by_the_dozen(self) -> None:
        with self.with_torch():
            self.ask(10)
            for number in range(20):
                self.torch.make(12 * MIB, line=12)
                self.recorder.is_wanted and self.recorder.on_step(number * 12, 0.1)
        self.assertEqual(self.sent[0]["lines"][0]["bytes_per_step"], MIB)

    def test_a_program_that_records_itself_is_left_alone(self) -> None:
        with self.with_torch():
            self.torch.enabled = "all"
            self.ask()
            self.end_of_step()
            self.assertEqual((self.torch.enabled, self.torch.calls), ("all", []))
            self.assertIn("records its memory history itself", self.sent[0]["reason"])

    def test_asked_by_hand_its_own_history_becomes_a_file(self) -> None:
        with self.with_torch(), tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", GPUWARDEN_SNAPSHOTS=folder):
            self.torch.enabled = "all"
            self.torch.make(3 * MIB, line=9)
            self.ask(trigger="hand")
            self.end_of_step()
            self.assertTrue(self.sent[0]["snapshot"]["path"].startswith(folder))
            self.assertEqual((self.sent[0]["holders"][0]["line"], self.torch.enabled), (9, "all"))

    def test_a_program_that_begins_to_record_meanwhile_keeps_its_recording(self) -> None:
        with self.with_torch():
            self.ask(20)
            for number in range(25):
                self.end_of_step()
                if number == 4:
                    sys.modules["torch"]._C._cuda_record_memory_history("all")
            self.assertEqual((self.torch.enabled, self.torch.calls), ("all", ["state", "all"]))
            self.assertEqual(self.torch.native._cuda_record_memory_history, self.torch._native, "nothing of ours stays behind")
        self.assertIn("began to record", self.sent[0]["reason"])

    def test_an_older_pytorch_a_missing_one_and_one_that_fails(self) -> None:
        self.ask()
        self.end_of_step()
        self.assertIn("does not use a GPU", self.sent[0]["reason"])
        self.torch = FakeTorch("2.0")
        with self.with_torch():
            self.ask()
            self.end_of_step()
            self.assertIn("2.1 or newer", self.sent[1]["reason"])
        self.torch = FakeTorch()
        with self.with_torch():
            self.ask()
            self.end_of_step()
            with mock.patch.object(sys.modules["torch"].cuda.memory, "memory_snapshot", side_effect=RuntimeError("boom")):
                for _ in range(20):
                    self.end_of_step()
            self.assertIn("boom", self.sent[2]["reason"])
            self.assertIsNone(self.torch.enabled, "switched off whatever happens")
            self.assertFalse(self.recorder.is_wanted)

    def test_it_ends_early_where_it_costs_too_much(self) -> None:
        clock = [0.0]
        with self.with_torch(), mock.patch.object(recording.time, "monotonic", lambda: clock[0]):
            for _ in range(10):
                self.end_of_step(0.1)
            self.ask(500)
            for _ in range(60):
                clock[0] += 0.4
                self.torch.make(MIB, line=77)
                self.end_of_step(0.4)
        self.assertEqual((self.sent[0]["steps"], self.sent[0]["lines"][0]["line"]), (11, 77))
        self.assertEqual((self.sent[0]["step_seconds_before"], self.sent[0]["step_seconds_during"]), (0.1, 0.4))

    def test_memory_is_bounded(self) -> None:
        with self.with_torch(), mock.patch.object(device_recording, "_MOST_BLOCKS", 10):
            self.ask()
            for _ in range(30):
                self.torch.make(MIB)
                self.end_of_step()
        self.assertIn("more than 10 blocks", self.sent[0]["reason"])
        self.assertIsNone(self.torch.enabled)


class RequestTest(Played):
    def test_a_request_counts_once_and_nonsense_never(self) -> None:
        for asked in (None, [], "x", {}, {"id": "a"}, {"id": 4, "kind": "gpu"}, {"id": "a", "kind": "disk"}):
            self.recorder.ask(asked)
        self.assertFalse(self.recorder.is_wanted)
        with self.with_torch():
            for _ in range(40):
                self.recorder.ask({"id": "same", "kind": "gpu", "steps": 8})
                self.end_of_step()
        self.assertEqual(len(self.sent), 1)

    def test_a_second_one_waits_its_turn_and_the_end_ends_it(self) -> None:
        with self.with_torch():
            self.ask(20)
            second = self.recorder.start(Recording("gpu", 20))
            self.assertIn("another recording", second.reason or "")
            self.end_of_step()
            self.recorder.close()
            self.assertIsNone(self.torch.enabled)
        self.assertIn("the run ended", self.sent[-1]["reason"])
        self.assertIn("the run is over", self.recorder.start(Recording("gpu", 20)).reason or "")

    def test_a_variable_turns_it_off(self) -> None:
        self.assertFalse(read_settings({"GPUWARDEN_NO_RECORDING": "1"}).may_record)
        self.assertTrue(read_settings({}).may_record)
        self.recorder = Recorder(self.sent.append, 0, False)
        with self.with_torch():
            self.ask()
            for _ in range(10):
                self.end_of_step()
            self.assertEqual(self.torch.calls, [])
        self.assertIn("GPUWARDEN_NO_RECORDING", self.sent[0]["reason"])

    def test_without_an_agent_a_snapshot_can_be_asked_for_in_code(self) -> None:
        with self.with_torch(), tempfile.TemporaryDirectory() as folder:
            with mock.patch.dict("os.environ", GPUWARDEN_URL="http://127.0.0.1:9", GPUWARDEN_SPOOL=folder):
                run = gpuwarden.Run("in code, of a callback")
                asked = gpuwarden.snapshot(steps=8)
                for _ in range(12):
                    self.torch.make(MIB, line=5)
                    run.log(loss=1.0)
                self.assertTrue(asked.is_over)
                self.assertEqual([line["line"] for line in asked.lines], [5])
                run.finish(timeout=0.1)


class HostRecordingTest(Played):
    def test_the_line_whose_objects_stay_is_named(self) -> None:
        kept: List[bytes] = []
        self.ask(20, kind="host")
        for _ in range(30):
            kept.append(bytes(200_000))
            scratch = [bytes(1000) for _ in range(100)]
            self.end_of_step()
        del scratch
        result = self.sent[0]
        self.assertFalse(tracemalloc.is_tracing(), "switched off again")
        self.assertEqual(len(result["lines"]), 1, result["lines"])
        self.assertTrue(result["lines"][0]["file"].endswith("test_recording.py"))
        self.assertAlmostEqual(result["lines"][0]["bytes_per_step"], 200_000, delta=2_000)

    def test_a_program_that_traces_goes_on_tracing(self) -> None:
        tracemalloc.start()
        try:
            self.ask(8, kind="host")
            for _ in range(12):
                self.end_of_step()
            self.assertTrue(tracemalloc.is_tracing())
            self.assertNotIn("reason", self.sent[0])
        finally:
            tracemalloc.stop()


class DebuggerTest(Played):
    def test_the_memory_debugger_knows_who_holds_memory_and_how_it_is_cut_up(self) -> None:
        with self.with_torch():
            self.assertEqual(MemoryDebugger().get_status_report()["memory_by_line"], [])
            self.torch.enabled = "all"
            self.torch.make(6 * MIB, line=8)
            report = MemoryDebugger().get_status_report()
        self.assertEqual([(one["line"], one["bytes"]) for one in report["memory_by_line"]], [(8, 6 * MIB)])
        self.assertEqual((report["fragmentation"]["free_bytes"], report["fragmentation"]["unusable_share_by_request"][str(MIB)]), (99, 1.0))
        self.assertEqual((MemoryDebugger().get_status_report()["memory_by_line"], MemoryDebugger().get_status_report()["fragmentation"]), ([], None))


class LineTest(unittest.TestCase):
    def test_whose_line_it_is(self) -> None:
        frame = lambda file: {"filename": file, "line": 3, "name": "f"}  # noqa: E731
        own = frame("/home/me/pytorch/train.py")
        self.assertEqual(snapshots.blamed_line([frame("??"), LIBRARY, own]), ("/home/me/pytorch/train.py", 3, "f"))
        self.assertEqual(snapshots.blamed_line([LIBRARY]), (LIBRARY["filename"], 1, "linear"), "a library may leak, too")
        self.assertIsNone(snapshots.blamed_line([frame("??")]))
        self.assertIsNone(snapshots.own_line([frame(snapshots.__file__)]))


if __name__ == "__main__":
    unittest.main()

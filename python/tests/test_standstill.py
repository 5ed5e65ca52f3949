"""Where a program stands: its stacks, its collectives, and how the agent asks for them."""
from __future__ import annotations

import json
import os
import sys
import threading
import time
import types
import unittest
from typing import Any, Dict, List, Tuple
from unittest import mock

from gpuwarden import collectives, thread_stacks
from gpuwarden.settings import read_settings
from gpuwarden.standstill import Standstill
from gpuwarden.training_run import Run

from .stand import Stand


def hang_here(gate: threading.Event) -> None:
    secret = "hunter2"  # noqa: F841
    gate.wait(30)


class ThreadStacks(unittest.TestCase):
    def test_lists_the_main_thread_first_without_values_or_our_own_threads(self) -> None:
        gate = threading.Event()
        threading.Thread(target=hang_here, args=(gate,), name="worker", daemon=True).start()
        threading.Thread(target=gate.wait, args=(30,), name="gpuwarden-sender", daemon=True).start()
        time.sleep(0.05)
        try:
            found = thread_stacks.threads()
        finally:
            gate.set()
        self.assertEqual((found[0]["name"], found[0]["is_main"]), ("MainThread", True))
        self.assertIn("test_lists_the_main", found[0]["frames"][0]["function"])
        names = [thread["name"] for thread in found]
        self.assertIn("worker", names)
        self.assertNotIn("gpuwarden-sender", names)
        worker = found[names.index("worker")]
        self.assertTrue(any(frame["function"] == "hang_here" and frame["file"].endswith("test_standstill.py") for frame in worker["frames"]))
        self.assertNotIn("hunter2", json.dumps(found))
        if sys.platform == "linux":
            self.assertEqual(worker["state"], "S")

    def test_bounds_deep_stacks(self) -> None:
        def deeper(depth: int) -> int:
            return len(thread_stacks.threads()[0]["frames"]) if depth == 0 else deeper(depth - 1)

        self.assertEqual(deeper(200), thread_stacks.MOST_FRAMES)


class Answers(unittest.TestCase):
    def setUp(self) -> None:
        self.sent: List[Tuple[str, Dict[str, Any]]] = []

    def standstill(self, may_tell: bool = True) -> Standstill:
        return Standstill(lambda path, body: self.sent.append((path, body)), 3, may_tell)

    def test_says_that_a_thread_stays_after_four_looks_and_at_once_that_it_moves(self) -> None:
        still = self.standstill()
        with mock.patch.object(thread_stacks, "mark_of_main", lambda: (1, 2)):
            still.ask({"id": "aa"})
            for look in range(4):
                self.assertEqual(self.sent, [], look)
                still.tick()
        path, body = self.sent[0]
        self.assertEqual((path, body["rank"], body["moves"], body["pid"]), ("stacks/aa", 3, False, os.getpid()))
        self.assertFalse(still.is_wanted)
        # The agent repeats an order until it has the answer.
        still.ask({"id": "aa"})
        self.assertFalse(still.is_wanted)
        moving = self.standstill()
        moving.ask({"id": "bb"})
        moving.tick()
        self.assertEqual((self.sent[1][0], self.sent[1][1]["moves"]), ("stacks/bb", True))

    def test_keeps_them_where_the_user_said_so(self) -> None:
        silent = self.standstill(may_tell=False)
        silent.ask({"id": "cc"})
        for _ in range(4):
            silent.tick()
        self.assertNotIn("threads", self.sent[0][1])
        self.assertIn("GPUWARDEN_NO_STACKS", self.sent[0][1]["reason"])

    def test_passes_over_what_is_no_order(self) -> None:
        still = self.standstill()
        for order in (None, 7, "x", {}, {"id": 5}):
            still.ask(order)
        self.assertFalse(still.is_wanted)


class Collectives(unittest.TestCase):
    TRACE = {
        "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1]"}},
        "pg_status": {"0": {"last_enqueued_collective": "7", "last_completed_collective": "6", "last_started_collective": "-1"}},
        "entries": [
            {"process_group": ["0", "default_pg"], "collective_seq_id": 6, "profiling_name": "nccl:broadcast", "state": "completed", "retired": True, "is_p2p": False},
            {"process_group": ["0", "default_pg"], "collective_seq_id": 7, "profiling_name": "nccl:all_reduce", "state": "started", "retired": False, "is_p2p": False,
             "input_sizes": [[4]], "input_dtypes": ["Float"], "time_created_ns": 1_760_000_000_000_000_000},
            {"process_group": ["1", "pp"], "p2p_seq_id": 3, "profiling_name": "nccl:recv 0<-1", "state": "scheduled", "retired": False, "is_p2p": True},
        ],
    }  # fmt: skip

    def setUp(self) -> None:
        distributed = types.ModuleType("torch.distributed")
        distributed.is_initialized = lambda: True  # type: ignore[attr-defined]
        self.library = types.ModuleType("torch._C._distributed_c10d")
        patch = mock.patch.dict(sys.modules, {"torch.distributed": distributed, "torch._C._distributed_c10d": self.library})
        patch.start()
        self.addCleanup(patch.stop)

    def test_come_from_the_recorder(self) -> None:
        self.library._dump_nccl_trace_json = lambda collectives, active: json.dumps(self.TRACE).encode()  # type: ignore[attr-defined]
        first, second = collectives.groups()
        self.assertEqual((first["group"], first["last"], first["completed"], first["op"], first["ranks"]), ("0", 7, 6, "all_reduce", "[0, 1]"))
        self.assertEqual((first["pending"]["seq"], first["pending"]["op"], first["pending"]["sizes"]), (7, "all_reduce", "[[4]]"))
        self.assertGreater(first["pending"]["seconds"], 1e6)
        self.assertEqual((second["group"], second["pending"]["is_p2p"], second["pending"]["op"]), ("1", True, "recv 0<-1"))

    def test_are_counted_where_nothing_is_recorded(self) -> None:
        self.library._dump_nccl_trace_json = lambda *_: b"not json"  # type: ignore[attr-defined]
        seen: List[Any] = []
        call = collectives.counted(lambda **_: seen.append(collectives.groups()), "barrier")
        with mock.patch.object(collectives, "_calls", 0):
            call()
            call(group=object())
            after = collectives.groups()
        self.assertEqual(seen[0], [{"group": "calls", "last": 1, "op": "barrier", "pending": {"seq": 1, "op": "barrier", "state": "called"}}])
        self.assertEqual((after[0]["last"], after[0]["pending"]), (1, None))

    def test_the_buffer_is_set_for_old_versions_only_and_never_against_the_user(self) -> None:
        for version, given, expected in (("2.8.1", {}, "2000"), ("2.15.0+cu132", {}, None), ("2.8.1", {"TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}, "0"), ("odd", {}, None)):
            with mock.patch.dict(os.environ, given):
                if not given:
                    os.environ.pop("TORCH_NCCL_TRACE_BUFFER_SIZE", None)
                collectives.prepare(version)
                self.assertEqual(os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE"), expected, version)


class SignsOfLife(unittest.TestCase):
    def test_a_silent_run_asks_and_answers(self) -> None:
        stand = Stand()
        self.addCleanup(stand.close)
        asked: List[str] = []
        got: List[Dict[str, Any]] = []
        take = stand.take

        def answer(path: str, body: bytes) -> Tuple[int, Any]:
            if "/stacks/" in path:
                got.append(json.loads(body))
                return 200, {"id": path.split("/")[4], "look": "aa"}
            status, value = take(path, body)
            if "/steps?rank=" in path:
                asked.append(path.rpartition("?")[2])
                value = dict(value, stacks={"id": "aa"})
            return status, value

        stand.take = answer  # type: ignore[method-assign]
        run = Run("silent", settings=read_settings({"GPUWARDEN_URL": stand.url, "GPUWARDEN_SPOOL": "off"}))
        self.addCleanup(run.finish)
        run.log(step=1, loss=1.0)
        deadline = time.monotonic() + 20
        while not got and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(asked[0], "rank=0")
        self.assertEqual(got[0]["rank"], 0)
        self.assertTrue(got[0]["threads"][0]["is_main"])
        self.assertEqual(run.statistics()["rejected"], 0)


if __name__ == "__main__":
    unittest.main()

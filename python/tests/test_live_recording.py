"""A leak gets its line while the run goes on: the SDK, the real agent and the program `gpuwarden`; PyTorch is played."""
from __future__ import annotations

import json
import os
import pickle
import subprocess
from typing import Any, Dict, List
from unittest import mock

from gpuwarden import snapshot_verdict
from gpuwarden.memory import analyze_snapshot

from .world import BIN, NODE, WorldWithAgent, until

TRAINING = """
    import sys, time
    import gpuwarden
    from tests.leaking_torch import GIB, MIB, Played
    torch = Played(20 * GIB)
    kept = []
    def remember(size):
        kept.append(torch.make(size))
    with gpuwarden.run("leaky", gpus=[0]) as run:
        activation = None
        for step in range(100000):
            if activation is not None:
                torch.free(activation)
            activation = torch.make(64 * MIB)
            if step > FLAT and LEAKS:
                remember(24 * MIB)
            run.log(step=step, loss=1.0)
            time.sleep(0.02)
            if step % 10 == 0:
                print(torch.calls, flush=True)
            if len(kept) > 2200 and LEAKS:
                break
"""


class LiveRecording(WorldWithAgent):
    def start_training(self, leaks: bool, flat: int = 150, **env: str) -> "subprocess.Popen[str]":
        return self.start_script(TRAINING.replace("FLAT", str(flat)).replace("LEAKS", str(leaks)), self.agent.url, **env)

    def the_run(self) -> Dict[str, Any]:
        runs = self.agent.get("/api/v1/runs")["runs"]
        return dict(runs[0]) if runs else {}

    def findings(self) -> List[Dict[str, Any]]:
        return [one for one in self.agent.get("/api/v1/findings")["findings"] if one["subject"]["run"] == self.the_run().get("id")]

    def recordings(self) -> Dict[str, Any]:
        return dict(self.agent.get("/api/v1/runs/%s/recordings" % self.the_run()["id"]))

    def program(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        assert NODE is not None
        command = [NODE, BIN, *arguments, "--port", str(self.agent.port)]
        env = self.environment(self.agent.url, XDG_CONFIG_HOME="/nonexistent")
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60, env=env)

    def test_a_leak_gets_its_line_while_the_run_goes_on(self) -> None:
        child = self.start_training(True)
        line = until("a finding names the line", lambda: [one for one in self.findings() if "line" in one["evidence"]], 90)[0]
        self.assertIsNone(child.poll(), "the run goes on")
        self.assertRegex(line["message"], r"^Run leaky.* leaks 2\d MiB per step from train_\d+\.py:8 in remember \((9\d|100)% of the growth\): ")
        self.assertEqual(line["detector"], "leak")
        run = self.the_run()
        self.assertEqual((run["leakLines"][0]["line"], run["leakLines"][0]["function"]), (8, "remember"))
        (recording,) = self.recordings()["recordings"]
        self.assertEqual((recording["trigger"], recording["reason"], len(recording["lines"])), ("leak", None, 1))
        child.terminate()
        out, _ = child.communicate(timeout=20)
        self.assertIn("['state', None]", out, "switched on once, and off again")

    def test_a_healthy_run_is_never_asked(self) -> None:
        child = self.start_training(False)
        until("there are steps", lambda: (self.the_run().get("training") or {}).get("lastStep", 0) and self.the_run()["training"]["lastStep"] > 400, 60)
        self.assertEqual((self.recordings()["waiting"], self.recordings()["recordings"]), ([], []))
        child.terminate()
        out, _ = child.communicate(timeout=20)
        self.assertEqual(set(out.split("\n")), {"[]", ""})

    def test_asked_for_by_hand(self) -> None:
        child = self.start_training(True, flat=0)
        until("there are steps", lambda: (self.the_run().get("training") or {}).get("lastStep"))
        said = self.program("snapshot", "--run", "leaky", "--steps", "12")
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertRegex(said.stdout, r"leak: 24 MiB per step from train_\d+\.py:8 in remember \(100% of the growth\)")
        as_json = self.program("snapshot", "--run", self.the_run()["id"], "--steps", "12", "--json")
        self.assertEqual(json.loads(as_json.stdout)["lines"][0]["line"], 8)
        host = self.program("snapshot", "--run", "leaky", "--steps", "12", "--host")
        self.assertEqual(host.returncode in (0, 1), True, host.stderr)
        self.assertIn("Recorded for 12 steps", host.stdout)
        child.terminate()
        child.communicate(timeout=20)

    def test_a_snapshot_of_running_out_is_analyzed_by_the_program(self) -> None:
        frames = [{"filename": "/home/user/train.py", "line": 33, "name": "keep"}]
        blocks = [{"address": n << 30, "size": 1 << 30, "requested_size": 1 << 30, "state": "active_allocated", "frames": frames} for n in range(1, 9)]
        segments = [dict(block, device=0, total_size=1 << 30, allocated_size=1 << 30, active_size=1 << 30, stream=0, segment_type="large", blocks=[block]) for block in blocks]
        events = [{"action": "alloc", "addr": n << 30, "size": 1 << 30, "stream": 0, "time_us": n, "frames": frames} for n in range(1, 9)]
        events.append({"action": "oom", "device_free": 1 << 20, "size": 1 << 30, "stream": 0, "time_us": 9, "frames": frames})
        path = os.path.join(self.folder, "oom.pickle")
        with open(path, "wb") as file:
            pickle.dump({"segments": segments, "device_traces": [events]}, file)
        with mock.patch.dict("os.environ", GPUWARDEN_PROGRAM=BIN, PATH=os.path.dirname(str(NODE)) + ":" + os.environ["PATH"]):
            ways = snapshot_verdict.ways_out_of(path)
            self.assertTrue(ways)
            self.assertTrue(any("train.py:33" in (way["line"] or "") for way in ways or []), ways)
            self.assertIsNone(snapshot_verdict.ways_out_of("/nonexistent"))
            self.assertEqual(analyze_snapshot(path)["devices"][0]["peak"]["allocated_bytes"], 8 << 30)
            with self.assertRaisesRegex(RuntimeError, "no such file"):
                analyze_snapshot("/nonexistent")
        with mock.patch.dict("os.environ", {"GPUWARDEN_PROGRAM": "/nonexistent"}):
            self.assertIsNone(snapshot_verdict.ways_out_of(path))

    def test_clear_errors(self) -> None:
        unknown = self.program("snapshot", "--run", "nobody")
        self.assertIn('there is no run "nobody"', unknown.stderr)
        done = self.run_script("import gpuwarden\nwith gpuwarden.run('over') as run: run.log(loss=1.0)", self.agent.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is over", self.program("snapshot", "--run", "over").stderr)
        child = self.start_training(False, GPUWARDEN_NO_RECORDING="1")
        until("there are steps", lambda: (self.the_run().get("training") or {}).get("lastStep"))
        self.assertIn("no SDK that can record", self.program("snapshot", "--run", "leaky").stderr)
        second = self.start_training(False)
        until("there are two", lambda: sum(run["name"] == "leaky" for run in self.agent.get("/api/v1/runs")["runs"]) == 2)
        ambiguous = self.program("snapshot", "--run", "leaky")
        self.assertIn("2 runs", ambiguous.stderr)
        self.assertNotEqual(ambiguous.returncode, 0)
        for one in (child, second):
            one.terminate()
            one.communicate(timeout=20)

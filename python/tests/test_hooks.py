"""Training that is followed without a line of code, with a PyTorch that is played; the real one is in frameworks_check.py."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import types
import unittest
from typing import Any, Dict, List, Optional

from gpuwarden import step_meter as phases
from gpuwarden.device_clock import DeviceClock, DeviceSeconds
from gpuwarden.step_meter import StepMeter
from gpuwarden.steps import Step, encode, is_ready, scalars

from .stand import Stand
from .world import PACKAGE, World

STARTUP = os.path.join(PACKAGE, "gpuwarden", "startup")
PLAYED = os.path.join(os.path.dirname(__file__), "played")
LOOP = """
import torch
from torch.nn.utils import clip_grad_norm_
optimizer = torch.optim.Optimizer(0.5)
for batch in torch.utils.data.DataLoader([(torch.Tensor(shape=(4, 8)),)] * 6):
    torch.Tensor(3.0).backward()
    clip_grad_norm_([], 1.0)
    optimizer.step()
"""


class Unchanged(World):
    def setUp(self) -> None:
        super().setUp()
        self.stand = Stand()

    def train(self, code: str, **env: str) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join([STARTUP, PLAYED] + [env.pop("PYTHONPATH", "")]).rstrip(os.pathsep)
        done = self.run_script(code, self.stand.url, **dict(env, PYTHONPATH=path))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def steps(self) -> List[Dict[str, Any]]:
        return [self.stand.steps[key] for key in sorted(self.stand.steps, key=lambda key: (key[1], key[2]))]

    def test_a_loop_without_a_line_of_ours(self) -> None:
        self.train(LOOP)
        (run,) = self.stand.runs.values()
        self.assertEqual(run["framework"], "pytorch")
        self.assertEqual((run["data_loader"]["workers"], run["data_loader"]["pinned_memory"]), (3, False))
        steps = self.steps()
        self.assertEqual([line["step"] for line in steps], [1, 2, 3, 4, 5, 6])
        for line in steps:
            self.assertEqual((line["loss"], line["lr"], line["grad_norm"]), (3.0, 0.5, 7.0))
            self.assertAlmostEqual(line["throughput"] * line["step_seconds"], 4.0)
            self.assertEqual(set(line["phases"]), {"data", "forward", "backward", "optimizer"})
            self.assertLessEqual(sum(line["phases"].values()), line["step_seconds"] + 1e-5)

    def test_what_was_there_before_stays(self) -> None:
        folder = os.path.join(self.folder, "own")
        os.mkdir(folder)
        with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write("import builtins\nbuiltins.from_own_sitecustomize = __file__\n")
        code = """
        import sys, sitecustomize
        print(from_own_sitecustomize == sitecustomize.__file__, any("startup" in path for path in sys.path), "gpuwarden" in sys.modules)
        import gpuwarden
        print(gpuwarden.__file__)
        """
        out = self.train(code, PYTHONPATH=folder).stdout.split()
        self.assertEqual(out[:3], ["True", "False", "False"])
        # Nothing was installed: the SDK is the one that came with the program.
        self.assertTrue(out[3].startswith(PACKAGE))

    def test_off_by_a_variable(self) -> None:
        self.train(LOOP, GPUWARDEN_NO_HOOKS="1")
        self.train(LOOP, GPUWARDEN_DISABLED="1")
        self.assertEqual(self.stand.runs, {})

    def test_a_run_of_the_program_gets_what_was_seen_and_stays_the_only_one(self) -> None:
        self.train(
            """
            import gpuwarden, torch
            optimizer = torch.optim.Optimizer(0.5)
            with gpuwarden.run("mine") as run:
                for step in range(4):
                    torch.Tensor(3.0).backward()
                    optimizer.step()
                    if step % 2: run.log(step=10 * step, loss=9.0)
            """
        )
        self.assertEqual([run["name"] for run in self.stand.runs.values()], ["mine"])
        self.assertEqual([(line["step"], line["loss"], line["lr"]) for line in self.steps()], [(10, 9.0, 0.5), (30, 9.0, 0.5)])
        self.assertIn("backward", self.steps()[0]["phases"])

    def test_a_run_that_begins_later_takes_over(self) -> None:
        code = LOOP + "\nimport gpuwarden\ngpuwarden.log_step(step=50, loss=1.0)\noptimizer.step()\n"
        self.train(code, GPUWARDEN_RUN_ID="one")
        self.assertEqual(list(self.stand.runs), ["one"])
        self.assertEqual([line["step"] for line in self.steps()], [1, 2, 3, 4, 5, 6, 50])

    def test_accumulated_gradients_scaled_losses_skipped_steps_and_a_second_optimizer(self) -> None:
        self.train(
            """
            import torch
            first, second, scaler = torch.optim.Optimizer(0.5), torch.optim.Optimizer(0.25), torch.amp.GradScaler()
            for iteration in range(5):
                for part in range(2):
                    scaler.scale(torch.Tensor(1.5)).backward()
                scaler.step(first, is_finite=iteration != 2)
                torch.Tensor(100.0).backward()
                second.step()
                second.step()  # No backward since: a part of the same step.
            """
        )
        self.assertEqual([(line["step"], line["loss"], line["lr"]) for line in self.steps()], [(n, 3.0, 0.5) for n in range(1, 6)])

    def test_evaluation_checkpoint_and_a_worker_that_was_forked(self) -> None:
        self.train(
            """
            import os, time, torch
            optimizer = torch.optim.Optimizer(0.5)
            training, evaluation = [torch.Tensor(shape=(2, 3))] * 3, [torch.Tensor(shape=(2, 3))] * 2
            for batch in torch.utils.data.DataLoader(training):
                torch.Tensor(3.0).backward()
                optimizer.step()
                with torch.no_grad():
                    for other in torch.utils.data.DataLoader(evaluation): time.sleep(0.01)
                for other in torch.utils.data.DataLoader(evaluation): time.sleep(0.01)
                torch.save({}, "file")
                if os.fork() == 0:
                    for other in torch.utils.data.DataLoader(evaluation): pass
                    os._exit(0)
                os.wait()
            """
        )
        first, second, _ = self.steps()
        self.assertNotIn("evaluation", first["phases"])
        self.assertGreaterEqual(second["phases"]["evaluation"], 0.04)
        self.assertIn("checkpoint", second["phases"])
        self.assertAlmostEqual(second["throughput"] * second["step_seconds"], 2.0)

    def test_a_hook_that_fails_changes_nothing(self) -> None:
        broken = """
import torch
from gpuwarden import step_meter
def fail(*_): raise RuntimeError("ours")
for name in ("switch", "before_data", "after_data", "no_more_data", "before_backward", "after_backward", "end_step", "enter"):
    setattr(step_meter.StepMeter, name, fail)
"""
        code = broken + LOOP.replace("* 6", "* 1") + "\nprint('trained', torch.save({}, 'file'))\n"
        self.assertEqual(self.train(code).stdout, "trained file\n")
        self.assertEqual(self.stand.steps, {})

    def test_a_pytorch_that_looks_different_is_left_alone(self) -> None:
        path = os.path.join(self.folder, "torch.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("value = 5\n")
        self.assertEqual(self.train("import torch\nprint(torch.value, torch.__spec__.loader.__class__.__name__)").stdout, "5 SourceFileLoader\n")

    def test_by_hand(self) -> None:
        code = """
        import gpuwarden, torch
        main, other = torch.optim.Optimizer(0.5), torch.optim.Optimizer(0.25)
        batches = gpuwarden.attach(optimizer=main, loader=[torch.Tensor(shape=(5,))] * 3).loader
        for batch in batches:
            torch.Tensor(1.0).backward()
            other.step()
            main.step()
        """
        done = self.run_script(code, self.stand.url, PYTHONPATH=os.pathsep.join([PACKAGE, PLAYED]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(line["step"], line["lr"]) for line in self.steps()], [(1, 0.5), (2, 0.5), (3, 0.5)])
        self.assertTrue(all("data" in line["phases"] and line["throughput"] > 0 for line in self.steps()))


class MeterTest(unittest.TestCase):
    def test_every_moment_belongs_to_one_phase(self) -> None:
        meter = StepMeter()
        meter.before_data(1, True)
        meter.after_data(1, (4, None))
        self.assertTrue(meter.before_backward())
        self.assertFalse(meter.before_backward(), "a backward within a backward")
        meter.gradients_done()
        meter.after_backward(None)
        before = meter.enter(phases.LOGGING)
        meter.before_data(2, False)
        self.assertEqual(meter.phase, phases.LOGGING, "what logging loads is logging")
        meter.leave(before)
        meter.before_optimizer(False)
        meter.after_optimizer()
        meter.end_step()
        measured = meter.take()
        assert measured is not None and measured.seconds is not None
        self.assertEqual(set(measured.phases), {"data", "forward", "backward", "sync", "logging", "optimizer"})
        self.assertLessEqual(sum(measured.phases.values()), measured.seconds)
        self.assertIsNone(meter.take())

    def test_forward_of_a_second_micro_batch_and_of_a_closure(self) -> None:
        meter = StepMeter()
        for part in range(2):
            if part == 0:
                meter.before_data(1, True)
                meter.after_data(1, None)
            time.sleep(0.01)
            meter.before_backward()
            meter.after_backward(None)
        meter.before_optimizer(False)
        meter.after_optimizer()
        meter.end_step()
        measured = meter.take()
        assert measured is not None
        self.assertGreater(measured.phases["forward"], 0.018)
        meter.before_data(1, True)
        meter.after_data(1, None)
        meter.before_optimizer(True)
        time.sleep(0.01)
        meter.before_backward()
        meter.after_backward(None)
        meter.after_optimizer()
        meter.end_step()
        measured = meter.take()
        assert measured is not None
        self.assertGreater(measured.phases["forward"], 0.009)
        self.assertLess(measured.phases["optimizer"], 0.009)

    def test_other_threads_do_not_count(self) -> None:
        meter = StepMeter()
        meter.before_backward()
        meter.after_backward(None)
        seen: List[Any] = []

        def elsewhere() -> None:
            seen.append(meter.before_backward())
            meter.before_data(1, True)
            seen.append(meter.phase)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        self.assertEqual(seen, [False, "after backward"])


class LoggedTest(unittest.TestCase):
    def test_times_of_the_gpu_reach_the_line_of_their_step(self) -> None:
        forward = DeviceSeconds()
        step = Step(1, 1, 1, None, None, None, None, None, 1.0, scalars({"forward@gpu": forward, "data": 0.5}), None, None)
        self.assertFalse(is_ready(step))
        forward.settle(0.25)
        self.assertTrue(is_ready(step))
        self.assertEqual(json.loads(encode(step, {}))["phases"], {"forward@gpu": 0.25, "data": 0.5})


class PlayedEvent:
    now = 0.0
    passed = False

    def __init__(self, enable_timing: bool) -> None:
        self.at: Optional[float] = None

    def record(self) -> None:
        self.at = PlayedEvent.now

    def query(self) -> bool:
        return PlayedEvent.passed

    def elapsed_time(self, later: "PlayedEvent") -> float:
        assert self.at is not None and later.at is not None
        return later.at - self.at


class DeviceClockTest(unittest.TestCase):
    def setUp(self) -> None:
        PlayedEvent.now, PlayedEvent.passed = 0.0, False
        self.capturing = False
        self.steps, self.seconds = 0, 1.0
        cuda = types.SimpleNamespace(Event=PlayedEvent, is_initialized=lambda: True, is_current_stream_capturing=lambda: self.capturing)
        self.clock = DeviceClock(types.SimpleNamespace(cuda=cuda))

    def step(self) -> Any:
        for phase, milliseconds in (("forward", 3.0), ("backward", 6.0), (None, 1.0)):
            self.clock.mark(phase)
            PlayedEvent.now += milliseconds
        self.steps += 1
        return self.clock.end_step(None, self.steps + 1, self.seconds)

    def test_times_come_when_the_gpu_has_passed(self) -> None:
        self.assertIsNone(self.step(), "nobody timed the first step")
        values = self.step()
        self.assertEqual(set(values), {"forward", "backward"})
        self.assertFalse(values["forward"].has_come())
        PlayedEvent.passed = True
        self.clock.mark("forward")
        self.assertTrue(values["forward"].has_come())
        self.assertAlmostEqual(values["forward"].value, 0.003)
        self.assertAlmostEqual(values["backward"].value, 0.006)

    def test_fast_steps_are_timed_now_and_then_and_the_same_on_every_rank(self) -> None:
        PlayedEvent.passed = True
        self.seconds = 0.04
        timed = [number + 1 for number in range(64) if self.step() is not None]
        self.assertEqual(timed, list(range(8, 65, 8)))

    def test_nothing_is_asked_while_a_graph_is_captured(self) -> None:
        self.step()
        self.capturing = True
        self.assertIsNone(self.step())
        self.capturing = False
        self.assertIsNone(self.step(), "a step that was captured in part has no times")

    def test_gives_up_on_a_gpu_that_hangs(self) -> None:
        self.step()
        values = self.step()
        values["forward"]._since -= 60
        self.assertTrue(values["forward"].has_come())
        self.assertIsNone(values["forward"].value)

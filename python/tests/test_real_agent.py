"""The SDK with the real agent: what is logged in Python is in the agent's log, once."""
from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from typing import Any, Dict, List

from .world import BIN, NODE, PACKAGE, WorldWithAgent, until

FAKE_TORCH = """
    import sys, types
    GIB = 1024 ** 3
    class OutOfMemoryError(RuntimeError): pass
    def amount(current, peak=None): return {"all": {"current": current, "peak": peak or current}}
    memory = types.SimpleNamespace(
        memory_stats_as_nested_dict=lambda device: {
            "allocated_bytes": amount(70 * GIB, 72 * GIB), "reserved_bytes": amount(74 * GIB, 76 * GIB), "active_bytes": amount(71 * GIB),
            "inactive_split_bytes": amount(2 * GIB), "requested_bytes": amount(69 * GIB), "num_alloc_retries": 3, "num_ooms": 1,
        },
        _snapshot=lambda: {"segments": [], "device_traces": [[{"action": "oom", "size": 1}]]},
    )
    cuda = types.SimpleNamespace(
        is_initialized=lambda: True, current_device=lambda: 0, memory=memory, OutOfMemoryError=OutOfMemoryError,
        mem_get_info=lambda: (1 * GIB, 80 * GIB), get_device_properties=lambda index: types.SimpleNamespace(uuid="5b2f"),
    )
    torch = types.ModuleType("torch")
    torch.cuda = cuda
    torch.OutOfMemoryError = OutOfMemoryError
    torch._C = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: True)
    sys.modules["torch"] = torch
"""


COURIER = """
    import gpuwarden
    from tests.world import spool_is_empty, until
    with gpuwarden.run("courier") as run:
        until("all is delivered", spool_is_empty)
"""


class WithRuns(WorldWithAgent):
    def setUp(self) -> None:
        super().setUp()
        self.assertTrue(self.agent.takes_runs(), "the agent does not know /api/v1/runs")

    def the_run(self) -> Dict[str, Any]:
        runs = self.agent.get("/api/v1/runs")["runs"]
        self.assertEqual(len(runs), 1, runs)
        run: Dict[str, Any] = self.agent.get("/api/v1/runs/" + runs[0]["id"])
        return run

    def logged(self, rank: int = 0) -> List[int]:
        """As the log has them, after the agent has written everything down."""
        self.agent.end()
        return sorted(line["step"] for line in self.agent.logged() if line.get("rank", 0) == rank)


class Steps(WithRuns):
    def test_what_is_logged_arrives_as_it_was(self) -> None:
        done = self.run_script(
            """
            import gpuwarden
            with gpuwarden.run("values", correlation_id="abc") as run:
                run.log(step=1, epoch=0.5, loss=float("nan"), lr=1e-4, grad_norm=float("inf"), throughput=32.5, step_seconds=0.25, accuracy=0.75)
                run.log(step=2, loss=-float("inf"), phases={"data": 0.1})
            """,
            self.agent.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.the_run()
        self.assertEqual((run["name"], run["outcome"], run["correlationId"]), ("values", "success", "abc"))
        self.assertEqual(run["pid"] > 0 and run["training"]["nonFiniteSteps"], 2)
        self.assertEqual(run["training"]["custom"], {"accuracy": 0.75})
        self.agent.end()
        first, second = self.agent.logged()
        self.assertEqual((first["step"], first["epoch"], first["loss"], first["learning_rate"]), (1, 0.5, "NaN", 1e-4))
        self.assertEqual((first["gradient_norm"], first["throughput_samples_per_sec"]), ("Infinity", 32.5))
        self.assertEqual((second["step"], second["loss"]), (2, "-Infinity"))

    def test_an_agent_that_comes_late_gets_everything(self) -> None:
        port = self.agent.port
        self.agent.end()
        child = self.start_script(
            """
            import gpuwarden, time
            from tests.world import until
            with gpuwarden.run("early") as run:
                for step in range(200):
                    run.log(step=step)
                until("all is delivered", lambda: run.statistics()["delivered"] >= 200)
            """,
            self.agent.url,
        )
        until("steps wait on disk", lambda: len(self.spooled_steps()) == 200)
        self.agent = self.start_agent(port)
        self.assertEqual(child.wait(60), 0)
        self.assertEqual(self.spooled(), [])
        self.assertEqual(self.logged(), list(range(200)))

    def test_a_spool_is_imported_by_hand(self) -> None:
        assert NODE is not None
        self.run_script(
            "import gpuwarden\nwith gpuwarden.run('by hand') as run:\n    for step in range(50): run.log(step=step, loss=float('nan'))", "http://127.0.0.1:9"
        )
        self.assertEqual(len(self.spooled_steps()), 50)
        subprocess.run(
            [NODE, BIN, "import", "--port", str(self.agent.port), self.spool], env=self.environment(self.agent.url), check=True, stdout=subprocess.DEVNULL
        )
        run = self.the_run()
        self.assertEqual((run["name"], run["outcome"]), ("by hand", "nan"))
        self.assertEqual(self.spooled(), [])
        self.assertEqual(self.logged(), list(range(50)))

    def test_eight_ranks_at_once_are_one_run(self) -> None:
        code = """
            import gpuwarden
            with gpuwarden.run("eight") as run:
                for step in range(400):
                    run.log(step=step, loss=1.0)
        """
        children = [
            self.start_script(
                code, self.agent.url, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="8", MASTER_ADDR="127.0.0.1", TORCHELASTIC_RUN_ID="eight-1"
            )
            for rank in range(8)
        ]
        for child in children:
            self.assertEqual(child.wait(120), 0, child.stderr.read() if child.stderr else "")
        # On a busy machine a second may be too short for somebody: then the rest waits in the spool.
        self.run_script(COURIER, self.agent.url)
        runs = [run for run in self.agent.get("/api/v1/runs")["runs"] if run["name"] != "courier"]
        self.assertEqual([(run["name"], run["worldSize"]) for run in runs], [("eight", 8)])
        self.agent.end()
        logged = self.agent.logged()
        for rank in range(8):
            self.assertEqual(sorted(line["step"] for line in logged if line["rank"] == rank), list(range(400)))

    def test_sigterm(self) -> None:
        child = self.start_script(
            """
            import gpuwarden, time
            run = gpuwarden.run("terminated")
            for step in range(100):
                run.log(step=step)
            print("ready", flush=True)
            time.sleep(60)
            """,
            self.agent.url,
        )
        self.assertEqual(self.terminated(child), -signal.SIGTERM)
        self.assertEqual(self.the_run()["outcome"], "killed")
        self.assertEqual(self.logged(), list(range(100)))

    def test_allocator_figures_and_the_last_report_of_an_out_of_memory(self) -> None:
        done = self.run_script(
            FAKE_TORCH
            + """
    import gpuwarden
    with gpuwarden.run("too large") as run:
        run.log(step=1, loss=1.0)
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.00 GiB is free. "
            "Including non-PyTorch memory, this process has 75.00 GiB memory in use.")
""",
            self.agent.url,
            GPUWARDEN_SNAPSHOTS=os.path.join(self.folder, "snapshots"),
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("OutOfMemoryError", done.stderr)
        run = self.the_run()
        self.assertEqual((run["outcome"], run["gpus"]), ("oom", ["GPU-5b2f"]))
        training = run["training"]
        peaks = [training["memoryPeakAllocatedBytes"] >> 30, training["memoryPeakReservedBytes"] >> 30]
        self.assertEqual([training["memoryAllocatedBytes"] >> 30, peaks, training["allocRetries"]], [70, [72, 76], 3])
        report = run["report"]
        self.assertEqual(report["cause"]["kind"], "capacity")
        self.assertEqual(sum(entry["bytes"] for entry in report["ledger"]), 80 << 30)
        self.assertEqual({entry["name"]: entry["bytes"] >> 30 for entry in report["ledger"]}["other_processes"], 4)
        self.assertTrue(os.path.exists(report["snapshot"]["path"]))
        self.assertTrue(report["stack"][-1]["file"].endswith(".py"))

    def test_the_seeds_callback(self) -> None:
        done = self.run_script(
            """
            import time
            from gpuwarden import GPUMonitor, TrainingMonitorCallback
            gpu_monitor = GPUMonitor(gpu_index=0, sample_interval=0.2)
            callback = TrainingMonitorCallback(gpu_monitor)
            callback.on_train_begin(total_steps=20)
            for step in range(20):
                callback.on_step_begin()
                time.sleep(0.01)
                callback.on_step_end(step=step, epoch=0, loss=1.0, lr=1e-3, grad_norm=0.5, throughput=10.0, accuracy=0.5)
            gpu_monitor.wait_for_sample(20)
            callback.on_train_end()
            print(gpu_monitor.get_current_metrics().memory_total_mb > 0, gpu_monitor.is_monitoring)
            """,
            self.agent.url,
        )
        self.assertEqual((done.stdout.strip(), done.returncode), ("True False", 0), done.stderr)
        run = self.the_run()
        self.assertEqual(run["outcome"], "success")
        self.assertEqual(run["totalSteps"], 20)
        self.assertGreater(run["training"]["meanStepSeconds"], 0.009)
        self.assertEqual(self.logged(), list(range(20)))

    def test_times_that_the_caller_measured_are_taken(self) -> None:
        done = self.run_script(
            """
            from gpuwarden import TrainingMonitorCallback
            callback = TrainingMonitorCallback()
            callback.on_train_begin()
            for step in range(4):
                callback.on_step_begin()
                callback.on_step_end(step, 0, 1.0, step_seconds=0.5, phases={"forward": 0.3})
            callback.on_train_end()
            """,
            self.agent.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.the_run()["training"]["meanStepSeconds"], 0.5)

    def test_a_plan_that_is_known_late(self) -> None:
        done = self.run_script(
            """
            import gpuwarden, time
            with gpuwarden.run("planned", total_steps=float("inf")) as run:
                run.log(step=1, loss=1.0)
                time.sleep(0.6)
                run.plan(500)
                run.log(step=2, loss=0.5)
            """,
            self.agent.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.the_run()["totalSteps"], 500)


class Examples(WithRuns):
    def example(self, *arguments: str) -> str:
        script = os.path.join(os.path.dirname(PACKAGE), "examples", "monitor_training_example.py")
        env = self.environment(self.agent.url)
        done = subprocess.run(
            [sys.executable, script] + list(arguments), env=env, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def test_simulated_training(self) -> None:
        self.example("--mode", "train", "--steps", "30", "--step-seconds", "0.01")
        self.assertEqual(self.the_run()["outcome"], "success")
        self.assertEqual(self.logged(), list(range(30)))

    def test_monitoring(self) -> None:
        self.assertIn("SIMULATED", self.example("--mode", "monitor", "--duration", "0.5", "--interval", "0.2"))


class Figures(WorldWithAgent):
    def test_profiler_debugger_and_detector_talk_to_the_agent(self) -> None:
        self.agent.end()
        busy = self.start_agent(0, "--demo-scenario", "healthy")
        done = self.run_script(
            """
            import json, threading, time
            from gpuwarden import MemoryDebugger, MemoryProfiler, OOMDetector
            warned = threading.Event()
            predictions = []
            def warn(prediction):
                predictions.append(prediction)
                warned.set()
                raise RuntimeError("a callback may fail")
            profiler = MemoryProfiler(sampling_interval=0.1)
            detector = OOMDetector(threshold=0.001, warning_callback=warn)
            debugger = MemoryDebugger(python_memory=True)
            for one in (profiler, detector, debugger): one.start_monitoring()
            warned.wait(20)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                report = debugger.get_status_report()
                lines = [device["timeline"]["at"] for device in profiler.generate_report()["devices"].values()]
                if lines and all(lines) and report["summary"]["total_devices"]: break
                time.sleep(0.1)
            for one in (profiler, detector, debugger): one.stop_monitoring()
            profiler.generate_report("memory_report.json")
            saved = json.load(open("memory_report.json"))
            prediction = predictions[0]
            print(json.dumps({
                "devices": sorted(saved["devices"]), "one": saved["devices"]["0"], "summary": saved["summary"],
                "risk": prediction.risk_level.value, "device": prediction.device_id,
                "advice": len(prediction.recommendations), "words": str(prediction),
                "debugger": sorted(debugger.get_status_report()),
            }))
            """,
            busy.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        import json

        said = json.loads(done.stdout)
        self.assertEqual(said["devices"], ["0", "1"])
        usage = said["one"]["current_usage"]
        self.assertLessEqual({"allocated", "free", "total", "utilization_percent"}, set(usage))
        # As the driver says it, and as everywhere else: what it reserves for itself is neither free nor in use.
        self.assertEqual(usage["free"], usage["total"] - usage["allocated"] - usage["reserved_by_driver"])
        self.assertLessEqual({"avg_utilization", "max_utilization", "samples_count"}, set(said["one"]["statistics"]))
        self.assertGreaterEqual(len(said["one"]["timeline"]["at"]), 1)
        self.assertEqual((said["summary"]["total_devices"], said["summary"]["simulated"]), (2, True))
        self.assertIn(said["risk"], ("low", "medium", "high", "critical"))
        self.assertGreaterEqual(said["advice"], 1)
        self.assertRegex(said["words"], r"OOM Warning: GPU \d \(SIMULATED\)")
        self.assertLessEqual({"devices", "summary", "predictions", "leaks", "findings", "python_memory"}, set(said["debugger"]))

    def test_ten_samples_a_second_whatever_the_agent_does_otherwise(self) -> None:
        self.agent.end()
        slow = self.start_agent(0, "--interval", "5", "--demo-scenario", "healthy")
        done = self.run_script(
            """
            import json, logging, time
            logging.basicConfig(level=logging.DEBUG)
            from gpuwarden import FragmentationAnalyzer, GPUMonitor, LeakDetector, MemoryProfiler
            profiler, monitor = MemoryProfiler(sampling_interval=0.1, devices=[1]), GPUMonitor(gpu_index=0, sample_interval=0.2)
            leaks, pieces = LeakDetector(threshold=50), FragmentationAnalyzer()
            for one in (profiler, monitor, leaks, pieces): one.start_monitoring()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and len(monitor.get_history()) < 10: time.sleep(0.1)
            time.sleep(1)
            verdicts, ledger = leaks.check_for_leaks(), pieces.analyze()
            for one in (profiler, monitor, leaks, pieces): one.stop_monitoring()
            report = profiler.generate_report("out.json")
            profiler.generate_report("out.html")
            profiler.generate_report("out.txt")
            at = report["devices"]["1"]["timeline"]["at"]
            print(json.dumps({
                "devices": list(report["devices"]), "count": len(at), "gaps": sorted(b - a for a, b in zip(at, at[1:])),
                "monitored": len(monitor.get_history()), "subjects": sorted({one.subject for one in verdicts}), "answers": sorted({one.answer for one in verdicts}),
                "ledger": sorted(ledger["devices"]), "html": open("out.html").read()[:15], "charts": "GPU memory profile" in open("out.html").read(),
                "text": open("out.txt").read(),
            }))
            """,
            slow.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        import json

        said = json.loads(done.stdout)
        self.assertEqual(said["devices"], ["1"])
        self.assertGreaterEqual(said["count"], 10)
        self.assertLess(said["gaps"][len(said["gaps"]) // 2], 200)
        self.assertGreaterEqual(said["monitored"], 10)
        self.assertLessEqual({"gpu", "process"}, set(said["subjects"]))
        self.assertLessEqual(set(said["answers"]), {"leak", "no leak", "too short to tell", "not known"})
        self.assertEqual(said["ledger"], ["0", "1"])
        self.assertEqual((said["html"].lower(), said["charts"]), ("<!doctype html>", True))
        self.assertIn("samples of 1 GPU", said["text"])
        # It says what it does, and has given back what it asked for.
        for words in ("watching http://", "memory session ", "samples of ", "stopped watching"):
            self.assertIn(words, done.stderr)
        until("the agent reads as rarely as before", lambda: {one["intervalMs"] for one in slow.get("/api/v1/health")["sources"]} == {5000}, 5.0)

    def test_what_was_seen_goes_to_the_trackers_that_the_program_uses(self) -> None:
        done = self.run_script(
            """
            import json, sys, types, gpuwarden
            summary, batches, files = {}, [], {}
            run = types.SimpleNamespace(config={"lr": 0.1, "api_key": "abc"}, summary=summary)
            sys.modules["wandb"] = types.SimpleNamespace(run=run)
            class Client:
                def log_batch(self, run_id, metrics, tags): batches.append((run_id, dict(metrics), dict(tags)))
                def log_dict(self, run_id, value, path): files[path] = value
            pair = types.SimpleNamespace(Metric=lambda name, value, at, step: (name, value), RunTag=lambda name, value: (name, value))
            active = types.SimpleNamespace(info=types.SimpleNamespace(run_id="m1"))
            sys.modules["mlflow"] = types.SimpleNamespace(active_run=lambda: active, MlflowClient=Client, entities=pair)
            with gpuwarden.run("tracked", run_id="t1", config={"batch": 8}) as run:
                for step in range(40): run.log(step=step, loss=1.0 if step < 20 else float("nan"), phases={"data": 0.1, "forward": 0.05}, step_seconds=0.2)
            print(json.dumps([summary, batches, files]))
            """,
            self.agent.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        import json

        summary, ((run_id, metrics, tags),), files = json.loads(done.stdout)
        self.assertEqual((summary["gpuwarden/steps"], summary["gpuwarden/phase_share/data"], summary["gpuwarden/non_finite_steps"]), (40, 0.5, 20))
        self.assertIn("critical loss_nan: ", summary["gpuwarden/findings_text"])
        self.assertEqual((run_id, metrics["gpuwarden/steps"]), ("m1", 40))
        self.assertIn("NaN at step 20", tags["gpuwarden.worst_finding"])
        self.assertEqual(files["gpuwarden/findings.json"]["findings"][0]["detector"], "loss_nan")
        self.assertEqual(self.agent.get("/api/v1/runs/t1")["hyperparameters"], {"batch": 8, "lr": 0.1, "api_key": "***"})

    def test_an_agent_is_started_on_demand_and_ends_with_the_program(self) -> None:
        port = self.agent.port
        self.agent.end()
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        program = os.path.join(folder, "gpuwarden")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec "%s" "%s" "$@" --source demo --demo-scenario idle\n' % (NODE, BIN))
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        done = self.run_script(
            """
            import os
            from gpuwarden import GPUMonitor
            from gpuwarden.agent_process import started_pid
            monitor = GPUMonitor(gpu_index=1, sample_interval=0.5, log_dir="agent_logs")
            monitor.start_monitoring()
            sample = monitor.wait_for_sample(40)
            print(sample.gpu_index, sample.simulated, started_pid(), os.path.isdir("agent_logs"))
            assert monitor.get_summary()["simulated"] is True
            import gpuwarden
            run = gpuwarden.run("ends with the program")
            run.log(step=1, loss=0.5)
            """,
            "http://127.0.0.1:%d" % port,
            PATH=folder + os.pathsep + os.environ.get("PATH", ""),
            GPUWARDEN_NO_START="0",
            XDG_CONFIG_HOME="/nonexistent",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        index, simulated, pid, has_logs = done.stdout.split()
        self.assertEqual((index, simulated, has_logs), ("1", "True", "True"))
        until("the agent that was started has ended", lambda: not _is_running(int(pid)))
        # It heard the end of the run before its own.
        self.assertEqual(self.spooled(), [])
        self.assertNotIn("no agent", done.stderr)

    def test_an_agent_that_is_started_simulates_nothing(self) -> None:
        port = self.agent.port
        self.agent.end()
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        root = os.path.join(self.folder, "root")
        os.mkdir(root)
        os.symlink("/proc", os.path.join(root, "proc"))
        program = os.path.join(folder, "gpuwarden")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nGPUWARDEN_ROOT="%s" exec "%s" "%s" "$@"\n' % (root, NODE, BIN))
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        url = "http://127.0.0.1:%d" % port
        done = self.run_script(
            """
            import json, os, time, urllib.request
            import gpuwarden
            from gpuwarden import GPUMonitor
            GPUMonitor(gpu_index=0, sample_interval=0.5, log_dir="agent_logs").start_monitoring()
            run = gpuwarden.run("without a GPU")
            run.log(step=1, loss=0.5)
            def ask(path):
                with urllib.request.urlopen(os.environ["GPUWARDEN_URL"] + path, timeout=10) as answer:
                    return json.load(answer)
            for _ in range(400):
                try:
                    if ask("/api/v1/runs")["runs"] and ask("/api/v1/host")["host"]:
                        break
                except OSError:
                    pass
                time.sleep(0.1)
            print(len(ask("/api/v1/gpus")["gpus"]), ask("/api/v1/runs")["runs"][0]["name"])
            """,
            url,
            PATH=folder + os.pathsep + os.environ.get("PATH", ""),
            GPUWARDEN_NO_START="0",
            XDG_CONFIG_HOME="/nonexistent",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), "0 without a GPU")

    def test_without_a_gpu_of_that_number_there_is_a_reason(self) -> None:
        done = self.run_script(
            """
            from gpuwarden import GPUMonitor
            import time
            monitor = GPUMonitor(gpu_index=77)
            monitor.start()
            deadline = time.monotonic() + 20
            while monitor.reason is None and time.monotonic() < deadline: time.sleep(0.05)
            print(monitor.reason)
            """,
            self.agent.url,
        )
        self.assertIn("there is no GPU 77", done.stdout, done.stderr)
        self.assertNotIn("no agent answers", done.stdout)

    def test_settings_for_a_new_agent_are_not_dropped_in_silence(self) -> None:
        done = self.run_script(
            """
            from gpuwarden import GPUMonitor
            with GPUMonitor(gpu_index=0, log_dir="mine", enable_prometheus=True) as monitor:
                assert monitor.wait_for_sample(20)
            with GPUMonitor(gpu_index=0) as monitor:
                assert monitor.wait_for_sample(20)
            """,
            self.agent.url,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("running"), 1, done.stderr)
        self.assertIn("--log-dir mine --prometheus-port 9090", done.stderr)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"

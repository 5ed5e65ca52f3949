"""The examples of the tools that gpuwarden replaces, word for word: their modules, their classes, their commands, their settings."""
from __future__ import annotations

import json
import os
import pty
import select
import signal
import stat
import subprocess
import sys
import time
from typing import Dict, List

from gpuwarden.compat import FOLDER

from .world import BIN, NODE, PACKAGE, WorldWithAgent, _end, until

LOOP = """
num_steps, epoch, grad_norm, samples_per_sec = 12, 0.5, 1.5, 32.0
class optimizer: param_groups = [{"lr": 1e-4}]
def train_step(): return 0.25

from monitoring.gpu_monitor import GPUMonitor, TrainingMonitorCallback

# Initialize monitor
gpu_monitor = GPUMonitor(gpu_index=0, sample_interval=1.0)
callback = TrainingMonitorCallback(gpu_monitor)

# Start monitoring
callback.on_train_begin()

# During training loop
for step in range(num_steps):
    callback.on_step_begin()

    # Your training code here
    loss = train_step()

    callback.on_step_end(
        step=step,
        epoch=epoch,
        loss=loss,
        lr=optimizer.param_groups[0]['lr'],
        grad_norm=grad_norm,
        throughput=samples_per_sec
    )

# End monitoring
callback.on_train_end()
"""
UNIFIED = """
import time
from tools.memory import MemoryDebugger
%s
# Start comprehensive monitoring
debugger = MemoryDebugger()
debugger.start_monitoring()

time.sleep(2.5)

# Stop monitoring and get report
debugger.stop_monitoring()
report = debugger.get_status_report()
print(f"Monitoring summary: {report}")
"""
DEBUG = "import logging\nlogging.basicConfig(level=logging.DEBUG)\n"
SINGLE = """
import time
from tools.memory import MemoryProfiler, OOMDetector

# Memory analysis
profiler = MemoryProfiler(sampling_interval=0.1)
profiler.start_monitoring()
time.sleep(2.5)
profiler.stop_monitoring()
profiler.generate_report('memory_report.json')

# OOM detection
detector = OOMDetector(threshold=85.0)
detector.start_monitoring()

def custom_oom_callback(prediction):
    if prediction.risk_level.value == "critical":
        # Execute emergency operations, such as reducing batch size
        print(f"Critical OOM risk on GPU {prediction.device_id}! Taking action...")

detector = OOMDetector(warning_callback=custom_oom_callback)
detector.start_monitoring()
"""


class OlderNames(WorldWithAgent):
    def setUp(self) -> None:
        super().setUp()
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        program = os.path.join(folder, "gpuwarden")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec "%s" "%s" "$@"\n' % (NODE, BIN))
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        self.more = {
            "PYTHONPATH": os.pathsep.join((PACKAGE, FOLDER)),
            "PATH": folder + os.pathsep + os.environ["PATH"],
            "GPUWARDEN_SOURCE": "demo",
            "GPUWARDEN_DEMO_SCENARIO": "healthy",
            "GPUWARDEN_SERVER_PORT": "0",
            "XDG_CONFIG_HOME": "/nonexistent",
        }

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen(
            [sys.executable, "-W", "error", "-m"] + list(arguments),
            env=self.environment(self.agent.url, **self.more),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        self.addCleanup(_end, child)
        return child

    def said(self, child: "subprocess.Popen[str]", *codes: int) -> str:
        out, err = child.communicate(timeout=60)
        self.assertIn(child.returncode, codes or (0,), err)
        self.assertNotIn("RuntimeWarning", err)
        return out

    def test_the_training_loop(self) -> None:
        done = self.run_script(LOOP, self.agent.url, **self.more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.agent.end()
        lines = self.agent.logged()
        self.assertEqual([line["step"] for line in lines], list(range(12)))
        figures = [lines[0][name] for name in ("epoch", "loss", "learning_rate", "gradient_norm", "throughput_samples_per_sec")]
        self.assertEqual(figures, [0.5, 0.25, 1e-4, 1.5, 32.0])

    def test_the_memory_classes(self) -> None:
        single = self.start_script(SINGLE, self.agent.url, **self.more)
        unified = self.start_script(UNIFIED % "", self.agent.url, **self.more)
        debugged = self.start_script("import gpuwarden.compat\n" + UNIFIED % DEBUG, self.agent.url)
        self.assertIn("'total_devices': 2", self.said(unified))
        out, err = debugged.communicate(timeout=60)
        self.assertIn("Monitoring summary: {", out)
        self.assertIn("DEBUG:gpuwarden:", err)
        self.said(single)
        with open(os.path.join(self.folder, "memory_report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertLessEqual({"timestamp", "devices", "summary"}, set(report))
        self.assertLessEqual({"allocated", "free", "total", "utilization_percent"}, set(report["devices"]["0"]["current_usage"]))
        # Ten a second, although this agent samples five times a second.
        self.assertGreater(report["devices"]["0"]["statistics"]["samples_count"], 13)

    def test_the_memory_commands(self) -> None:
        endless = [
            self.start("tools.memory", *arguments)
            for arguments in (
                ("profile", "--devices", "0", "1", "--duration", "0"),
                ("oom", "--threshold", "85", "--monitor"),
                ("monitor", "--all", "--log-dir", "all_logs"),
            )
        ]
        profile = self.start("tools.memory", "profile", "--duration", "1", "--output", "profile.json")
        self.assertIn("GPU 0", self.said(profile))
        with open(os.path.join(self.folder, "profile.json"), encoding="utf-8") as file:
            self.assertEqual(sorted(json.load(file)["devices"]), ["0", "1"])
        for child in (
            self.start("tools.memory", "oom", "--devices", "0", "--threshold", "90", "--duration", "1"),
            self.start("tools.memory", "leak", "--check", "--threshold", "100", "--duration", "1"),
            self.start("tools.memory", "monitor", "--all", "--duration", "1", "--log-dir", "short_logs"),
        ):
            self.said(child)
        for child in endless:
            child.send_signal(signal.SIGINT)
            self.said(child, 0, 130, -signal.SIGINT)

    def test_the_monitor(self) -> None:
        child = self.start("monitoring.gpu_monitor", "--gpu", "0", "--interval", "0.2", "--prometheus-port", "0", "--log-dir", "gpu_logs")
        folder = os.path.join(self.folder, "gpu_logs")
        lines: List[Dict[str, object]] = until("there is a log", lambda: read_lines(folder, "gpu_metrics_"))
        child.send_signal(signal.SIGTERM)
        self.said(child)
        names = ["utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent", "temperature_celsius", "power_draw_watts", "fan_speed_percent"]
        self.assertLessEqual({"timestamp", "gpu_index", *names}, set(lines[0]))

    def test_the_dashboard_and_its_keys(self) -> None:
        master, slave = pty.openpty()
        command = [sys.executable, "-W", "error", "-m", "monitoring.gpu_dashboard", "--gpu", "0", "--interval", "0.5"]
        env = dict(self.environment(self.agent.url, **self.more), TERM="xterm-256color", COLUMNS="100", LINES="30")
        child = subprocess.Popen(command, env=env, cwd=self.folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        self.addCleanup(_end, child)
        os.close(slave)
        seen = self.read_screen(master, lambda text: "GPU" in text)
        for key in (b"s", b"r", b"q"):
            time.sleep(0.3)
            os.write(master, key)
        self.read_screen(master, lambda _: child.poll() is not None)
        os.close(master)
        self.assertEqual(child.wait(20), 0, seen)
        self.assertTrue([name for name in os.listdir(self.folder) if "metrics" in name], os.listdir(self.folder))

    def read_screen(self, master: int, is_enough: "object") -> str:
        text, deadline = "", time.monotonic() + 30
        while time.monotonic() < deadline and not is_enough(text):  # type: ignore[operator]
            if select.select([master], [], [], 0.1)[0]:
                try:
                    text += os.read(master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        return text


def read_lines(folder: str, start: str) -> "List[Dict[str, object]]":
    if not os.path.isdir(folder):
        return []
    lines: List[Dict[str, object]] = []
    for name in os.listdir(folder):
        if name.startswith(start) and name.endswith(".jsonl"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                lines += [json.loads(line) for line in file if line.endswith("\n")]
    return lines

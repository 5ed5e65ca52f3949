"""What the tests share: folders of their own, scripts that run as programs of their own, the real agent."""
from __future__ import annotations

import glob
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import urllib.error
import urllib.request
from typing import IO, Any, Callable, Dict, List, Optional

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)
BIN = os.environ.get("GPUWARDEN_TEST_BIN") or os.path.join(os.path.dirname(PACKAGE), "bin", "gpuwarden.js")
NODE = os.environ.get("GPUWARDEN_TEST_NODE") or shutil.which("node")


def until(what: str, probe: Callable[[], Any], seconds: float = 30.0) -> Any:
    """The limit is generous: it only ends a test that would fail anyway."""
    deadline = time.monotonic() + seconds
    last: Any = None
    while time.monotonic() < deadline:
        last = probe()
        if last:
            return last
        time.sleep(0.02)
    raise AssertionError("gave up waiting until %s; last: %r" % (what, last))


def spool_is_empty() -> bool:
    """For scripts: whether everything that anybody left has been delivered."""
    return not glob.glob(os.path.join(os.environ["GPUWARDEN_SPOOL"], "*.jsonl"))


class World(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="gpuwarden-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.spool = os.path.join(self.folder, "spool")

    def environment(self, url: str, **more: str) -> Dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUWARDEN_", "SLURM_", "RANK", "TRACEPARENT"))}
        kept.update(PYTHONPATH=PACKAGE, GPUWARDEN_URL=url, GPUWARDEN_SPOOL=self.spool, GPUWARDEN_NO_START="1")
        kept.update(more)
        return kept

    def start_script(self, code: str, url: str, **env: str) -> "subprocess.Popen[str]":
        """A program of its own, as a user's training is. It says where it is on its standard output."""
        path = os.path.join(self.folder, "train_%d.py" % len(os.listdir(self.folder)))
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(code))
        child = subprocess.Popen(
            [sys.executable, path],
            env=self.environment(url, **env),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        )
        self.addCleanup(_end, child)
        return child

    def run_script(self, code: str, url: str, timeout: float = 60.0, **env: str) -> "subprocess.CompletedProcess[str]":
        child = self.start_script(code, url, **env)
        out, err = child.communicate(timeout=timeout)
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)

    def terminated(self, child: "subprocess.Popen[str]", pause: float = 0.0) -> int:
        """Sends SIGTERM once the script says that it is ready; returns its exit code."""
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(pause)
        child.send_signal(signal.SIGTERM)
        return child.wait(30)

    def spooled(self) -> List[Dict[str, Any]]:
        """Every line of every spool file; a line that is no JSON fails the test."""
        lines: List[Dict[str, Any]] = []
        for path in sorted(glob.glob(os.path.join(self.spool, "*.jsonl"))):
            with open(path, encoding="utf-8") as file:
                lines.extend(json.loads(line) for line in file)
        return lines

    def spooled_steps(self) -> List[int]:
        return sorted(line["step"] for line in self.spooled() if "seq" in line)


class Agent:
    """The real program, on simulated GPUs."""

    def __init__(self, log_dir: str, port: int = 0, *flags: str) -> None:
        assert NODE is not None
        self.log_dir = log_dir
        command = [NODE, BIN, "monitor", "--source", "demo", "--demo-scenario", "idle", "--port", str(port), "--log-dir", log_dir, "--interval", "0.2"] + list(flags)
        env = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
        env["XDG_CONFIG_HOME"] = "/nonexistent"
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
        self.url = self._wait_for_url()

    def _wait_for_url(self) -> str:
        assert self.child.stderr is not None
        said: List[str] = []
        for raw in self.child.stderr:
            line = raw.decode("utf-8", "replace")
            said.append(line)
            if "gpuwarden is watching" in line:
                threading.Thread(target=_drain, args=(self.child.stderr,), daemon=True).start()
                return str(json.loads(line)["url"])
        raise AssertionError("the agent ended before it watched: %s" % "".join(said))

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
            return None

    def takes_runs(self) -> bool:
        return self.get("/api/v1/runs") is not None

    def end(self, how: int = signal.SIGTERM) -> None:
        if self.child.poll() is None:
            self.child.send_signal(how)
        self.child.wait(30)

    def logged(self) -> List[Dict[str, Any]]:
        """Every line of the training log that was posted, oldest file first; simulated GPUs have a simulated training too."""
        lines: List[Dict[str, Any]] = []
        for path in self.training_files():
            opener = gzip.open if path.endswith(".gz") else open
            try:
                with opener(path, "rt", encoding="utf-8") as file:
                    lines.extend(json.loads(line) for line in file if line.endswith("\n"))
            except FileNotFoundError:
                # It was compressed between the look and the read: look again.
                return self.logged()
        return [line for line in lines if line.get("provenance") != "simulated"]

    def training_files(self) -> List[str]:
        """One per log file: while the agent compresses one, the file, its half-written archive and its archive can all be there."""
        plain = glob.glob(os.path.join(self.log_dir, "training_metrics_*.jsonl"))
        packed = glob.glob(os.path.join(self.log_dir, "training_metrics_*.jsonl.gz"))
        return sorted(plain + [path for path in packed if path[: -len(".gz")] not in plain])


class WorldWithAgent(World):
    def setUp(self) -> None:
        super().setUp()
        if NODE is None or not os.path.exists(BIN):
            self.skipTest("the agent is not here: needs node and %s" % BIN)
        self.agent = self.start_agent()

    def start_agent(self, port: int = 0, *flags: str) -> Agent:
        agent = Agent(os.path.join(self.folder, "logs"), port, *flags)
        self.addCleanup(agent.end, signal.SIGKILL)
        return agent


def _drain(pipe: IO[bytes]) -> None:
    """A program whose output nobody takes comes to a stop."""
    with pipe:
        while pipe.read(65536):
            continue


def _end(child: "subprocess.Popen[str]") -> None:
    if child.poll() is None:
        child.kill()
    child.wait(30)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()

"""A leak gets its line while the run goes on, on a real GPU and without a switch set in the program.

    python test/hardware/live_leak.py [--node NODE] [--size large|small] [--flat 60]

Starts an agent, then a healthy training, then one that is flat for `--flat` seconds and begins to leak. Says when the leak began, when the agent
named its line, what the recorded steps cost beside the others of the same run, and that the healthy training was never asked. Exit code 0 when the
right line was named within 60 s and the healthy training was left alone. `--played` tries the script itself, with a PyTorch that is played.
"""
from __future__ import annotations

import argparse
import functools
import inspect
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from typing import Any, Callable, Dict, List, Optional, Tuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GIB = 1 << 30
#: The agent has to name the line within this time of the leak's beginning.
LIMIT_SECONDS = 60.0
#: How fast the leak is, whatever the time of a step. Memory has to grow by about a fifth of what is free before it is called a leak.
LEAK_GIB_PER_SECOND = 0.8
_kept: List[Any] = []


def remember(make: Callable[[int], Any], size: int) -> None:
    _kept.append(make(size))


# --- the training


def real_step(size: str) -> Tuple[Callable[[], None], Callable[[int], Any]]:
    import torch
    from torch import nn

    width, layers, batch, length = (1536, 24, 16, 1024) if size == "large" else (768, 12, 2, 128)
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, batch_first=True, device="cuda", dtype=torch.bfloat16)
    model = nn.TransformerEncoder(layer, layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step() -> None:
        loss = model(torch.randn(batch, length, width, device="cuda", dtype=torch.bfloat16)).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()

    # Not a function of its own: the line that allocates is that of `remember`.
    return step, functools.partial(torch.empty, dtype=torch.uint8, device="cuda")


def played_step() -> Tuple[Callable[[], None], Callable[[int], Any]]:
    from tests.leaking_torch import Played

    torch = Played(20 * GIB)
    return (lambda: time.sleep(0.05)), torch.make


def train(name: str, size: str, flat: float, seconds: float, steps_file: str, is_played: bool) -> None:
    import gpuwarden

    step, make = played_step() if is_played else real_step(size)
    for _ in range(5):
        step()
    began = time.time()
    times: List[float] = []
    with gpuwarden.run(name, gpus=[0] if is_played else None) as run, open(steps_file, "w", encoding="utf-8") as out:
        leak_bytes = 0
        number = 0
        while time.time() - began < seconds:
            at = time.perf_counter()
            step()
            is_leaking = name == "leaky" and time.time() - began > flat
            if is_leaking:
                leak_bytes = leak_bytes or int(LEAK_GIB_PER_SECOND * GIB * statistics.median(times[-50:]))
                remember(make, leak_bytes)
            is_recorded = run._recorder._window is not None
            run.log(step=number, loss=1.0)
            took = time.perf_counter() - at
            times.append(took)
            out.write(json.dumps({"at": time.time(), "seconds": took, "leaks": is_leaking, "recorded": is_recorded, "leak_bytes": leak_bytes}) + "\n")
            out.flush()
            number += 1


# --- who watches it


class Watched:
    def __init__(self, node: str, folder: str, port: int) -> None:
        command = [node, os.path.join(ROOT, "bin", "gpuwarden.js"), "monitor", "--port", str(port), "--log-dir", os.path.join(folder, "logs"), "--interval", "0.5", "--quiet"]
        self._log = open(os.path.join(folder, "agent.log"), "wb")
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log)
        self.url = "http://127.0.0.1:%d" % port

    def get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return json.load(answer)
        except OSError:
            return None

    def run(self, name: str) -> Dict[str, Any]:
        runs = (self.get("/api/v1/runs") or {"runs": []})["runs"]
        return next((dict(run) for run in runs if run["name"] == name), {})

    def recordings(self, name: str) -> List[Dict[str, Any]]:
        answer = self.get("/api/v1/runs/%s/recordings" % self.run(name).get("id", "none")) or {"waiting": [], "recordings": []}
        return list(answer["waiting"]) + list(answer["recordings"])

    def named(self) -> Optional[Dict[str, Any]]:
        findings = (self.get("/api/v1/findings") or {"findings": []})["findings"]
        own = self.run("leaky").get("id")
        return next((dict(one) for one in findings if one["subject"]["run"] == own and one["evidence"].get("line")), None)


def start_training(name: str, folder: str, options: argparse.Namespace, url: str, seconds: float) -> "subprocess.Popen[bytes]":
    env = {key: value for key, value in os.environ.items() if not key.startswith("GPUWARDEN_")}
    env.update(PYTHONPATH=os.path.join(ROOT, "python"), GPUWARDEN_URL=url, GPUWARDEN_SPOOL=os.path.join(folder, "spool"), GPUWARDEN_NO_START="1")
    command = [sys.executable, os.path.abspath(__file__), "--train", name, "--steps-file", os.path.join(folder, name + ".jsonl"), "--seconds", str(seconds)]
    command += ["--flat", str(options.flat), "--size", options.size] + (["--played"] if options.played else [])
    return subprocess.Popen(command, env=env)


def steps_of(folder: str, name: str) -> List[Dict[str, Any]]:
    with open(os.path.join(folder, name + ".jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def milliseconds(steps: List[Dict[str, Any]]) -> Optional[float]:
    return round(1000 * statistics.median(step["seconds"] for step in steps), 3) if steps else None


def watch(options: argparse.Namespace, folder: str) -> Dict[str, Any]:
    agent = Watched(options.node, folder, options.port)
    try:
        while agent.get("/healthz") is None:
            if agent.child.poll() is not None:
                raise SystemExit("the agent ended: see %s/agent.log" % folder)
            time.sleep(0.1)
        healthy = start_training("healthy", folder, options, agent.url, options.healthy)
        healthy.wait()
        asked_of_healthy = agent.recordings("healthy")
        leaky = start_training("leaky", folder, options, agent.url, options.flat + 2 * LIMIT_SECONDS)
        named: Optional[Dict[str, Any]] = None
        named_at = 0.0
        while leaky.poll() is None and named is None:
            named = agent.named()
            named_at = time.time()
            time.sleep(0.1)
        time.sleep(3 if named else 0)
        recordings = agent.recordings("leaky")
        leaky.terminate()
        leaky.wait()
    finally:
        agent.child.terminate()
        agent.child.wait()
    steps = steps_of(folder, "leaky")
    leaking = [step for step in steps if step["leaks"]]
    began_at = leaking[0]["at"] if leaking else None
    wanted = "%s:%d" % (os.path.basename(__file__), inspect.getsourcelines(remember)[1] + 1)
    line = str(named["evidence"]["line"]) if named else None
    return {
        "healthy": {"steps": len(steps_of(folder, "healthy")), "median_ms": milliseconds(steps_of(folder, "healthy")), "recordings": asked_of_healthy},
        "leak": {"began_at": began_at, "mib_per_step": round(leaking[0]["leak_bytes"] / (1 << 20), 1) if leaking else None, "line": wanted},
        "named": {"after_seconds": round(named_at - began_at, 2) if named and began_at else None, "line": line, "message": named["message"] if named else None},
        "recordings": recordings,
        "step_ms": {
            "flat": milliseconds([step for step in steps if not step["leaks"]]),
            "leaking_not_recorded": milliseconds([step for step in leaking if not step["recorded"]]),
            "recorded": milliseconds([step for step in steps if step["recorded"]]),
            "recorded_steps": sum(step["recorded"] for step in steps),
            "longest_recorded": round(1000 * max([step["seconds"] for step in steps if step["recorded"]] or [0]), 3),
        },
        "is_met": bool(named and began_at and named_at - began_at <= LIMIT_SECONDS and line and wanted in line and asked_of_healthy == []),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", default=shutil.which("node") or "node")
    parser.add_argument("--size", choices=("large", "small"), default="large")
    parser.add_argument("--flat", type=float, default=60.0, help="seconds before the leak begins")
    parser.add_argument("--healthy", type=float, default=75.0, help="seconds of the healthy training")
    parser.add_argument("--port", type=int, default=47811)
    parser.add_argument("--played", action="store_true", help="without a GPU")
    parser.add_argument("--keep", help="write logs and steps here")
    parser.add_argument("--train", choices=("healthy", "leaky"), help=argparse.SUPPRESS)
    parser.add_argument("--steps-file", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        train(options.train, options.size, options.flat, options.seconds, options.steps_file, options.played)
        return
    folder = options.keep or tempfile.mkdtemp(prefix="gpuwarden-live-leak-")
    os.makedirs(folder, exist_ok=True)
    result = watch(options, folder)
    print(json.dumps(result, indent=2))
    if options.keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(0 if result["is_met"] else 1)


if __name__ == "__main__":
    main()

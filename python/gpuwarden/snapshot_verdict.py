"""What the program `gpuwarden` says of a snapshot file."""
from __future__ import annotations

import json
import logging
import os
import subprocess
from typing import Any, Dict, List, Optional

from .program import program_command

log = logging.getLogger("gpuwarden")

#: The program has failed already: it may take this much longer to say why.
_SECONDS = 10.0
_LARGEST_ANSWER = 64 * 1024 * 1024
_MOST_WAYS = 3


def analyze_snapshot(path: str, seconds: float = 600.0) -> Dict[str, Any]:
    """What `gpuwarden snapshot FILE --json` says. Raises RuntimeError where the program is missing or cannot read the file."""
    return _ask("snapshot", path, seconds)


def ways_out_of(path: str) -> Optional[List[Dict[str, Any]]]:
    """The cheapest ways out of an out-of-memory with what each gives, cheapest first; None where nobody can tell."""
    try:
        return _ways(_ask("oom", path, _SECONDS))
    except (RuntimeError, KeyError, TypeError) as error:
        log.debug("gpuwarden: %s was not analyzed: %s", path, error)
        return None


def _ask(command: str, path: str, seconds: float) -> Dict[str, Any]:
    named = os.environ.get("GPUWARDEN_PROGRAM")
    program = [named] if named else program_command()
    if program is None:
        raise RuntimeError("the program gpuwarden is not on the PATH: run `pip install \"gpuwarden[agent]\"` or `npm install --global gpuwarden`")
    try:
        done = subprocess.run(program + [command, path, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds)
        if done.returncode not in (0, 1) or len(done.stdout) > _LARGEST_ANSWER:
            raise RuntimeError(done.stderr.decode("utf-8", "replace").strip()[:500] or "exit code %d" % done.returncode)
        answer: Dict[str, Any] = json.loads(done.stdout.decode("utf-8"))
        return answer
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise RuntimeError("%s was not analyzed: %s" % (path, error)) from error


def _ways(answer: Any) -> Optional[List[Dict[str, Any]]]:
    for device in answer["devices"]:
        for event in device["out_of_memory"]:
            ways = [{name: way[name] for name in ("what", "line", "bytes", "is_bound", "is_enough")} for way in event["ways_out"]]
            return ways[:_MOST_WAYS]
    return None

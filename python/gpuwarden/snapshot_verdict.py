"""What `gpuwarden oom FILE` says of a snapshot that was just written; nothing where the program is not installed."""
from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional

log = logging.getLogger("gpuwarden")

#: The program has failed already: it may take this much longer to say why.
_SECONDS = 10.0
_LARGEST_ANSWER = 8 * 1024 * 1024
_MOST_WAYS = 3


def ways_out_of(path: str) -> Optional[List[Dict[str, Any]]]:
    """The cheapest ways out with what each gives, cheapest first; None where nobody can tell."""
    program = os.environ.get("GPUWARDEN_PROGRAM") or shutil.which("gpuwarden")
    if program is None:
        return None
    try:
        done = subprocess.run([program, "oom", path, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_SECONDS)
        if done.returncode not in (0, 1) or len(done.stdout) > _LARGEST_ANSWER:
            return None
        return _ways(json.loads(done.stdout.decode("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        log.debug("gpuwarden: %s was not analyzed: %s", path, error)
        return None


def _ways(answer: Any) -> Optional[List[Dict[str, Any]]]:
    for device in answer["devices"]:
        for event in device["out_of_memory"]:
            ways = [{name: way[name] for name in ("what", "line", "bytes", "is_bound", "is_enough")} for way in event["ways_out"]]
            return ways[:_MOST_WAYS]
    return None

"""An agent that this program starts where none is running: once, in the background, and stopped when the program ends."""
from __future__ import annotations

import atexit
import logging
import os
import subprocess
import threading
import time
from typing import List, Optional
from urllib.parse import urlsplit

from . import lifecycle
from .agent_link import AgentLink, Unreachable
from .program import program_command
from .ranks import read_ranks
from .settings import Settings

log = logging.getLogger("gpuwarden")

_START_SECONDS = 20.0
_started: "Optional[subprocess.Popen[bytes]]" = None
_starter_pid = 0
_lock = threading.Lock()


def is_answering(settings: Settings) -> bool:
    link = AgentLink(settings, timeout=1.0)
    try:
        return link.get("/healthz").ok
    except Unreachable:
        return False
    finally:
        link.close()


def ensure_agent(settings: Settings, flags: Optional[List[str]] = None) -> bool:
    """Whether an agent answers, after starting one if possible. May take seconds: never called on the training thread."""
    global _lock
    if is_answering(settings):
        return True
    if not settings.may_start_agent or not settings.is_loopback or read_ranks().local_rank != 0:
        return False
    program = program_command()
    if program is None:
        return False
    if _starter_pid and _starter_pid != os.getpid():
        _lock = threading.Lock()  # After a fork the parent's lock may be held forever here.
    with _lock:
        return is_answering(settings) or _start(program, settings, flags or [])


def _start(program: List[str], settings: Settings, flags: List[str]) -> bool:
    global _started, _starter_pid
    port = urlsplit(settings.url).port or 80
    try:
        child = subprocess.Popen(
            program + ["monitor", "--port", str(port), "--quiet"] + flags,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        log.warning("gpuwarden: %s could not be started: %s", " ".join(program), error)
        return False
    if _starter_pid != os.getpid():
        atexit.register(_at_exit)
    _started, _starter_pid = child, os.getpid()
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        if is_answering(settings):
            return True
        time.sleep(0.1)
    if is_answering(settings):
        return True  # Another process was faster, and ours gave way to it.
    log.warning("gpuwarden: the agent that was started does not answer at %s (exit code %s)", settings.url, child.poll())
    return False


def _at_exit() -> None:
    # What is registered last is called first: the agent must hear the end of the runs before it stops.
    lifecycle.end_with_program()
    stop_agent()


def stop_agent() -> None:
    """Stops only the one that this process started."""
    global _started
    child, _started = _started, None
    if child is not None and _starter_pid == os.getpid() and child.poll() is None:
        child.terminate()


def started_pid() -> Optional[int]:
    return _started.pid if _started is not None and _starter_pid == os.getpid() else None

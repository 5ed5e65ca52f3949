"""What must happen to open runs when the process forks, ends, fails or gets SIGTERM."""
from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, Optional

from . import deferred

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Type

    from .training_run import Run

log = logging.getLogger("gpuwarden")

#: The most time that the SDK takes at the end of a program.
EXIT_SECONDS = 1.0
#: How long a program that got SIGTERM may stay in a native call before the watching thread ends it.
_STUCK_SECONDS = 5.0

_open_runs: Dict[int, "Run"] = {}
_is_installed = False
_previous_hook: Any = None
_handles_sigterm = False
_wakeup_read = -1
_wakeup_write = -1


def opened(run: "Run") -> None:
    _open_runs[id(run)] = run
    _install()
    _end_with_child_process()
    _handle_sigterm()


def closed(run: "Run") -> None:
    _open_runs.pop(id(run), None)
    if not _open_runs:
        _release_sigterm()


def latest() -> "Optional[Run]":
    """The open run that was started last."""
    return next(reversed(list(_open_runs.values())), None)


def end_all(outcome: str, message: Optional[str] = None) -> None:
    """Every open run, within EXIT_SECONDS for all together."""
    deadline = time.monotonic() + EXIT_SECONDS
    for run in list(_open_runs.values()):
        run.finish(outcome, message, timeout=max(0.1, deadline - time.monotonic()))


def end_with_program() -> None:
    """At exit, for runs that nobody has ended; a second call finds none."""
    deadline = time.monotonic() + EXIT_SECONDS
    for run in list(_open_runs.values()):
        run.finish_with_program(max(0.1, deadline - time.monotonic()))


def _install() -> None:
    global _is_installed, _previous_hook
    if _is_installed:
        return
    _is_installed = True
    atexit.register(end_with_program)
    _previous_hook = sys.excepthook
    sys.excepthook = _on_uncaught
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_in_child)


def _end_with_child_process() -> None:
    """A process of `multiprocessing` that was forked ends without what is registered with atexit."""
    process = sys.modules.get("multiprocessing.process")
    parent = getattr(process, "parent_process", None)
    if parent is not None and parent() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, end_with_program, exitpriority=100)


def _on_uncaught(kind: "Type[BaseException]", error: BaseException, trace: "Optional[TracebackType]") -> None:
    try:
        for run in list(_open_runs.values()):
            run.fail(error)
    except Exception as fault:
        log.debug("gpuwarden: %s", fault)
    hook = _previous_hook or sys.__excepthook__
    hook(kind, error, trace)


def _in_child() -> None:
    """The child of a fork has no sender thread, and locks may be held by threads that it does not have: runs are silent there."""
    global _handles_sigterm
    for run in list(_open_runs.values()):
        run.go_silent()
    _open_runs.clear()
    deferred.forget_after_fork()
    if _handles_sigterm and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if _wakeup_write >= 0:
                signal.set_wakeup_fd(-1)
        except ValueError:
            pass  # Forked from another thread than the main one: the handler sees that this is a child.
    _handles_sigterm = False
    _close_wakeup()


def _handle_sigterm() -> None:
    """Only where SIGTERM would end the process at once: nobody else's handler is touched."""
    global _handles_sigterm, _wakeup_read, _wakeup_write
    if _handles_sigterm or threading.current_thread() is not threading.main_thread():
        return
    try:
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        signal.signal(signal.SIGTERM, _on_sigterm)
        _handles_sigterm = True
        _wakeup_read, _wakeup_write = os.pipe()
        os.set_blocking(_wakeup_read, False)
        os.set_blocking(_wakeup_write, False)
        others = signal.set_wakeup_fd(_wakeup_write, warn_on_full_buffer=False)
        if others != -1:
            signal.set_wakeup_fd(others)
            _close_wakeup()
    except (ValueError, OSError, AttributeError) as error:
        log.debug("gpuwarden: SIGTERM will end the process without a last report: %s", error)


def _release_sigterm() -> None:
    global _handles_sigterm
    if not _handles_sigterm or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if _wakeup_write >= 0:
        current = signal.set_wakeup_fd(-1)
        if current not in (-1, _wakeup_write):
            signal.set_wakeup_fd(current)
    _close_wakeup()
    _handles_sigterm = False


def _on_sigterm(number: int, frame: Any) -> None:
    try:
        end_all("killed", "SIGTERM")
    except Exception as error:
        log.debug("gpuwarden: %s", error)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def watch_for_sigterm() -> None:
    """Called by a sender thread now and then. A main thread that is stuck in a native call never runs the handler."""
    read_from = _wakeup_read
    if read_from < 0:
        return
    try:
        received = os.read(read_from, 512)
    except OSError:
        return
    if int(signal.SIGTERM) in received and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        threading.Thread(target=_end_if_stuck, args=(os.getpid(),), name="gpuwarden-end", daemon=True).start()


def _end_if_stuck(pid: int) -> None:
    time.sleep(_STUCK_SECONDS)
    if os.getpid() == pid and signal.getsignal(signal.SIGTERM) is _on_sigterm and _open_runs:
        end_all("killed", "SIGTERM")
        os.kill(pid, signal.SIGKILL)


def _close_wakeup() -> None:
    global _wakeup_read, _wakeup_write
    for file in (_wakeup_read, _wakeup_write):
        if file >= 0:
            try:
                os.close(file)
            except OSError:
                pass  # Closed by a program that closes all files.
    _wakeup_read = _wakeup_write = -1

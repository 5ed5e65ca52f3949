"""Where the threads of this program are: their Python stacks and what the kernel says of them, read without stopping anything.

Files, lines and names of functions only: no values of variables, no source text.
"""
from __future__ import annotations

import os
import platform
import sys
import threading
from typing import Any, Dict, List, Optional, Tuple

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
MOST_THREADS = 32
MOST_FRAMES = 48
_LONGEST_PATH = 300
_LONGEST_NAME = 120

#: System call → what a thread in it does. Numbers differ by machine.
_CALLS: Dict[str, Dict[int, str]] = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select", 35: "nanosleep",
        42: "connect", 43: "accept", 45: "recvfrom", 47: "recvmsg", 44: "sendto", 46: "sendmsg", 61: "wait4", 74: "fsync", 75: "fdatasync",
        202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
        72: "fcntl", 73: "flock", 2: "open", 257: "openat", 16: "ioctl",
    },
    "aarch64": {
        63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 72: "pselect6", 73: "ppoll", 82: "fsync",
        83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 202: "accept", 203: "connect", 206: "sendto",
        207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 260: "wait4", 22: "epoll_pwait", 25: "fcntl", 32: "flock", 56: "openat", 29: "ioctl",
    },
}  # fmt: skip


def threads() -> List[Dict[str, Any]]:
    """The main thread first; without our own."""
    known = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident
    listed: List[Tuple[int, Dict[str, Any]]] = []
    for ident, frame in sys._current_frames().items():
        thread = known.get(ident)
        name = thread.name if thread is not None else "thread %d" % ident
        if name.startswith("gpuwarden"):
            continue
        native = getattr(thread, "native_id", None)
        told: Dict[str, Any] = {"name": name[:_LONGEST_NAME], "is_main": ident == main, "frames": _frames(frame)}
        told.update(_kernel_view(native))
        listed.append((0 if ident == main else 1, told))
    listed.sort(key=lambda entry: (entry[0], entry[1]["name"]))
    return [told for _, told in listed[:MOST_THREADS]]


def mark_of_main() -> Any:
    """Equal as long as the main thread stays in the same call of the same functions."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    mark = []
    while frame is not None and len(mark) < MOST_FRAMES:
        mark.append((id(frame), frame.f_lasti))
        frame = frame.f_back
    return tuple(mark)


def _frames(frame: Any) -> List[Dict[str, Any]]:
    """Innermost first."""
    frames: List[Dict[str, Any]] = []
    while frame is not None and len(frames) < MOST_FRAMES:
        code = frame.f_code
        if not code.co_filename.startswith(_OURS):
            frames.append(
                {
                    "file": code.co_filename[-_LONGEST_PATH:],
                    "line": frame.f_lineno or 0,
                    "function": getattr(code, "co_qualname", code.co_name)[:_LONGEST_NAME],
                }
            )
        frame = frame.f_back
    return frames


def _kernel_view(native: Optional[int]) -> Dict[str, Any]:
    """What /proc says of a thread of ours; empty where there is none."""
    if native is None:
        return {}
    told: Dict[str, Any] = {"tid": native}
    folder = "/proc/self/task/%d/" % native
    stat = _read(folder + "stat")
    after_name = stat.rpartition(")")[2].split()
    if after_name:
        told["state"] = after_name[0]
    call = _read(folder + "syscall").split(" ", 1)[0].strip()
    if call.isdigit():
        told["syscall"] = _CALLS.get(platform.machine(), {}).get(int(call), "system call %s" % call)
    wchan = _read(folder + "wchan").strip()
    if wchan and wchan != "0":
        told["wchan"] = wchan[:_LONGEST_NAME]
    return told


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError:
        return ""

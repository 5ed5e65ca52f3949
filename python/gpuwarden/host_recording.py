"""The lines whose Python objects and tensors stay in host memory, by tracemalloc. It slows down every allocation of Python: on request only."""
from __future__ import annotations

import itertools
import tracemalloc
from typing import Any, Dict, Iterator, Optional, Tuple

from .cpu_tensors import Frames, cpu_tensors
from .resident import resident_bytes
from .snapshots import PACKAGE, Line, is_own_file
from .window import Refused, Window

#: Enough to find the program's own line behind a library.
_FRAMES = 12
_MOST_TRACED_BYTES = 4 * 1024**3

#: Functions of the program and of PyTorch are called through these.
_HOOKS = ("_hooks.py", "hook_guard.py", "collectives.py")

_Sizes = Dict[Line, Tuple[int, int]]


class HostWindow(Window):
    def __init__(self) -> None:
        super().__init__()
        self._is_ours = False
        self._resident: Dict[str, Optional[int]] = {}

    def begin(self, trigger: str) -> None:
        # A program that traces by itself goes on to: its traces are looked at, and stay on.
        if not tracemalloc.is_tracing():
            tracemalloc.start(_FRAMES)
            self._is_ours = True

    def end(self) -> None:
        if self._is_ours:
            tracemalloc.stop()
            self._is_ours = False

    def verdict(self) -> Dict[str, Any]:
        middle, end = self.seen("middle"), self.seen("end")
        begin: _Sizes = self.seen("begin")
        growing: Dict[Line, Tuple[int, int]] = {}
        for line, (size, count) in end.items():
            first, half = begin.get(line, (0, 0)), middle.get(line, (0, 0))
            late = size - half[0]
            # Something that is made once, or anew in each step, does not grow in both halves alike.
            if late > 0 and half[0] - first[0] > 0.3 * late and late > 0.3 * (half[0] - first[0]):
                growing[line] = (size - first[0], count - first[1])
        grown = _total(end) - _total(begin)
        described = self.described(growing, grown if grown > 0 else None, self.steps_between("begin", "end"))
        described["resident_grown_bytes"] = _difference(self._resident.get("begin"), self._resident.get("end"))
        return described

    def _look(self, name: str) -> _Sizes:
        if name in ("old", "before"):
            return {}
        self._resident[name] = resident_bytes()
        if not tracemalloc.is_tracing():
            raise Refused("the program switched tracemalloc off")
        if tracemalloc.get_traced_memory()[0] > _MOST_TRACED_BYTES:
            raise Refused("the program holds too much memory in Python objects to look at it")
        if name == "begin" and self._is_ours:
            return {}
        return held_by_line(tracemalloc.take_snapshot())


def held_by_line(snapshot: tracemalloc.Snapshot) -> _Sizes:
    """Bytes and objects by line: those of Python, and the memory of tensors on the CPU. What was made before tracing began has no line."""
    sums: Dict[Line, Tuple[int, int]] = {}
    blamed: Dict[Frames, Optional[Line]] = {}
    for size, frames in itertools.chain(_traces(snapshot), cpu_tensors() or ()):
        if frames not in blamed:
            blamed[frames] = _blamed(frames)
        line = blamed[frames]
        if line is not None:
            before, count = sums.get(line, (0, 0))
            sums[line] = (before + size, count + 1)
    return sums


def _traces(snapshot: tracemalloc.Snapshot) -> Iterator[Tuple[int, Frames]]:
    """As tracemalloc keeps them, innermost frame first: its own objects for millions of traces take minutes."""
    kept = getattr(snapshot.traces, "_traces", None)
    if kept is not None:
        return ((trace[1], trace[2]) for trace in kept)
    return ((trace.size, tuple((frame.filename, frame.lineno) for frame in reversed(trace.traceback))) for trace in snapshot.traces)


def _blamed(frames: Frames) -> Optional[Line]:
    """The innermost line of the program; else of a library. None: not known, or made by gpuwarden itself."""
    if not frames or frames[0][0] == tracemalloc.__file__:
        return None
    for file, line in frames:
        # Whatever it calls is its own, up to where the program called it.
        if file.startswith(PACKAGE) and not file.endswith(_HOOKS):
            return None
        if is_own_file(file):
            return file, line, ""
    return frames[0][0], frames[0][1], ""


def _total(sizes: _Sizes) -> int:
    return sum(size for size, _ in sizes.values())


def _difference(first: Optional[int], last: Optional[int]) -> Optional[int]:
    return None if first is None or last is None else last - first

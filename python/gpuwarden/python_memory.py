"""The memory of the Python process itself: its size, and the lines whose objects and tensors grow, by tracemalloc.

tracemalloc slows down every allocation, and a look takes a while, so both are done only when asked for.
"""
from __future__ import annotations

import linecache
import threading
import time
import tracemalloc
from typing import Any, Dict, List, Optional, Tuple

from .host_recording import held_by_line
from .resident import resident_bytes

#: Enough to tell what gpuwarden itself made, through a library or not.
_FRAMES = 6
#: A look takes at most this share of the time.
_LOOK_SHARE = 0.01
_LINE_LIMIT = 20
#: A line counts as growing once it has grown in this many looks without shrinking, and by this much.
_GROWING_LOOKS = 3
_GROWING_BYTES = 100 * 1024


class PythonMemory:
    def __init__(self, interval: float = 30.0, frames: int = _FRAMES) -> None:
        self._interval = interval
        self._frames = frames
        self._is_ours = False
        self._first: Dict[Tuple[str, int], Tuple[int, int]] = {}
        self._last: Dict[Tuple[str, int], Tuple[int, int]] = {}
        self._rising: Dict[Tuple[str, int], int] = {}
        self._looks = 0
        self._look_seconds = 0.0
        self._first_resident: Optional[int] = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._report: Dict[str, Any] = {}

    def start(self) -> None:
        if self._thread is not None:
            return
        if not tracemalloc.is_tracing():
            tracemalloc.start(self._frames)
            self._is_ours = True
        self._stop.clear()
        self._first_resident = resident_bytes()
        self._thread = threading.Thread(target=self._work, name="gpuwarden-python-memory", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stop.set()
        thread.join(1.0)
        self.look()
        if self._is_ours:
            tracemalloc.stop()
            self._is_ours = False

    def look(self) -> None:
        """Compares with the looks before. Takes a while in a large process, and holds the interpreter meanwhile."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        if not tracemalloc.is_tracing():
            return
        began = time.monotonic()
        lines = held_by_line(tracemalloc.take_snapshot())
        found = {(file, line): size for (file, line, _), size in lines.items()}
        self._look_seconds = time.monotonic() - began
        if self._looks == 0:
            self._first = found
        rising: Dict[Tuple[str, int], int] = {}
        for place, (size, _) in found.items():
            before = self._last.get(place, (0, 0))[0]
            # A look in which nothing changed says nothing; one in which it shrank ends the series.
            if size >= before:
                rising[place] = self._rising.get(place, 0) + (1 if size > before else 0)
        self._rising, self._last = rising, found
        self._looks += 1
        self._report = self._describe()

    def report(self) -> Dict[str, Any]:
        if self._thread is not None:
            self.look()
        return dict(self._report)

    def _describe(self) -> Dict[str, Any]:
        lines: List[Dict[str, Any]] = []
        for place, (size, count) in self._last.items():
            first_size, first_count = self._first.get(place, (0, 0))
            grown = size - first_size
            if grown <= 0:
                continue
            looks = self._rising.get(place, 0)
            lines.append(
                {
                    "file": place[0],
                    "line": place[1],
                    "source": linecache.getline(place[0], place[1]).strip()[:200],
                    "bytes": size,
                    "grown_bytes": grown,
                    "grown_objects": count - first_count,
                    "times_grown": looks,
                    "growing": looks >= _GROWING_LOOKS and grown >= _GROWING_BYTES,
                }
            )
        lines.sort(key=lambda line: line["grown_bytes"], reverse=True)
        traced, peak = tracemalloc.get_traced_memory() if tracemalloc.is_tracing() else (0, 0)
        return {
            "at": int(time.time() * 1000),
            "looks": self._looks,
            "resident_bytes": resident_bytes(),
            "own_bytes": tracemalloc.get_tracemalloc_memory() if tracemalloc.is_tracing() else 0,
            "look_seconds": round(self._look_seconds, 3),
            "resident_bytes_at_start": self._first_resident,
            "traced_bytes": traced,
            "traced_peak_bytes": peak,
            "lines": lines[:_LINE_LIMIT],
        }

    def _work(self) -> None:
        self.look()
        while not self._stop.wait(max(self._interval, self._look_seconds / _LOOK_SHARE)):
            self.look()

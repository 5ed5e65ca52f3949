"""The memory of the Python process itself: its size, and the lines whose objects grow, by tracemalloc.

tracemalloc slows down every allocation, so it is on only when asked for.
"""
from __future__ import annotations

import linecache
import os
import threading
import time
import tracemalloc
from typing import Any, Dict, List, Optional, Tuple

_OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "*")
_LINE_LIMIT = 20
#: A line counts as growing once it has grown in this many looks without shrinking, and by this much.
_GROWING_LOOKS = 3
_GROWING_BYTES = 100 * 1024


class PythonMemory:
    def __init__(self, interval: float = 30.0, frames: int = 1) -> None:
        self._interval = interval
        self._frames = frames
        self._is_ours = False
        self._first: Dict[Tuple[str, int], Tuple[int, int]] = {}
        self._last: Dict[Tuple[str, int], Tuple[int, int]] = {}
        self._rising: Dict[Tuple[str, int], int] = {}
        self._looks = 0
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
        snapshot = tracemalloc.take_snapshot().filter_traces((tracemalloc.Filter(False, _OWN), tracemalloc.Filter(False, tracemalloc.__file__)))
        found = {(stat.traceback[0].filename, stat.traceback[0].lineno): (stat.size, stat.count) for stat in snapshot.statistics("lineno")}
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
            "resident_bytes_at_start": self._first_resident,
            "traced_bytes": traced,
            "traced_peak_bytes": peak,
            "lines": lines[:_LINE_LIMIT],
        }

    def _work(self) -> None:
        self.look()
        while not self._stop.wait(self._interval):
            self.look()


def resident_bytes() -> Optional[int]:
    """None where the system does not report it (no /proc)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None

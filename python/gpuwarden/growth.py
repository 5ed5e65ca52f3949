"""How the memory that PyTorch holds at the end of steps has grown: what stays from step to step is a leak, or looks like one."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional

#: When there are this many, every other one is let go.
_MOST_POINTS = 256
_FEWEST_POINTS = 8
#: A rise may be broken by falls of this share of it: the last batch of an epoch is smaller.
_FALL_SHARE = 0.05


class _Point(NamedTuple):
    at: float
    step: int
    allocated: int


class Growth:
    def __init__(self) -> None:
        self._points: List[_Point] = []
        self._every = 1
        self._skipped = 0

    def add(self, at: float, step: int, allocated: int) -> None:
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        points = self._points
        points.append(_Point(at, step, allocated))
        if len(points) >= _MOST_POINTS:
            del points[1::2]
            self._every *= 2

    def steady_rise(self) -> Optional[Dict[str, float]]:
        """The rise that was still under way at the end, where it is at least a quarter of what was held and came bit by bit."""
        rising = self._rising()
        if len(rising) < _FEWEST_POINTS:
            return None
        first, last = rising[0], rising[-1]
        rise, steps = last.allocated - first.allocated, last.step - first.step
        if steps < _FEWEST_POINTS or rise < 0.25 * last.allocated:
            return None
        middle = rising[len(rising) // 2].allocated - first.allocated
        if not 0.2 * rise <= middle <= 0.8 * rise:
            return None  # A jump: something large was made, once.
        return {"bytes": rise, "steps": steps, "bytes_per_step": rise / steps, "seconds": round(last.at - first.at, 3)}

    def _rising(self) -> List[_Point]:
        """The points since memory last fell by more than a little."""
        points = self._points
        if not points:
            return []
        tolerated = _FALL_SHARE * (points[-1].allocated - min(point.allocated for point in points))
        start = len(points) - 1
        least = points[start].allocated
        for position in range(start, -1, -1):
            allocated = points[position].allocated
            if allocated - least > tolerated:
                break
            if allocated <= least:
                least, start = allocated, position
        return points[start:]

"""How the memory that PyTorch holds at the end of steps has grown, and how much more each step needed while it ran."""
from __future__ import annotations

from collections import deque
from typing import Deque, Dict, List, NamedTuple, Optional

#: Every point of the last steps is kept, and every n-th of those before: when these are too many, every other one is dropped.
_RECENT_POINTS = 512
_OLD_POINTS = 512
#: Fewer steps than this are a start, not a trend.
_FEWEST_STEPS = 8
#: A rise is split into this many bands of equal height. A leak adds again and again, so it enters them at many moments.
_BANDS = 8
#: Something large that is made once or twice enters all bands at one or two moments.
_FEWEST_MOMENTS = 4
#: One addition of more than this share of a rise is a jump.
_JUMP_SHARE = 0.3
#: Less than this share of what is held decides nothing.
_LEAST_SHARE = 0.05
#: The rise begins where its lower edge has covered this share of it.
_BEGIN_SHARE = 0.05
#: Memory that has swung by this share of the rise before, and came back, shows its own swing and not a rise.
_SWING_SHARE = 0.5
#: A level that held at the end for longer than this share of the rise's own length has settled.
_SETTLED_SHARE = 0.5


class _Point(NamedTuple):
    at: float
    step: int
    allocated: int
    #: The most that was ever allocated, up to this step.
    peak: int


class Growth:
    def __init__(self) -> None:
        self._recent: Deque[_Point] = deque()
        self._old: List[_Point] = []
        self._every = 1
        self._skipped = 0

    def add(self, at: float, step: int, allocated: int, peak: Optional[int] = None) -> None:
        self._recent.append(_Point(at, step, allocated, allocated if peak is None else max(peak, allocated)))
        if len(self._recent) > _RECENT_POINTS:
            self._put_away(self._recent.popleft())

    def _put_away(self, point: _Point) -> None:
        self._skipped += 1
        if self._skipped < self._every and self._old:
            return
        self._skipped = 0
        self._old.append(point)
        if len(self._old) >= _OLD_POINTS:
            del self._old[1::2]
            self._every *= 2

    def steady_rise(self) -> Optional[Dict[str, float]]:
        """The rise that was still under way at the end and came bit by bit, wherever it began and however often it paused."""
        points = self._points()
        return _steady_rise(points, [point.allocated for point in points])

    def step_needs(self) -> Optional[Dict[str, float]]:
        """What steps needed while they ran, beyond what was held between them: `bytes` at most, and `grew` when that kept rising."""
        points = self._points()
        if len(points) < _FEWEST_STEPS:
            return None
        needs = [point.peak - point.allocated for point in points]
        held = points[-1].allocated
        # The peak is of the whole run, so it only rises: if it rises while the level stays, a step needed more than all before.
        is_level = self.steady_rise() is None
        grew = _steady_rise(points, [point.peak for point in points]) if is_level else None
        return {"bytes": max(needs), "held": held, "grew": grew["bytes"] if grew else 0, "steps": grew["steps"] if grew else 0}

    def _points(self) -> List[_Point]:
        return self._old + list(self._recent)


def _steady_rise(points: List[_Point], values: List[int]) -> Optional[Dict[str, float]]:
    while len(points) >= _FEWEST_STEPS:
        edge = _lower_edge(values)
        # The last few together, so that one high point at the end is not taken for a rise.
        rise = min(values[-3:]) - edge[0]
        if rise <= _LEAST_SHARE * values[-1]:
            return None
        jump = max(range(1, len(edge)), key=lambda index: edge[index] - edge[index - 1])
        if edge[jump] - edge[jump - 1] <= _JUMP_SHARE * rise:
            return _rise(points, values, edge, rise)
        # Made once, such as an optimizer's state in the first step: what came after it is checked separately.
        points, values = points[jump:], values[jump:]
    return None


def _rise(points: List[_Point], values: List[int], edge: List[int], rise: int) -> Optional[Dict[str, float]]:
    start = max(index for index, value in enumerate(edge) if value <= edge[0] + _BEGIN_SHARE * rise)
    while start > 0 and edge[start - 1] < edge[start]:
        start -= 1
    moments = _moments(edge, start, rise)
    steps = points[-1].step - points[start].step
    is_start = start == 0 and steps < _FEWEST_STEPS
    if is_start or len(moments) < _FEWEST_MOMENTS or _has_settled(points, start, moments) or _swings(values, edge, start, rise):
        return None
    grown = values[-1] - values[start]
    return {"bytes": grown, "steps": steps, "bytes_per_step": grown / steps, "seconds": round(points[-1].at - points[start].at, 3)}


def _moments(edge: List[int], start: int, rise: int) -> List[int]:
    """Where the lower edge enters a higher band."""
    bands = [min(_BANDS - 1, int(_BANDS * (value - edge[0]) / rise)) for value in edge]
    return [index for index in range(start + 1, len(edge)) if bands[index] > bands[index - 1]]


def _has_settled(points: List[_Point], start: int, moments: List[int]) -> bool:
    """Whether nothing was added for longer than the rise's own pauses, and for a good part of its length."""
    steps = [points[index].step for index in moments]
    pause = max(after - before for before, after in zip(steps, steps[1:]))
    level = points[-1].step - steps[-1]
    return level > 2 * pause and level > _SETTLED_SHARE * (steps[-1] - points[start].step)


def _swings(values: List[int], edge: List[int], start: int, rise: int) -> bool:
    """Whether memory was as high before and came back, or goes up and down by as much while it rises."""
    if start > 0 and max(values[:start]) - edge[start] > _SWING_SHARE * rise:
        return True
    swings = sorted(value - low for value, low in zip(values[start:], edge[start:]))
    return swings[len(swings) * 9 // 10] > _SWING_SHARE * rise


def _lower_edge(values: List[int]) -> List[int]:
    """For each point the least that was held from there on: what never fell back."""
    edge = list(values)
    for index in range(len(edge) - 2, -1, -1):
        edge[index] = min(edge[index], edge[index + 1])
    return edge

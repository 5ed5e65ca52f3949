"""What a recording of the GPU's memory and one of the host's have in common."""
from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Tuple

from .snapshots import Line, short_file

MOST_LINES = 10
#: Less than this share of the growth is left out.
_LEAST_SHARE = 0.01


class Refused(Exception):
    """Why there is no recording, in words for people."""


class Window:
    """The marks of a recording: at its begin and middle, and at the ends of its last three steps ("old", "before", "end")."""

    #: Nothing has to be waited for.
    is_complete = False

    def __init__(self) -> None:
        self._marks: Dict[str, Tuple[int, Any]] = {}
        self._seconds = 0.0

    def begin(self, trigger: str) -> None:
        """Switches recording on; raises Refused where that is not possible or not wanted."""
        raise NotImplementedError

    def end(self) -> None:
        """Switches recording off, if it is on."""
        raise NotImplementedError

    def verdict(self) -> Dict[str, Any]:
        raise NotImplementedError

    def _look(self, name: str) -> Any:
        raise NotImplementedError

    def mark(self, name: str, step: int) -> None:
        began = time.perf_counter()
        self._marks[name] = (step, self._look(name))
        self._seconds += time.perf_counter() - began

    def has(self, name: str) -> bool:
        return name in self._marks

    def seen(self, name: str) -> Any:
        return self._marks[name][1]

    def steps_between(self, first: str, last: str) -> int:
        """Steps may be logged by the dozen, or all with the same number."""
        return max(1, self._marks[last][0] - self._marks[first][0])

    def described(self, kept: Dict[Line, Tuple[int, int]], grown: Optional[int], steps: int) -> Dict[str, Any]:
        """`kept`: bytes and blocks of the lines that keep them."""
        least = _LEAST_SHARE * (grown or 0)
        largest = sorted((item for item in kept.items() if item[1][0] > least), key=lambda item: -item[1][0])[:MOST_LINES]
        lines: List[Dict[str, Any]] = [
            {
                "file": short_file(file),
                "line": number,
                "function": function,
                "bytes": held,
                "blocks": blocks,
                "bytes_per_step": held / steps,
                "share": min(1.0, held / grown) if grown and grown > 0 else None,
            }
            for (file, number, function), (held, blocks) in largest
        ]
        return {"lines": lines, "grown_bytes": grown, "grown_steps": steps, "look_seconds": round(self._seconds, 6)}

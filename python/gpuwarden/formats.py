"""Numbers as people read them: the same text for the same value as on every screen of gpuwarden (src/core/format.ts)."""
from __future__ import annotations

import math
from typing import Optional

NOT_AVAILABLE = "N/A"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def format_bytes(amount: float) -> str:
    """`140.3 GiB`, `512 MiB`, `2.6 MiB`, `40 KiB`, `700 B`: one decimal from GiB on, and below ten of a smaller unit."""
    size, unit = abs(amount), 0
    while unit < len(_UNITS) - 1 and float(_byte_figure(size, unit)) >= 1024:
        size /= 1024.0
        unit += 1
    return "%s%s %s" % ("-" if amount < 0 else "", _byte_figure(size, unit), _UNITS[unit])


def format_percent(ratio: Optional[float]) -> str:
    """`80%`, `4.2%`: whole from ten on."""
    if ratio is None:
        return NOT_AVAILABLE
    percent = ratio * 100
    return "%g%%" % _tenths(percent) if abs(percent) < 9.95 else "%d%%" % _whole(percent)


def _byte_figure(size: float, unit: int) -> str:
    return "%.1f" % _tenths(size) if unit >= 3 or (unit > 0 and size < 9.95) else "%d" % _whole(size)


def _tenths(value: float) -> float:
    return _whole(value * 10) / 10.0


def _whole(value: float) -> int:
    """Rounds halves up, as JavaScript does."""
    return math.floor(value + 0.5)

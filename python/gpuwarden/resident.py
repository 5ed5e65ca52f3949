"""How large this process is."""
from __future__ import annotations

import os
from typing import Optional


def resident_bytes() -> Optional[int]:
    """None where the system does not report it (no /proc)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None

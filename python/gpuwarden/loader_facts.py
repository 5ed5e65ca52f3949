"""How the training loads its data: for the advice on a step that waits for it."""
from __future__ import annotations

import os
import sys
from typing import Any, Dict, Optional

_facts: Optional[Dict[str, Any]] = None


def note(iterator: Any) -> None:
    """A DataLoader is iterated. The first one with gradients is taken for that of the training."""
    global _facts
    if _facts is None and sys.modules["torch"].is_grad_enabled():
        _facts = {"workers": int(iterator._num_workers), "pinned_memory": bool(iterator._pin_memory), "cpus": _cpus()}


def known() -> Optional[Dict[str, Any]]:
    """As a run is announced with it; None: no loader was seen."""
    return _facts


def _cpus() -> Optional[int]:
    """That this process may use, where the system says."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()

"""The state of the allocator at the moment when CUDA runs out of memory.

Until the exception reaches whoever reports it, the frames in between have released much of it. PyTorch calls observers before it raises.
"""
from __future__ import annotations

import logging
import time
from typing import Any, Dict, NamedTuple, Optional

from . import allocator

log = logging.getLogger("gpuwarden")

#: A program that tries batch sizes runs out of memory again and again; a snapshot may take seconds.
_SNAPSHOT_SECONDS = 30.0
#: The program has already dealt with an older error.
_FRESH_SECONDS = 120.0


class Moment(NamedTuple):
    at: float
    requested: int
    free: int
    stats: Dict[str, Any]
    #: Where the history of allocations is recorded.
    snapshot: Optional[Dict[str, Any]]


_is_attached = False
_latest: Optional[Moment] = None
_snapshot_at = -_SNAPSHOT_SECONDS


def attach() -> None:
    """Once CUDA is in use; a second call does nothing. An observer stays for as long as the process does."""
    global _is_attached
    if _is_attached:
        return
    _is_attached = True
    observe = getattr(allocator.native(), "_cuda_attach_out_of_memory_observer", None)
    if observe is None:
        return
    try:
        observe(_on_out_of_memory)
    except Exception as error:  # A private function of PyTorch: the report does without.
        log.debug("gpuwarden: no observer for running out of memory: %s", error)


def take(requested: Optional[int]) -> Optional[Moment]:
    """The moment of the error that asked for this much; it is then forgotten."""
    global _latest
    moment, _latest = _latest, None
    if moment is None or time.monotonic() - moment.at > _FRESH_SECONDS:
        return None
    # PyTorch prints two places.
    is_same = requested is None or abs(moment.requested - requested) <= 0.01 * moment.requested + 1024
    return moment if is_same else None


def _on_out_of_memory(device: int, requested: int, limit: int, free: int) -> None:
    """Runs inside PyTorch's allocator: nothing may be raised here."""
    global _latest, _snapshot_at
    try:
        _latest = None
        now = time.monotonic()
        snapshot = None
        if allocator.is_recording() and now - _snapshot_at >= _SNAPSHOT_SECONDS:
            _snapshot_at = now
            snapshot = allocator.snapshot()
        stats = allocator.read_nested(device)
        if stats is not None:
            _latest = Moment(now, int(requested), int(free), stats, snapshot)
    except Exception as error:
        log.debug("gpuwarden: the moment of running out of memory was not kept: %s", error)

"""What remains when CUDA runs out of memory: the cause, the ledger of the device, where it happened, and a snapshot if one was recorded."""
from __future__ import annotations

import os
import re
import sys
import time
import traceback
from typing import Any, Dict, List, Mapping, Optional

from . import allocator, oom_ledger, oom_moment, snapshot_verdict, snapshots
from .formats import format_bytes
from .growth import Growth

_MESSAGE_LIMIT = 4000
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_FRAME_LIMIT = 40


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    """Also when it hides behind another exception."""
    return _find(error) is not None


def _find(error: Optional[BaseException]) -> Optional[BaseException]:
    for _ in range(10):
        if error is None or _is_oom(error):
            return error
        error = error.__cause__ or error.__context__
    return None


def _is_oom(error: BaseException) -> bool:
    torch = sys.modules.get("torch")
    kind = getattr(torch, "OutOfMemoryError", None) or getattr(getattr(torch, "cuda", None), "OutOfMemoryError", None)
    if kind is not None and isinstance(error, kind):
        return True
    text = str(error).lower() if isinstance(error, RuntimeError) else ""
    return "out of memory" in text and ("cuda" in text or "hip" in text)


#: A function with such a name evaluates; its memory comes on top of the training's.
_EVALUATES = re.compile(r"(^|_)(eval|evaluate|evaluation|valid|validate|validation|predict|prediction|test)(_|$)", re.IGNORECASE)


def build(error: BaseException, run_id: str, rank: int, snapshot_folder: str, history: Optional[Growth] = None) -> Dict[str, Any]:
    """`history`: the memory at the end of the run's steps."""
    growth = history.steady_rise() if history is not None else None
    error = _find(error) or error
    message = str(error)
    said = oom_ledger.read_message(message)
    moment = oom_moment.take(said.get("requested"))
    stats = moment.stats if moment is not None else allocator.read_nested()
    now = allocator.device_memory()
    free = moment.free if moment is not None else now[0] if now is not None else said.get("device_free")
    total = now[1] if now is not None else said.get("device_total")
    entries = oom_ledger.ledger(oom_ledger.held_by_torch(stats, said, moment is not None), said, free, total) if stats else []
    snapshot, reason = _snapshot(moment)
    stack = _stack(error)
    needs = history.step_needs() if history is not None else None
    return {
        "kind": "oom",
        "at": int(time.time() * 1000),
        "run": run_id,
        "rank": rank,
        "pid": os.getpid(),
        "message": message[:_MESSAGE_LIMIT],
        "requested_bytes": said.get("requested"),
        "gpus": allocator.device_ids(),
        "allocator": allocator.figures(stats) if stats else None,
        "allocator_settings": os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF"),
        "stack": stack,
        "ledger": entries,
        "growth": growth,
        "holders": snapshots.holders(snapshot) if snapshot is not None else [],
        "cause": oom_ledger.cause(said.get("requested"), entries, growth, said.get("allowed"), needs, _evaluation(stack)),
        "snapshot": _write(snapshot, reason, snapshot_folder, "oom-%s-rank%d-%d.pickle" % (run_id, rank, int(time.time()))),
    }


def add_ways_out(report: Dict[str, Any]) -> bool:
    """Has the snapshot analyzed, if there is one; takes seconds. Whether that added something."""
    path = report["snapshot"].get("path")
    ways = snapshot_verdict.ways_out_of(path) if path is not None else None
    if not ways:
        return False
    report["snapshot"] = dict(report["snapshot"], ways_out=ways)
    return True


def in_words(report: Mapping[str, Any]) -> str:
    lines = ["gpuwarden: CUDA ran out of memory: %s" % report["cause"]["message"]]
    for entry in report["ledger"]:
        if entry["bytes"]:
            lines.append("  %12s  %s" % (format_bytes(entry["bytes"]), entry["name"]))
    own = [frame for frame in report["stack"] if snapshots.is_own_file(frame["file"])]
    if own:
        lines.append("  at %s:%d in %s" % (own[-1]["file"], own[-1]["line"], own[-1]["function"]))
    for holder in report["holders"][:3]:
        lines.append("  %12s  allocated at %s:%d in %s, still in use" % (format_bytes(holder["bytes"]), holder["file"], holder["line"], holder["function"]))
    snapshot = report["snapshot"]
    for way in snapshot.get("ways_out") or []:
        lines.append("  %12s  %s %s" % (format_bytes(way["bytes"]), way["what"], way["line"] or ""))
    path = snapshot.get("path")
    lines.append("  snapshot: %s" % (snapshot["reason"] if path is None else "%s (gpuwarden snapshot shows it)" % path))
    return "\n".join(lines)


def _snapshot(moment: Optional[oom_moment.Moment]) -> "tuple[Optional[Dict[str, Any]], Optional[str]]":
    """The snapshot of that moment where there is one, else one of now; or why there is none."""
    if moment is not None and moment.snapshot is not None:
        return moment.snapshot, None
    try:
        if not allocator.is_recording():
            return None, "not recorded: torch.cuda.memory._record_memory_history() was not on"
        return allocator.snapshot(), None
    except Exception as error:  # Private functions of PyTorch, in a process that has run out of memory.
        return None, "%s: %s" % (type(error).__name__, error)


def _write(snapshot: Optional[Dict[str, Any]], reason: Optional[str], folder: str, name: str) -> Dict[str, Any]:
    if snapshot is None:
        return {"path": None, "reason": reason}
    try:
        return snapshots.write_snapshot(snapshot, folder, name)
    except Exception as error:  # No space, no permission, or something in it that cannot be written.
        return {"path": None, "reason": "%s: %s" % (type(error).__name__, error)}


def _evaluation(stack: List[Dict[str, Any]]) -> Optional[str]:
    return next((frame["function"] for frame in stack if _EVALUATES.search(frame["function"])), None)


def _stack(error: BaseException) -> List[Dict[str, Any]]:
    # Hooks of this package stand between the program and torch.
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)][-_FRAME_LIMIT:]
    return [{"file": frame.filename, "line": frame.lineno or 0, "function": frame.name} for frame in frames]

"""The last collective of each process group: from PyTorch's flight recorder, or by counting calls where it records nothing."""
from __future__ import annotations

import functools
import json
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional

_MOST_GROUPS = 64
_LONGEST_TEXT = 200
_BUFFER_ENTRIES = "2000"
#: The name before torch 2.9, which reports the old one as deprecated. The new one is set by `gpuwarden run`.
_OLD_VARIABLE = "TORCH_NCCL_TRACE_BUFFER_SIZE"
_NEW_VARIABLE = "TORCH_FR_BUFFER_SIZE"

is_compiling: Callable[[], bool] = lambda: False  # noqa: E731
#: Calls of torch.distributed in the default group, the last one's name, and whether it is in it now.
_calls = 0
_last_call = ""
_depth = 0


def prepare(torch_version: str) -> None:
    """Before there is a process group: lets PyTorch remember its last collectives, unless the user decided."""
    if _OLD_VARIABLE in os.environ:
        return
    try:
        major, minor = (int(part) for part in torch_version.split(".")[:2])
    except ValueError:
        return
    if (major, minor) < (2, 9):
        os.environ[_OLD_VARIABLE] = os.environ.get(_NEW_VARIABLE, _BUFFER_ENTRIES)


def counted(original: Any, name: str) -> Any:
    """A collective of torch.distributed whose calls are counted."""

    @functools.wraps(original)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        global _calls, _last_call, _depth
        if is_compiling() or kwargs.get("group") is not None:
            return original(*args, **kwargs)
        _calls += 1
        _last_call = name
        _depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            _depth -= 1

    return hooked


def groups() -> List[Dict[str, Any]]:
    """Of every process group that did something: what was called last, and what it still waits for."""
    distributed = sys.modules.get("torch.distributed")
    is_initialized = getattr(distributed, "is_initialized", None)
    if is_initialized is None or not is_initialized():
        return []
    recorded: Dict[str, Dict[str, Any]] = {}
    library = sys.modules.get("torch._C._distributed_c10d") or getattr(sys.modules.get("torch._C"), "_distributed_c10d", None)
    # Two recorders: NCCL's own, and the one of all other backends.
    for function in ("_dump_nccl_trace_json", "_dump_fr_trace_json"):
        dump = getattr(library, function, None)
        if dump is not None:
            try:
                recorded.update(_read(json.loads(dump(True, True))))
            except Exception:  # A private function, which may change: the stacks are worth having without it.
                continue
    if recorded:
        return list(recorded.values())[:_MOST_GROUPS]
    if _calls == 0:
        return []
    pending = {"seq": _calls, "op": _last_call, "state": "called"} if _depth > 0 else None
    return [{"group": "calls", "last": _calls, "op": _last_call, "pending": pending}]


def _read(trace: Any) -> Dict[str, Dict[str, Any]]:
    found: Dict[str, Dict[str, Any]] = {}
    config = trace.get("pg_config") or {}
    for name, status in (trace.get("pg_status") or {}).items():
        about = config.get(name) or {}
        found[name] = {
            "group": str(name)[:_LONGEST_TEXT],
            "description": str(about.get("desc") or "")[:_LONGEST_TEXT] or None,
            "ranks": str(about.get("ranks") or "")[:_LONGEST_TEXT] or None,
            "last": _whole(status.get("last_enqueued_collective")),
            "completed": _whole(status.get("last_completed_collective")),
            "op": None,
            "pending": None,
        }
    for entry in trace.get("entries") or []:
        name, description = (list(entry.get("process_group") or []) + ["", ""])[:2]
        group = found.setdefault(name, {"group": str(name)[:_LONGEST_TEXT], "ranks": None, "last": None, "completed": None, "op": None, "pending": None})
        group["description"] = group.get("description") or str(description)[:_LONGEST_TEXT]
        is_p2p = bool(entry.get("is_p2p"))
        seq = _whole(entry.get("p2p_seq_id" if is_p2p else "collective_seq_id"))
        op = str(entry.get("profiling_name") or "").partition(":")[2][:_LONGEST_TEXT]
        if not is_p2p and seq is not None and seq >= (group["last"] or 0):
            group["last"], group["op"] = seq, op
        if entry.get("retired") or entry.get("state") == "completed" or group["pending"] is not None:
            continue
        created = entry.get("time_created_ns")
        group["pending"] = {
            "seq": seq,
            "op": op,
            "is_p2p": is_p2p,
            "state": str(entry.get("state") or "")[:20],
            "sizes": str(entry.get("input_sizes") or "")[:_LONGEST_TEXT],
            "dtypes": str(entry.get("input_dtypes") or "")[:_LONGEST_TEXT],
            "seconds": max(0.0, time.time() - created / 1e9) if isinstance(created, int) and created > 0 else None,
        }
    return found


def _whole(value: Any) -> Optional[int]:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if number >= 0 else None

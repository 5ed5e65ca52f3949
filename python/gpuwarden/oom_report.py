"""What is left behind when CUDA runs out of memory: the ledger of the device, where it happened, and a snapshot where one was recorded."""
from __future__ import annotations

import os
import pickle
import re
import sys
import time
import traceback
from typing import Any, Dict, List, Optional

from . import allocator

SNAPSHOT_LIMIT_BYTES = 64 * 1024 * 1024
_TRACE_ENTRIES = 50_000
_MESSAGE_LIMIT = 4000
_FRAME_LIMIT = 40
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_AMOUNT = r"([\d.]+) (bytes|KiB|MiB|GiB|TiB)"
_IN_MESSAGE = {
    "requested": re.compile(r"[Tt]ried to allocate " + _AMOUNT),
    "device_total": re.compile(r"total capacity of " + _AMOUNT),
    "device_free": re.compile(_AMOUNT + r" is free"),
    "process": re.compile(r"this process has " + _AMOUNT + r" memory in use", re.IGNORECASE),
}


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    """Also when it hides behind another exception."""
    for _ in range(10):
        if error is None:
            return False
        if _is_oom(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_oom(error: BaseException) -> bool:
    torch = sys.modules.get("torch")
    kind = getattr(torch, "OutOfMemoryError", None) or getattr(getattr(torch, "cuda", None), "OutOfMemoryError", None)
    if kind is not None and isinstance(error, kind):
        return True
    text = str(error).lower() if isinstance(error, RuntimeError) else ""
    return "out of memory" in text and ("cuda" in text or "hip" in text)


def build(error: BaseException, run_id: str, rank: int, snapshot_folder: str) -> Dict[str, Any]:
    message = str(error)
    said = {name: amount for name, amount in ((name, _amount(pattern, message)) for name, pattern in _IN_MESSAGE.items()) if amount is not None}
    stats = allocator.read_nested()
    report: Dict[str, Any] = {
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
        "stack": _stack(error),
    }
    entries = ledger(stats, said) if stats else []
    report["ledger"] = entries
    report["cause"] = _cause(said.get("requested"), {entry["name"]: entry["bytes"] for entry in entries})
    report["snapshot"] = _snapshot(snapshot_folder, run_id, rank)
    return report


def ledger(stats: Dict[str, Any], said: Dict[str, int]) -> List[Dict[str, Any]]:
    """Where the device's memory was; the entries add up to its total where that is known."""
    figures = allocator.figures(stats) or {}
    allocated, reserved = figures.get("allocated", 0), figures.get("reserved", 0)
    active, split = figures.get("active", allocated), figures.get("inactive_split", 0)
    requested = allocator.requested_bytes(stats)
    rounding = max(0, allocated - requested) if requested else 0
    entries = [
        _entry("torch_allocated", allocated - rounding, "Tensors that PyTorch held."),
        _entry("torch_rounding", rounding, "What the allocator added to requests to round them up to its block sizes."),
        _entry("torch_pending_free", active - allocated, "Freed by the program, but still awaited by a stream."),
        _entry("torch_inactive_split", split, "Unused pieces of segments that were partly in use: held by fragmentation."),
        _entry("torch_releasable_cache", reserved - active - split, "Whole unused segments in the cache."),
    ]
    memory = _device_memory(said)
    if memory is not None:
        free, total = memory
        outside = max(0, total - free - reserved)
        process = said.get("process")
        if process is not None:
            own = min(outside, max(0, process - reserved))
            entries.append(_entry("non_torch", own, "This process outside PyTorch's allocator: CUDA context, NCCL, libraries."))
            entries.append(_entry("other_processes", outside - own, "Other processes, and what the driver keeps for itself."))
        else:
            entries.append(_entry("outside_torch", outside, "CUDA context, libraries, other processes and the driver's reserve."))
        entries.append(_entry("free", free, "Available to anybody."))
    return entries


def _device_memory(said: Dict[str, int]) -> "Optional[tuple[int, int]]":
    cuda = allocator._cuda()
    try:
        # cudaMemGetInfo: it asks the driver and does not wait for work that is queued.
        free, total = cuda.mem_get_info()
        return int(free), int(total)
    except Exception:  # A device that has just failed may answer nothing at all; then the message must do.
        if "device_total" in said and "device_free" in said:
            return said["device_free"], said["device_total"]
        return None


def _cause(requested: Optional[int], held: Dict[str, int]) -> Dict[str, str]:
    if requested is None or not held:
        return {"kind": "unknown", "message": "the allocator's figures are not known"}
    cached = held["torch_inactive_split"] + held["torch_releasable_cache"]
    total = sum(held.values())
    others = held.get("other_processes", 0)
    if cached >= requested:
        return {
            "kind": "fragmentation",
            "message": "%s lay unused in the allocator's cache, but in pieces too small for %s: try expandable_segments:True in PYTORCH_ALLOC_CONF"
            % (_size(cached), _size(requested)),
        }
    if held["torch_pending_free"] >= requested:
        return {"kind": "pending_free", "message": "%s was freed but still awaited by a stream: look at record_stream" % _size(held["torch_pending_free"])}
    if others >= requested and others > 0.1 * total:
        return {"kind": "other_processes", "message": "other processes held %s of this GPU" % _size(others)}
    return {
        "kind": "capacity",
        "message": "tensors took %s and %s more was asked for: smaller batches, shorter sequences, checkpointing, or a larger GPU"
        % (_size(held["torch_allocated"]), _size(requested)),
    }


def in_words(report: Dict[str, Any]) -> str:
    lines = ["gpuwarden: CUDA ran out of memory: %s" % report["cause"]["message"]]
    for entry in report["ledger"]:
        if entry["bytes"]:
            lines.append("  %12s  %s" % (_size(entry["bytes"]), entry["name"]))
    own = [frame for frame in report["stack"] if "site-packages" not in frame["file"]]
    if own:
        lines.append("  at %s:%d in %s" % (own[-1]["file"], own[-1]["line"], own[-1]["function"]))
    snapshot = report["snapshot"]
    lines.append("  snapshot: %s" % (snapshot.get("path") or snapshot["reason"]))
    return "\n".join(lines)


def _snapshot(folder: str, run_id: str, rank: int) -> Dict[str, Any]:
    cuda = allocator._cuda()
    is_recording = getattr(getattr(sys.modules.get("torch"), "_C", None), "_cuda_isHistoryEnabled", None)
    try:
        if cuda is None or is_recording is None or not is_recording():
            return {"path": None, "reason": "not recorded: torch.cuda.memory._record_memory_history() was not on"}
        return write_snapshot(cuda.memory._snapshot(), folder, "oom-%s-rank%d-%d.pickle" % (run_id, rank, int(time.time())))
    except Exception as error:  # Private functions of PyTorch, in a process that has run out of memory.
        return {"path": None, "reason": "%s: %s" % (type(error).__name__, error)}


def write_snapshot(snapshot: Dict[str, Any], folder: str, name: str, limit_bytes: int = SNAPSHOT_LIMIT_BYTES) -> Dict[str, Any]:
    """The segments and as much of the latest history as fits."""
    traces = snapshot.get("device_traces") or []
    most = _TRACE_ENTRIES
    while True:
        kept = dict(snapshot, device_traces=[list(trace[-most:]) if most else [] for trace in traces])
        data = pickle.dumps(kept, protocol=4)
        if len(data) <= limit_bytes or most == 0:
            break
        most //= 4
    if len(data) > limit_bytes:
        return {"path": None, "reason": "the snapshot would take %s, more than %s" % (_size(len(data)), _size(limit_bytes))}
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    whole = all(len(trace) <= most for trace in traces)
    return {"path": path, "bytes": len(data), "complete": whole, "reason": None}


def _stack(error: BaseException) -> List[Dict[str, Any]]:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAME_LIMIT:]
    return [{"file": frame.filename, "line": frame.lineno or 0, "function": frame.name} for frame in frames]


def _entry(name: str, amount: int, explanation: str) -> Dict[str, Any]:
    return {"name": name, "bytes": max(0, int(amount)), "explanation": explanation}


def _amount(pattern: "re.Pattern[str]", text: str) -> Optional[int]:
    found = pattern.search(text)
    return int(float(found.group(1)) * _UNITS[found.group(2)]) if found else None


def _size(amount: int) -> str:
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if amount >= _UNITS[unit]:
            return "%.1f %s" % (amount / _UNITS[unit], unit)
    return "%d bytes" % amount

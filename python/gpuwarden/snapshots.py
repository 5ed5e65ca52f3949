"""PyTorch's own record of its memory: who holds it by line, and a file of bounded size."""
from __future__ import annotations

import os
import pickle
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .formats import format_bytes

SNAPSHOT_LIMIT_BYTES = 64 * 1024 * 1024
_TRACE_ENTRIES = 50_000
_MOST_HOLDERS = 10
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python", "<frozen", "<string>", "/torch/")
PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: File, line and function.
Line = Tuple[str, int, str]


def is_own_file(name: str) -> bool:
    """A file of the program, not of a library, of PyTorch or of gpuwarden."""
    if not name or name == "??" or name.startswith(("torch/", PACKAGE)):
        return False
    return not any(part in name for part in _LIBRARIES)


def short_file(name: str) -> str:
    """From the folder where the program runs or lies, as people name it; files elsewhere keep their whole path."""
    for folder in (os.getcwd(), os.path.dirname(os.path.abspath(sys.argv[0] or "."))):
        if name.startswith(folder.rstrip(os.sep) + os.sep):
            return name[len(folder.rstrip(os.sep)) + 1 :]
    return name


def holders(snapshot: Mapping[str, Any], device: Optional[int] = None) -> List[Dict[str, Any]]:
    """Memory in use, by the line of the program that asked for it, largest first. Empty where no stacks were recorded."""
    sums: Dict[Line, List[int]] = {}
    for segment in snapshot.get("segments") or []:
        if device is not None and segment.get("device", device) != device:
            continue
        for block in segment.get("blocks") or []:
            line = own_line(block.get("frames") or []) if block.get("state") == "active_allocated" else None
            if line is not None:
                total = sums.setdefault(line, [0, 0])
                total[0] += int(block.get("size", 0))
                total[1] += 1
    largest = sorted(sums.items(), key=lambda item: -item[1][0])[:_MOST_HOLDERS]
    return [{"file": file, "line": line, "function": name, "bytes": held, "blocks": count} for (file, line, name), (held, count) in largest]


def fragmentation(segments: Sequence[Mapping[str, Any]], device: Optional[int] = None) -> Dict[str, Any]:
    """Free memory inside segments that PyTorch holds, and which share of it is in pieces too small for a request, by the request's size."""
    pieces: List[int] = []
    whole = 0
    for segment in segments:
        if device is not None and segment.get("device", device) != device:
            continue
        blocks = segment.get("blocks") or []
        free = [int(block.get("size", 0)) for block in blocks if block.get("state") == "inactive"]
        pieces.extend(free)
        whole += sum(free) if len(free) == len(blocks) else 0
    total = sum(pieces)
    sizes = [1 << power for power in range(20, 34, 2)]
    unusable = {str(size): round(1 - sum(piece for piece in pieces if piece >= size) / total, 4) for size in sizes} if total else {}
    return {"free_bytes": total, "largest_free_bytes": max(pieces, default=0), "releasable_bytes": whole, "unusable_share_by_request": unusable}


def own_line(frames: Sequence[Mapping[str, Any]]) -> Optional[Line]:
    """The innermost line of the program itself."""
    return next((_line(frame) for frame in frames if frame.get("line") and is_own_file(str(frame.get("filename", "")))), None)


def blamed_line(frames: Sequence[Mapping[str, Any]]) -> Optional[Line]:
    """The innermost line of the program, else of a library: something that leaks has a line."""
    return own_line(frames) or next((_line(frame) for frame in frames if str(frame.get("filename", "")).endswith(".py") and frame.get("line")), None)


def _line(frame: Mapping[str, Any]) -> Line:
    return str(frame["filename"]), int(frame["line"]), str(frame.get("name", ""))


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
        return {"path": None, "reason": "the snapshot would take %s; the limit is %s" % (format_bytes(len(data)), format_bytes(limit_bytes))}
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(data)
    whole = all(len(trace) <= most for trace in traces)
    return {"path": path, "bytes": len(data), "complete": whole, "reason": None}

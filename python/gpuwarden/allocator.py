"""The figures of PyTorch's allocator, where PyTorch is already in use. Nothing here imports it, initializes CUDA or waits for the GPU."""
from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional, Tuple


def torch_cuda() -> Any:
    """`torch.cuda` once it is in use in this process, else None."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    is_initialized = getattr(cuda, "is_initialized", None)
    return cuda if is_initialized is not None and is_initialized() else None


def native() -> Any:
    """PyTorch's own functions below its Python ones, once CUDA is in use."""
    return getattr(sys.modules.get("torch"), "_C", None) if torch_cuda() is not None else None


def is_recording() -> bool:
    """Whether the program lets PyTorch record where memory is allocated."""
    ask = getattr(native(), "_cuda_isHistoryEnabled", None)
    return ask is not None and bool(ask())


def snapshot() -> Dict[str, Any]:
    taken: Dict[str, Any] = torch_cuda().memory._snapshot()
    return taken


def device_memory() -> "Optional[Tuple[int, int]]":
    """Free and total. Asks the driver and does not wait for queued work."""
    cuda = torch_cuda()
    if cuda is None:
        return None
    try:
        free, total = cuda.mem_get_info()
        return int(free), int(total)
    except Exception:  # A device that has just failed may not answer at all.
        return None


def read_nested(device: Optional[int] = None) -> Optional[Dict[str, Any]]:
    cuda = torch_cuda()
    if cuda is None:
        return None
    # The nested form is what the allocator returns; memory_stats() flattens it into 200 keys, which costs several times as much.
    read = getattr(cuda.memory, "memory_stats_as_nested_dict", None)
    stats = read(cuda.current_device() if device is None else device) if read else None
    return stats if stats else None


def figures(stats: Optional[Dict[str, Any]] = None) -> Optional[Dict[str, int]]:
    """What is sent with a step; None without PyTorch or before CUDA is in use."""
    if stats is None:
        stats = read_nested()
        if stats is None:
            return None
    found = {
        "allocated": _current(stats, "allocated_bytes"),
        "reserved": _current(stats, "reserved_bytes"),
        "active": _current(stats, "active_bytes"),
        "inactive_split": _current(stats, "inactive_split_bytes"),
        "peak_allocated": _of(stats, "allocated_bytes", "peak"),
        "peak_reserved": _of(stats, "reserved_bytes", "peak"),
        "retries": stats.get("num_alloc_retries"),
        "ooms": stats.get("num_ooms"),
        "limit": _limit(),
    }
    return {name: value for name, value in found.items() if value is not None}


def _limit() -> Optional[int]:
    """What this process may have of the GPU where the program set a limit (`set_per_process_memory_fraction`); None: all of it, or PyTorch is too old to say."""
    cuda = torch_cuda()
    ask = getattr(native(), "_cuda_getMemoryFraction", None)
    if cuda is None or ask is None:
        return None
    device = cuda.current_device()
    fraction = ask(device)
    if not 0.0 < fraction < 1.0:
        return None
    return int(fraction * cuda.get_device_properties(device).total_memory)


def requested_bytes(stats: Dict[str, Any]) -> Optional[int]:
    """What the program asked for, before rounding; PyTorch 2 reports it."""
    return _current(stats, "requested_bytes")


def device_ids() -> Optional[List[str]]:
    """Which GPU this process trains on, as the agent names it: by UUID once CUDA is in use, else by index from the environment."""
    cuda = torch_cuda()
    if cuda is not None:
        uuid = getattr(cuda.get_device_properties(cuda.current_device()), "uuid", None)
        if uuid is not None:
            text = str(uuid)
            return [text if text.startswith(("GPU-", "MIG-")) else "GPU-" + text]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or os.environ.get("HIP_VISIBLE_DEVICES")
    names = [name.strip() for name in (visible or "").split(",") if name.strip() not in ("", "-1")]
    local = os.environ.get("LOCAL_RANK", "")
    if names and local.isdigit() and int(local) < len(names):
        return [names[int(local)]]
    return names or None


def _current(stats: Dict[str, Any], name: str) -> Optional[int]:
    return _of(stats, name, "current")


def _of(stats: Dict[str, Any], name: str, which: str) -> Optional[int]:
    try:
        return int(stats[name]["all"][which])
    except (KeyError, TypeError):
        return None

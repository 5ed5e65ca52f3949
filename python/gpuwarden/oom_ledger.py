"""Where the device's memory was when CUDA ran out of it, and which part of that was the cause."""
from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from . import allocator
from .formats import format_bytes

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_AMOUNT = r"([\d.]+) (bytes|KiB|MiB|GiB|TiB)"
_IN_MESSAGE = {
    "requested": re.compile(r"[Tt]ried to allocate " + _AMOUNT),
    "device_total": re.compile(r"total capacity of " + _AMOUNT),
    "device_free": re.compile(_AMOUNT + r" is free"),
    "allowed": re.compile(_AMOUNT + r" allowed"),
    "process": re.compile(r"this process has " + _AMOUNT + r" memory in use", re.IGNORECASE),
    "allocated": re.compile(_AMOUNT + r" is allocated by PyTorch"),
    "unallocated": re.compile(_AMOUNT + r" is reserved by PyTorch but unallocated"),
}
#: Less than this share of the device did not decide anything.
_COUNTS = 0.1
#: A step that needs this many times the most that any step needed is a different kind of step.
_LARGER = 1.1


class Held(NamedTuple):
    """PyTorch's own part."""

    allocated: int
    rounding: int
    pending_free: int
    inactive_split: int
    releasable_cache: int

    @property
    def reserved(self) -> int:
        return self.allocated + self.rounding + self.pending_free + self.inactive_split + self.releasable_cache


def read_message(message: str) -> Dict[str, int]:
    """The amounts that PyTorch's message names, as far as it names them."""
    found = {name: pattern.search(message) for name, pattern in _IN_MESSAGE.items()}
    return {name: int(float(match.group(1)) * _UNITS[match.group(2)]) for name, match in found.items() if match}


def held_by_torch(stats: Mapping[str, Any], said: Mapping[str, int], is_of_the_moment: bool) -> Held:
    """`is_of_the_moment`: the figures are from the failure itself; else the message is more accurate where frames have released memory since."""
    figures = allocator.figures(dict(stats)) or {}
    allocated, reserved = figures.get("allocated", 0), figures.get("reserved", 0)
    active, split = figures.get("active", allocated), figures.get("inactive_split", 0)
    was_allocated, was_unused = said.get("allocated"), said.get("unallocated")
    if not is_of_the_moment and was_allocated is not None and was_unused is not None and allocated < 0.99 * was_allocated:
        # Before it gives up, the allocator returns every segment that is not in use: what was left was in pieces.
        return Held(was_allocated, 0, 0, was_unused, 0)
    requested = allocator.requested_bytes(dict(stats))
    rounding = max(0, allocated - requested) if requested else 0
    pending = max(0, active - allocated)
    return Held(allocated - rounding, rounding, pending, split, max(0, reserved - allocated - pending - split))


def ledger(held: Held, said: Mapping[str, int], free: Optional[int], total: Optional[int]) -> List[Dict[str, Any]]:
    """The entries add up to the device's total where that is known."""
    entries = [
        _entry("torch_allocated", held.allocated, "Tensors that PyTorch held."),
        _entry("torch_rounding", held.rounding, "Added by the allocator to round requests up to its block sizes."),
        _entry("torch_pending_free", held.pending_free, "Freed by the program, but a stream still uses it."),
        _entry("torch_inactive_split", held.inactive_split, "Fragmented memory: unusable pieces of segments that are partly in use."),
        _entry("torch_releasable_cache", held.releasable_cache, "Unused segments in the cache."),
    ]
    if free is not None and total is not None:
        outside = max(0, total - free - held.reserved)
        process = said.get("process")
        if process is not None:
            own = min(outside, max(0, process - held.reserved))
            entries.append(_entry("non_torch", own, "This process, outside PyTorch's allocator: CUDA context, NCCL, libraries."))
            entries.append(_entry("other_processes", outside - own, "Other processes, and the driver's reserve."))
        else:
            entries.append(_entry("outside_torch", outside, "CUDA context, libraries, other processes, and the driver's reserve."))
        entries.append(_entry("free", free, "Available to anybody."))
    return entries


def cause(
    requested: Optional[int],
    entries: List[Dict[str, Any]],
    growth: Optional[Mapping[str, float]],
    allowed: Optional[int] = None,
    needs: Optional[Mapping[str, float]] = None,
    evaluation: Optional[str] = None,
) -> Dict[str, str]:
    """`needs`: what steps needed while they ran (growth.Growth.step_needs). `evaluation`: the function that evaluates, where one was running."""
    held = {entry["name"]: entry["bytes"] for entry in entries}
    if requested is None and held.get("free", 0) > _COUNTS * sum(held.values()):
        message = "the GPU had %s free: the host could not provide what the driver asked for (pinned memory, or the host is full)" % format_bytes(held["free"])
        return {"kind": "host_memory", "message": message}
    if requested is None or not held:
        return {"kind": "unknown", "message": "the allocator's figures are not known"}
    total = sum(held.values())
    unused = held["torch_inactive_split"] + held["torch_releasable_cache"]
    others = held.get("other_processes", 0)
    beside = "; other processes used %s of this GPU" % format_bytes(others) if others > _COUNTS * total else ""
    # Without the rise the request would have fit, or most of what was held came from it.
    if growth is not None and growth["bytes"] >= min(requested, 0.25 * held["torch_allocated"]):
        return {
            "kind": "leak",
            "message": "tensors grew by %s per step, %s over the last %d steps, and did not go back down: something keeps what each step makes "
            "(losses with their graphs, outputs in a list, hooks): detach() what you keep%s"
            % (format_bytes(growth["bytes_per_step"]), format_bytes(growth["bytes"]), growth["steps"], beside),
        }
    if allowed is not None and held.get("free", 0) >= requested:
        return {"kind": "limit", "message": "this process may use only %s of the GPU (set_per_process_memory_fraction)" % format_bytes(allowed)}
    if others >= requested and others > _COUNTS * total:
        return {"kind": "other_processes", "message": "other processes used %s of this GPU" % format_bytes(others)}
    if unused >= requested and unused > _COUNTS * total:
        return {
            "kind": "fragmentation",
            "message": "%s was fragmented: unused, but in pieces too small for %s; try PYTORCH_ALLOC_CONF=expandable_segments:True"
            % (format_bytes(unused), format_bytes(requested)),
        }
    pending = held["torch_pending_free"]
    if pending >= requested and pending > _COUNTS * total:
        return {"kind": "pending_free", "message": "%s was freed, but a stream still used it: check record_stream" % format_bytes(pending)}
    larger = _larger_step(requested, held["torch_allocated"], needs, evaluation)
    if larger is not None:
        return larger
    pieces = "; another %s was fragmented, in pieces too small for it" % format_bytes(unused) if unused >= requested else ""
    return {
        "kind": "capacity",
        "message": "tensors used %s and the program asked for %s more: use smaller batches, shorter sequences, checkpointing, or a larger GPU%s"
        % (format_bytes(held["torch_allocated"]), format_bytes(requested), pieces),
    }


def _larger_step(requested: int, allocated: int, needs: Optional[Mapping[str, float]], evaluation: Optional[str]) -> Optional[Dict[str, str]]:
    """What was different about this step, where it needed clearly more than all before it."""
    if needs is None:
        return None
    needed = allocated + requested - needs["held"]
    if needed <= _LARGER * needs["bytes"]:
        return None
    usual = "earlier steps needed at most %s on top of the %s that stays between steps" % (format_bytes(needs["bytes"]), format_bytes(needs["held"]))
    if evaluation is not None:
        hint = "evaluate without gradients (torch.no_grad), in smaller batches, and move results to the host"
        return {"kind": "evaluation", "message": "evaluation (%s) needed %s; %s: %s" % (evaluation, format_bytes(needed), usual, hint)}
    if needs["grew"]:
        hint = "batches or sequences grow: limit their length, or sort them so that the largest comes first"
        text = "steps need more and more memory: %s more over the last %d steps, %s in the last one; %s"
        return {"kind": "growing_steps", "message": text % (format_bytes(needs["grew"]), needs["steps"], format_bytes(needed), hint)}
    what = "one request of %s" % format_bytes(requested) if requested >= 0.5 * (needed - needs["bytes"]) else "%s" % format_bytes(needed)
    return {"kind": "sudden", "message": "this step needed %s; %s: check for an unusually large batch or sequence" % (what, usual)}


def _entry(name: str, amount: int, explanation: str) -> Dict[str, Any]:
    return {"name": name, "bytes": max(0, int(amount)), "explanation": explanation}

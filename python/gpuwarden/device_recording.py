"""The lines whose GPU memory stays, from PyTorch's allocator in its cheapest mode: stacks of live blocks only, no history."""
from __future__ import annotations

import inspect
import os
import time
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from . import allocator, snapshots
from .settings import read_settings
from .snapshots import Line, blamed_line
from .window import Refused, Window

#: A program with more blocks than this is not recorded: looking at them would take too long and too much memory.
_MOST_BLOCKS = 200_000

#: Address and size of a block.
_Block = Tuple[int, int]
_Blocks = Dict[_Block, Line]


class DeviceWindow(Window):
    def __init__(self) -> None:
        super().__init__()
        self._switch: Optional[Switch] = None
        self._written: Optional[Dict[str, Any]] = None
        self._device = 0
        self._allocated: Dict[str, int] = {}

    def begin(self, trigger: str) -> None:
        cuda = allocator.torch_cuda()
        if cuda is None:
            raise Refused("PyTorch does not use a GPU in this process")
        self._device = int(cuda.current_device())
        if allocator.is_recording():
            if trigger not in ("hand", "program"):
                raise Refused("the program records its memory history itself")
            self._written = _write_own_history()
            self.is_complete = True
            return
        self._switch = Switch(cuda)
        self._switch.on()

    def end(self) -> None:
        switch, self._switch = self._switch, None
        if switch is not None:
            switch.off()

    def verdict(self) -> Dict[str, Any]:
        if self._written is not None:
            return self._written
        end = self.seen("end")
        kept = _kept_in_all(self.seen("old"), self.seen("before"), end)
        middle = self.seen("middle")
        totals = {name: _sums(blocks.items()) for name, blocks in (("middle", middle), ("end", end))}
        early = _sums(item for item in kept.items() if item[0] in middle)
        late = _sums(item for item in kept.items() if item[0] not in middle)
        leaking: Dict[Line, Tuple[int, int]] = {}
        for line, (late_bytes, late_blocks) in late.items():
            early_bytes, early_blocks = early.get(line, (0, 0))
            grown = totals["end"][line][0] - totals["middle"].get(line, (0, 0))[0]
            # A buffer that is made anew in each step survives nothing and grows no more than it did; a leak has survivors of all ages.
            if early_bytes and grown >= 0.5 * late_bytes:
                leaking[line] = (early_bytes + late_bytes, early_blocks + late_blocks)
        grown_bytes = self._allocated["old"] - self._allocated["begin"]
        return self.described(leaking, grown_bytes, self.steps_between("begin", "old"))

    def _look(self, name: str) -> _Blocks:
        if self._written is not None:
            return {}
        if self._switch is None or self._switch.was_taken_over:
            raise Refused("the program began to record its memory history itself")
        self._allocated[name] = (allocator.figures() or {}).get("allocated", 0)
        return {} if name == "begin" else self._live_blocks()

    def _live_blocks(self) -> _Blocks:
        """Those that were made since the switch: only they have frames."""
        found: _Blocks = {}
        #: Blocks of one stack share their list of frames within a snapshot.
        lines: Dict[int, Optional[Line]] = {}
        snapshot = allocator.torch_cuda().memory.memory_snapshot()
        for segment in snapshot:
            if segment.get("device", self._device) != self._device:
                continue
            address = int(segment.get("address", 0))
            for block in segment.get("blocks") or ():
                size = int(block.get("size", 0))
                frames = block.get("frames")
                if frames and block.get("state") == "active_allocated":
                    key = id(frames)
                    if key not in lines:
                        lines[key] = blamed_line(frames)
                    line = lines[key]
                    if line is not None:
                        found[(int(block.get("address", address)), size)] = line
                address += size
            if len(found) > _MOST_BLOCKS:
                raise Refused("more than %d blocks were made and kept" % _MOST_BLOCKS)
        return found


class Switch:
    """Turns recording on and off, and notices when the program itself begins to record meanwhile."""

    def __init__(self, cuda: Any) -> None:
        self._record: Callable[..., Any] = cuda.memory._record_memory_history
        self._native = allocator.native()
        self._original: Optional[Callable[..., Any]] = None
        self._is_ours = False
        self.was_taken_over = False

    def on(self) -> None:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(self._record).parameters
        takes_anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
        if not takes_anything and not {"context", "stacks"}.issubset(parameters):
            raise Refused("this version of PyTorch cannot record: 2.1 or newer is needed")
        if not hasattr(self._native, "_cuda_isHistoryEnabled"):
            raise Refused("this version of PyTorch does not say whether the program records its memory history")
        self._record(enabled="state", context="alloc", stacks="python")
        self._is_ours = True
        self._original = getattr(self._native, "_cuda_record_memory_history", None)
        if self._original is not None:
            self._native._cuda_record_memory_history = self._notice

    def off(self) -> None:
        if self._original is not None:
            self._native._cuda_record_memory_history = self._original
        if self._is_ours and not self.was_taken_over:
            self._record(enabled=None)
        self._is_ours = False

    def _notice(self, *args: Any, **named: Any) -> Any:
        self.was_taken_over = True
        assert self._original is not None
        return self._original(*args, **named)


def _kept_in_all(old: _Blocks, before: _Blocks, end: _Blocks) -> _Blocks:
    """What is at least two step ends old."""
    return {block: line for block, line in end.items() if old.get(block) == line and before.get(block) == line}


def _sums(blocks: Any) -> Dict[Line, Tuple[int, int]]:
    sums: Dict[Line, Tuple[int, int]] = {}
    for (_, size), line in blocks:
        held, count = sums.get(line, (0, 0))
        sums[line] = (held + size, count + 1)
    return sums


def _write_own_history() -> Dict[str, Any]:
    """The program records by itself: what it has so far becomes a file for `gpuwarden snapshot`, and nothing is switched."""
    taken = allocator.snapshot()
    name = "asked-%d-%d.pickle" % (int(time.time()), os.getpid())
    written = snapshots.write_snapshot(taken, read_settings().snapshot_folder, name)
    held = snapshots.holders(taken)
    lines = [dict(one, file=snapshots.short_file(one["file"]), bytes_per_step=None, share=None) for one in held]
    return {"lines": [], "holders": lines, "grown_bytes": None, "grown_steps": None, "snapshot": written}

"""Tells the agent once per run what the model needs to compute. On a thread of its own, after the first steps; whatever fails is left out."""
from __future__ import annotations

import logging
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Optional

from . import compute_type, meta_flops, model_count, model_search
from .batch_size import size_of_spec
from .rank_groups import read_groups

log = logging.getLogger("gpuwarden")

#: By then the model is on its device, compiled and running.
AFTER_STEPS = 4


class ModelReport:
    """Of one run. `send` gets the figures of the model, on rank 0, and `send_groups` where this rank is among the others."""

    def __init__(
        self, send: Callable[[Dict[str, Any]], None], send_groups: Callable[[Dict[str, int]], None], rank: int, world_size: int
    ) -> None:
        self._send = send
        self._send_groups = send_groups
        self._rank = rank
        self._world_size = world_size
        self._model: "Optional[weakref.ref[Any]]" = None
        self._precision: Any = None
        self._steps = 0
        self._is_wanted = True
        self._thread: Optional[threading.Thread] = None
        self._batch: Any = None

    def follow(self, model: Any, precision: Any, batch: Any) -> None:
        """The trainer says which model it is, in which precision it is trained, and how its batches look."""
        try:
            self._model = weakref.ref(model)
        except TypeError:
            return
        self._precision = precision
        self._batch = batch

    def on_step(self, meter: Any) -> bool:
        """Called with every step; False: no more of it is needed."""
        self._steps += 1
        if self._steps < AFTER_STEPS:
            return True
        if "torch" in sys.modules and (self._model is not None or meter is not None or self._world_size > 1):
            self._thread = threading.Thread(target=self._work, args=(meter,), name="gpuwarden-model", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                self._thread = None
        return False

    def stop(self) -> None:
        """The program ends, and so must our use of PyTorch."""
        self._is_wanted = False

    def join(self, seconds: float) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _work(self, meter: Any) -> None:
        try:
            if self._world_size > 1:
                self._send_groups(read_groups())
            if self._rank != 0:
                return
            figures = self._figures(sys.modules["torch"], meter)
            if figures and self._is_wanted:
                self._send(figures)
        except Exception as error:
            log.debug("gpuwarden: the model is not counted: %s: %s", type(error).__name__, error)

    def _figures(self, torch: Any, meter: Any) -> Optional[Dict[str, Any]]:
        named = None if self._model is None else self._model()
        optimizer = None if meter is None or meter.optimizer is None else meter.optimizer()
        model = named if named is not None or optimizer is None else model_search.find_model(torch, optimizer)
        if model is None:
            return None
        model = model_search.unwrapped(model)
        counted = model_count.count(torch, model)
        if counted is None:
            return None
        spec = self._batch if self._batch is not None or meter is None else meter.first_batch
        size = size_of_spec(spec)
        seen = None if meter is None else meter.compute_type
        figures: Dict[str, Any] = {
            "parameters": counted.parameters,
            "active_parameters": counted.active,
            "compute_type": seen or compute_type.of_precision(torch, self._precision, model),
        }
        if size is None:
            return figures
        samples, tokens = size
        if tokens:
            figures["flops_per_token"] = model_count.flops_per_token(model, counted, tokens / samples)
        if figures.get("flops_per_token") is None:
            forward = meta_flops.count_forward(torch, model, spec, lambda: self._is_wanted)
            if forward is not None and tokens:
                figures["flops_per_token"] = forward * counted.passes / tokens
            elif forward is not None:
                figures["flops_per_sample"] = forward * counted.passes / samples
        return figures

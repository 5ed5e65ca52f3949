"""`gpuwarden.watch(model, every=100)`: figures of each layer, every so many steps.

Between two looks nothing is hooked. For the step that is looked at, hooks on the layers see activations, and the optimizer's step shows gradients,
weights and what it changed. Whatever fails ends the watching, never the training.
"""
from __future__ import annotations

import logging
import os
import sys
from typing import Any, Dict, List, Optional

from .layer_figures import LayerRecord, ParameterLook, add_activation
from .layers import Layer, layers_of
from .model_search import find_model, unwrapped

log = logging.getLogger("gpuwarden")

EVERY = 100
#: Compiling a model with our hooks in it would make them a part of it; until then it has been compiled, if it is at all.
_FIRST_LOOK = 3
_MOST_FAULTS = 3

_watches: Dict[int, "ModelWatch"] = {}


class LayerNews:
    """What goes with the next step that is logged: a look at the layers, and the layer that broke first."""

    def __init__(self, record: Optional[LayerRecord], found: Optional[Dict[str, str]]) -> None:
        self._record = record
        self._found = found

    def has_come(self) -> bool:
        return self._record is None or self._record.has_come()

    def encoded(self) -> Dict[str, Any]:
        line: Dict[str, Any] = {}
        try:
            line = {} if self._record is None else self._record.encoded()
        except Exception as error:  # The step itself counts without it.
            log.debug("gpuwarden: the figures of layers were lost: %s: %s", type(error).__name__, error, exc_info=True)
        return dict(line, non_finite=self._found) if self._found is not None else line


_record: Optional[LayerRecord] = None
_found: Optional[Dict[str, str]] = None


def take() -> Optional[LayerNews]:
    """What is new since the last call."""
    global _record, _found
    if _record is None and _found is None:
        return None
    news = LayerNews(_record, _found)
    _record = _found = None
    return news


def give_found(found: Dict[str, str]) -> None:
    global _found
    _found = found


def _give(record: LayerRecord) -> None:
    global _record
    _record = record


def watch(model: Any, every: int = EVERY) -> "ModelWatch":
    """Shows each layer of a PyTorch model every `every` steps of its optimizer: gradient and weight norms, what a step changes, activations,
    attention. Follows the training as `gpuwarden.attach` does. Watching it again changes `every`."""
    from .automatic import attach

    if every < 1:
        raise ValueError("every: expected steps, 1 or more, got %r" % (every,))
    attach()
    known = _watches.get(id(unwrapped(model)))
    if known is not None and known.is_on:
        known.every = int(every)
        return known
    made = ModelWatch(model, int(every))
    try:
        from . import optimizer_hooks

        optimizer_hooks.watchers.append(made)
        _watches[id(made.model)] = made
    except ImportError:
        made.stop()
    return made


def look_once(model: Any) -> None:
    """At the next step of a model, watched or not."""
    from . import optimizer_hooks

    known = _watches.get(id(unwrapped(model)))
    if known is None:
        known = ModelWatch(model, EVERY, is_once=True)
        optimizer_hooks.watchers.append(known)
    known.look_soon()


def watched_model() -> Any:
    return next((one.model for one in _watches.values() if one.is_on), None)


class ModelWatch:
    def __init__(self, model: Any, every: int, is_once: bool = False) -> None:
        self.model = unwrapped(model)
        self._is_once = is_once
        self.every = every
        self.is_on = True
        self._pid = os.getpid()
        self._steps = 0
        self._faults = 0
        self._layers: Optional[List[Layer]] = None
        self._hooks: List[Any] = []
        self._record: Optional[LayerRecord] = None
        self._look: Optional[ParameterLook] = None

    def stop(self) -> None:
        """Ends the watching."""
        self.is_on = False
        self._drop()
        _watches.pop(id(self.model), None)
        hooks = sys.modules.get("gpuwarden.optimizer_hooks")
        if hooks is not None and self in hooks.watchers:
            hooks.watchers.remove(self)

    def missed(self, steps: int) -> None:
        """Steps that were taken before it was watched."""
        self._steps += steps

    def look_soon(self) -> None:
        """Looks at the next step, whatever `every` says."""
        if self._record is None and self.is_on:
            self._guarded(self._arm)

    # --- called around the optimizer's step

    def before_step(self, optimizer: Any, _: Any = None) -> None:
        if self._record is not None and self._look is None:
            self._guarded(self._see_gradients)

    def after_step(self, optimizer: Any) -> None:
        self._steps += 1
        if self._record is not None:
            self._guarded(lambda: self._end(optimizer))
        # The first look is early, so that there is something to see; the others come every so often.
        if self.is_on and (self._steps == _FIRST_LOOK - 1 or (self._steps + 1) % self.every == 0) and self._steps + 1 >= _FIRST_LOOK:
            self._guarded(self._arm)

    def _arm(self) -> None:
        if os.getpid() != self._pid:
            # The child of a fork: whoever wants to watch there says so again.
            self.stop()
            return
        if self._layers is None:
            self._layers = layers_of(self.model)
        torch = sys.modules["torch"]
        record = self._record = LayerRecord(self._layers)
        seen = set()

        def hook_of(index: int) -> Any:
            def hook(module: Any, args: Any, output: Any) -> None:
                # A module that is called several times in a step shows its first call.
                if index in seen or record is not self._record or not module.training or _is_compiling(torch):
                    return
                seen.add(index)
                try:
                    with torch.no_grad():
                        if not (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()):
                            add_activation(torch, record, index, output)
                except Exception as error:
                    self._fault(error)

            return hook

        for index, layer in enumerate(self._layers):
            if layer.module is not None and hasattr(layer.module, "register_forward_hook"):
                self._hooks.append(layer.module.register_forward_hook(hook_of(index)))

    def _see_gradients(self) -> None:
        torch = sys.modules["torch"]
        assert self._layers is not None and self._record is not None
        look = ParameterLook(torch, self._layers)
        with torch.no_grad():
            look.before(self._record)
        self._look = look

    def _end(self, optimizer: Any) -> None:
        record, look = self._record, self._look
        self._drop()
        # A loss scaler left the step out: there is nothing to compare.
        if record is None or look is None:
            return
        torch = sys.modules["torch"]
        updated = {id(one) for group in optimizer.param_groups for one in group["params"]}
        with torch.no_grad():
            look.after(record, updated)
            if record.send(torch):
                _give(record)
        if self._is_once:
            self.stop()

    def _drop(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._record, self._look = [], None, None

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self._fault(error)

    def _fault(self, error: BaseException) -> None:
        self._faults += 1
        log.log(
            logging.WARNING if self._faults == 1 else logging.DEBUG,
            "gpuwarden: the layers were not looked at: %s: %s",
            type(error).__name__,
            error,
            exc_info=log.isEnabledFor(logging.DEBUG),
        )
        self._drop()
        if self._faults >= _MOST_FAULTS:
            self.stop()


class WatchLater:
    """Under `gpuwarden run --watch-model`: watches the model whose parameters the first optimizer steps are about."""

    def __init__(self, every: int) -> None:
        self._every = every

    def before_step(self, optimizer: Any, _: Any = None) -> None:
        pass

    def after_step(self, optimizer: Any) -> None:
        from . import optimizer_hooks

        optimizer_hooks.watchers.remove(self)
        model = find_model(sys.modules["torch"], optimizer)
        if model is None:
            log.info("gpuwarden: no layers are watched: no module has the parameters of the optimizer")
        elif watched_model() is None:
            watch(model, self._every).missed(1)


def wanted_by_environment() -> int:
    """How often, by GPUWARDEN_WATCH_MODEL; 0: not at all."""
    text = os.environ.get("GPUWARDEN_WATCH_MODEL", "").strip().lower()
    if text in ("true", "yes", "on"):
        return EVERY
    return int(text) if text.isdigit() else 0


def _is_compiling(torch: Any) -> bool:
    check = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return bool(check and check())

"""Which layer went non-finite first, once a loss or a gradient norm has. Costs a step nothing but looking at numbers that are on the host.

On the host it is known before the backward: weights are looked at, then what the forward left for the backward. A loss on the GPU is known some
steps later, when as a rule all weights are broken; then a layer is named only if others are not.
"""
from __future__ import annotations

import logging
import math
import sys
from types import SimpleNamespace
from typing import Any, Dict, Iterable, List, Optional

from . import model_watch, steps
from .layers import layers_of
from .model_search import find_model

log = logging.getLogger("gpuwarden")

#: A search takes a while: not again for this many steps, and not for ever.
_REST_STEPS = 1000
_MOST_SEARCHES = 5
_MOST_NODES = 50_000
#: What stands between a parameter and the operation that uses it.
_BETWEEN = ("TBackward0", "ToCopyBackward0", "ViewBackward0", "TransposeBackward0", "PermuteBackward0", "UnsqueezeBackward0")
_saved_names: Dict[type, List[str]] = {}


class NonFiniteSearch:
    def __init__(self) -> None:
        self._rest = 0
        self._searches = 0
        #: Set by the sender's thread when a number from the GPU was not finite.
        self.is_wanted = False

    def on_loss(self, loss: Any, given: Any) -> None:
        """Before its backward."""
        if loss.is_cpu and self._may_search() and not math.isfinite(loss.item()):
            self._search(lambda: _before_backward(given))

    def before_step(self, optimizer: Any, norm: Any = None) -> None:
        if self._rest:
            self._rest -= 1
        if norm is not None and getattr(norm, "is_cpu", False) and self._may_search() and not math.isfinite(float(norm)):
            self._search(lambda: _in_gradients(optimizer))

    def after_step(self, optimizer: Any) -> None:
        if self.is_wanted:
            self.is_wanted = False
            if self._may_search():
                self._search(lambda: _look_once(optimizer))

    def _may_search(self) -> bool:
        return self._rest == 0 and self._searches < _MOST_SEARCHES

    def _search(self, work: Any) -> None:
        self._rest = _REST_STEPS
        self._searches += 1
        self.is_wanted = False
        try:
            found = work()
            if found is not None:
                model_watch.give_found(found)
        except Exception as error:
            log.debug("gpuwarden: the layer that is not finite was not found: %s: %s", type(error).__name__, error, exc_info=True)


search = NonFiniteSearch()


def _want() -> None:
    search.is_wanted = True


steps.on_broken_loss = _want


def _before_backward(loss: Any) -> Optional[Dict[str, str]]:
    nodes = _nodes(loss.grad_fn)
    used = [one for node in nodes for one in _parameters(node)]
    model = model_watch.watched_model() or _model_with(used)
    if model is None:
        return None
    layers = layers_of(model)
    for layer in layers:
        if any(_is_broken(one) for one in layer.parameters):
            return {"layer": layer.name, "part": "weights"}
    names = {id(one): layer.name for layer in layers for one in layer.parameters}
    latest: Optional[str] = None
    for node in nodes:
        own = next((names[id(one)] for one in _parameters(node) if id(one) in names), None)
        if any(_is_broken(value) for value in _saved(node)):
            # What a layer keeps is its input, made by the one before; what comes after the last layer is its own.
            return {"layer": latest or own or type(model).__name__, "part": "activations"}
        latest = own or latest
    return None if latest is None else {"layer": latest, "part": "activations"}


def _in_gradients(optimizer: Any) -> Optional[Dict[str, str]]:
    """They break from the last layer to the first: the last that is broken broke first, if those behind it are not."""
    model = model_watch.watched_model() or _model_with(one for group in optimizer.param_groups for one in group["params"])
    layers = [] if model is None else [one for one in layers_of(model) if any(parameter.grad is not None for parameter in one.parameters)]
    broken = [any(_is_broken(parameter.grad) for parameter in layer.parameters if parameter.grad is not None) for layer in layers]
    if True not in broken or (all(broken) and len(broken) > 1):
        return None
    return {"layer": layers[len(broken) - 1 - broken[::-1].index(True)].name, "part": "gradients"}


def _look_once(optimizer: Any) -> None:
    model = model_watch.watched_model() or _model_with(one for group in optimizer.param_groups for one in group["params"])
    if model is not None:
        model_watch.look_once(model)


def _model_with(parameters: Iterable[Any]) -> Any:
    return find_model(sys.modules["torch"], SimpleNamespace(param_groups=[{"params": list(parameters)}]))


def _is_broken(tensor: Any) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.device.type != "cpu":
        return False
    values = tensor.detach()
    return not bool((values._values() if values.is_sparse else values).isfinite().all())


def _nodes(last: Any) -> List[Any]:
    """All operations behind a loss, in the order in which they ran."""
    found: Dict[int, Any] = {}
    waiting = [last]
    while waiting and len(found) < _MOST_NODES:
        node = waiting.pop()
        if node is None or id(node) in found or hasattr(node, "variable"):
            continue
        found[id(node)] = node
        waiting.extend(next_node for next_node, _ in node.next_functions)
    return sorted(found.values(), key=lambda node: node._sequence_nr())


def _parameters(node: Any) -> List[Any]:
    """Those that an operation uses."""
    if type(node).__name__ in _BETWEEN:
        return []
    used: List[Any] = []
    for inner, _ in node.next_functions:
        for _ in range(3):
            if inner is None or hasattr(inner, "variable") or type(inner).__name__ not in _BETWEEN:
                break
            inner = inner.next_functions[0][0]
        if hasattr(inner, "variable"):
            used.append(inner.variable)
    return used


def _saved(node: Any) -> List[Any]:
    """The tensors that an operation keeps for its backward."""
    kind = type(node)
    names = _saved_names.get(kind)
    if names is None:
        names = _saved_names[kind] = [name for name in dir(node) if name.startswith("_saved_")]
    values = []
    for name in names:
        try:
            value = getattr(node, name)
        except RuntimeError:  # Freed.
            continue
        values.extend(one for one in (value if isinstance(value, (tuple, list)) else (value,)) if hasattr(one, "is_floating_point"))
    return values

"""The layers of a model: the modules that own parameters, activation functions and attention, by name, at most 256.

A model with more is grouped by the modules around them: `decoder.17.mlp` stands for `decoder.17.mlp.up` and its neighbors.
"""
from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Set, Tuple

from .model_search import unwrapped

MOST_LAYERS = 256
#: Of all layers together; a layer with more is judged by some of them.
MOST_PARAMETERS = 8192
NAME_LIMIT = 200
_WRAPPERS = re.compile(r"(^|\.)(_fsdp_wrapped_module|_orig_mod|_checkpoint_wrapped_module)(?=\.|$)")


class Layer(NamedTuple):
    name: str
    module: Any
    parameters: List[Any]


def layers_of(model: Any) -> List[Layer]:
    """In the order of the model's modules. A parameter that several share belongs to the first."""
    model = unwrapped(model)
    modules: Dict[str, Any] = {}
    kinds: Dict[str, str] = {}
    owned: Dict[str, List[Any]] = {}
    taken: Set[int] = set()
    for path, module in model.named_modules():
        name = _WRAPPERS.sub("", path).lstrip(".")
        parameters = [one for one in module._parameters.values() if one is not None and id(one) not in taken]
        taken.update(id(one) for one in parameters)
        kind = _kind(module, bool(parameters))
        if kind:
            modules[name], kinds[name] = module, kind
            owned.setdefault(name, []).extend(parameters)
    names = list(modules)
    if len(names) > MOST_LAYERS:
        names = [name for name in names if kinds[name] != "function"]
    if len(names) > MOST_LAYERS:
        return _grouped(model, [(name, owned[name]) for name in names])
    most = max(1, MOST_PARAMETERS // max(1, len(names)))
    return [Layer(_shown(name, model), modules[name], _some(owned[name], most)) for name in names]


def _kind(module: Any, has_parameters: bool) -> str:
    if has_parameters:
        return "parameters"
    cls = type(module)
    if "attention" in cls.__name__.lower():
        return "attention"
    is_leaf = not module._modules
    return "function" if is_leaf and cls.__module__.rpartition(".")[2] in ("activation", "activations") else ""


def _grouped(model: Any, owned: "List[Tuple[str, List[Any]]]") -> List[Layer]:
    deepest = max(name.count(".") + 1 for name, _ in owned)
    groups: Dict[str, List[Any]] = {}
    for depth in range(deepest, 0, -1):
        groups = {}
        for name, parameters in owned:
            groups.setdefault(".".join(name.split(".")[:depth]), []).extend(parameters)
        if len(groups) <= MOST_LAYERS:
            break
    modules = {_WRAPPERS.sub("", path).lstrip("."): module for path, module in model.named_modules()}
    names = _some(list(groups), MOST_LAYERS)
    most = max(1, MOST_PARAMETERS // len(names))
    return [Layer(_shown(name, model), modules.get(name), _some(groups[name], most)) for name in names]


def _some(items: List[Any], most: int) -> List[Any]:
    """Evenly spread."""
    return items if len(items) <= most else [items[index * len(items) // most] for index in range(most)]


def _shown(name: str, model: Any) -> str:
    return (name or type(model).__name__)[:NAME_LIMIT]

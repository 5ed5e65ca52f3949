"""Figures of layers, computed where their tensors are, and read without waiting for them.

Norms are of all values, by fused calls. What fused calls cannot do without a copy of the model (what a step changed, how many values are not
finite) is taken from evenly spaced values.
"""
from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Tuple

from .deferred import DeferredNumbers, defer_numbers
from .layers import Layer

FIGURES = (
    "gradient_norm", "weight_norm", "update_ratio", "zero_share", "non_finite_share",
    "activation_mean", "activation_deviation", "dead_share", "attention_entropy", "attention_largest",
)  # fmt: skip
_SAMPLE = 4096
_ACTIVATION_SAMPLE = 65_536
_ATTENTION_SAMPLE = 1 << 20


class LayerRecord:
    """One look at all layers. The numbers may still be on their way."""

    def __init__(self, layers: List[Layer]) -> None:
        self._names = [layer.name for layer in layers]
        self._sizes = [sum(one.numel() for one in layer.parameters) for layer in layers]
        #: Of the gradients that were there.
        self.gradient_sizes = [0] * len(layers)
        #: What the numbers mean: (layer, name, weight of the number).
        self._keys: List[Tuple[int, str, float]] = []
        self._waiting: List[DeferredNumbers] = []
        self._by_device: Dict[Any, Tuple[List[Tuple[int, str, float]], List[Any]]] = {}
        #: Layers in the order in which their forward ran.
        self.order: List[int] = []

    def add(self, layer: int, name: str, number: Any, weight: float = 1.0) -> None:
        """A number on its device."""
        keys, numbers = self._by_device.setdefault(number.device, ([], []))
        keys.append((layer, name, weight))
        numbers.append(number)

    def send(self, torch: Any) -> bool:
        """Lets the numbers come. False: they cannot."""
        for keys, numbers in self._by_device.values():
            waiting = defer_numbers(torch.stack([number.reshape(()).float() for number in numbers]))
            if waiting is None:
                return False
            self._keys.extend(keys)
            self._waiting.append(waiting)
        self._by_device = {}
        return True

    def has_come(self) -> bool:
        return all(numbers.has_come() for numbers in self._waiting)

    def encoded(self) -> Dict[str, Any]:
        """As it is sent: columns by figure, and the first layer that is not finite."""
        counts: List[Dict[str, Any]] = [{} for _ in self._names]
        values = [value for numbers in self._waiting for value in numbers.values]
        if len(values) != len(self._keys):
            return {}
        for (layer, name, weight), value in zip(self._keys, values):
            counts[layer].setdefault(name, []).append((value, weight))
        figures = [_figures(*one) for one in zip(counts, self._sizes, self.gradient_sizes)]
        columns: Dict[str, Any] = {"names": self._names}
        for name in FIGURES:
            column = [_rounded(one.get(name)) for one in figures]
            if any(value is not None for value in column):
                columns[name] = column
        found = self._first_non_finite(counts)
        return dict({"layers": columns}, **({"non_finite": found} if found else {}))

    def _first_non_finite(self, counts: List[Dict[str, Any]]) -> Optional[Dict[str, str]]:
        """Weights first: they break all that follows. Then activations in the order of the forward. Gradients break from the last layer on."""

        def broken(name: str) -> List[int]:
            return [index for index, one in enumerate(counts) if any(not math.isfinite(value) for value, _ in one.get(name, ()))]

        weights = broken("before_norm")
        known = sum(1 for one in counts if "before_norm" in one)
        if weights and (len(weights) < known or known == 1):
            return {"layer": self._names[weights[0]], "part": "weights"}
        bad = set(broken("sum"))
        active = [index for index in self.order if index in bad]
        if active and not weights:
            return {"layer": self._names[active[0]], "part": "activations"}
        gradients = broken("gradient")
        if gradients and not bad and not weights:
            return {"layer": self._names[gradients[-1]], "part": "gradients"}
        return None


def _figures(counts: Dict[str, Any], size: int, gradient_size: int) -> Dict[str, Optional[float]]:
    def total(name: str) -> Optional[float]:
        return None if name not in counts else sum(value * weight for value, weight in counts[name])

    def norm(name: str) -> Optional[float]:
        return None if name not in counts else math.sqrt(sum(value * value for value, _ in counts[name]))

    def first(name: str) -> Optional[float]:
        return None if name not in counts else counts[name][0][0]

    change, before = norm("change"), norm("before")
    non_zero = total("non_zero")
    bad = [one for one in (_bad_share(counts, part, size) for part in ("gradient", "weight")) if one is not None]
    activation_bad = first("bad")
    if activation_bad is not None:
        bad.append(max(activation_bad, 0.0 if math.isfinite(first("sum") or 0.0) else 1e-9))
    return {
        "gradient_norm": norm("gradient"),
        "weight_norm": norm("weight"),
        "update_ratio": None if change is None or not before else change / before,
        "zero_share": None if non_zero is None or not gradient_size else 1.0 - non_zero / gradient_size,
        "non_finite_share": max(bad) if bad else None,
        "activation_mean": first("mean"),
        "activation_deviation": first("deviation"),
        "dead_share": first("zeros"),
        "attention_entropy": first("entropy"),
        "attention_largest": first("largest"),
    }


def _bad_share(counts: Dict[str, Any], part: str, size: int) -> Optional[float]:
    """By the sample; one in all where only the norm shows it."""
    shares = counts.get(part + "_bad")
    if not shares:
        return None
    is_broken = any(not math.isfinite(value) for value, _ in counts.get(part, ()))
    weight = sum(weight for _, weight in shares)
    share = sum(value * weight for value, weight in shares) / weight if weight else 0.0
    return max(share, 1.0 / max(1, size)) if is_broken else share


def _rounded(value: Optional[float]) -> Optional[float]:
    if value is None or not math.isfinite(value):
        return value
    return float("%.5g" % value)


class ParameterLook:
    """Gradients and weights before the optimizer's step, and what the step changed."""

    def __init__(self, torch: Any, layers: List[Layer]) -> None:
        self._torch = torch
        self._places = [(index, one) for index, layer in enumerate(layers) for one in layer.parameters if _is_usable(torch, one)]
        self._before: List[Tuple[int, Any, Any]] = []

    def before(self, record: LayerRecord) -> None:
        weights, gradients = [], []
        for index, parameter in self._places:
            weights.append((index, _plain(self._torch, parameter)))
            gradient = parameter.grad
            if gradient is not None and _is_usable(self._torch, gradient):
                gradients.append((index, _plain(self._torch, gradient)))
        for name, places in (("weight", weights), ("gradient", gradients)):
            for group in _alike(places):
                indices = [index for index, _ in group]
                tensors = [tensor for _, tensor in group]
                samples = [_sample(tensor, _SAMPLE) for tensor in tensors]
                norms = self._norms(tensors, 2)
                bads = self._norms(self._torch._foreach_mul(samples, 0.0), 0)
                for index, tensor, sample, norm, bad in zip(indices, tensors, samples, norms, bads):
                    record.add(index, "before_norm" if name == "weight" else "gradient", norm)
                    record.add(index, name + "_bad", bad / max(1, sample.numel()), tensor.numel())
                    if name == "weight":
                        self._before.append((index, tensor, sample.float().clone()))
                if name == "gradient":
                    for index, tensor, count in zip(indices, tensors, self._norms(tensors, 0)):
                        record.add(index, "non_zero", count)
                        record.gradient_sizes[index] += tensor.numel()

    def after(self, record: LayerRecord, updated: Any) -> None:
        """`updated`: the ids of the parameters that this step was about."""
        for group in _alike([(position, tensor) for position, (_, tensor, _) in enumerate(self._before)]):
            positions = [position for position, _ in group]
            tensors = [tensor for _, tensor in group]
            old = [self._before[position][2] for position in positions]
            new = [_sample(tensor, _SAMPLE).float() for tensor in tensors]
            changes = self._norms(self._torch._foreach_sub(new, old), 2)
            for position, norm, change, size in zip(positions, self._norms(tensors, 2), changes, self._norms(old, 2)):
                index = self._before[position][0]
                record.add(index, "weight", norm)
                if id(self._places[position][1]) in updated:
                    record.add(index, "change", change)
                    record.add(index, "before", size)
        self._before = []

    def _norms(self, tensors: List[Any], order: int) -> Any:
        """In single precision: half precision overflows."""
        torch = self._torch
        if tensors[0].dtype in (torch.float32, torch.float64):
            return torch._foreach_norm(tensors, order)
        try:
            return torch._foreach_norm(tensors, order, dtype=torch.float32)
        except TypeError:  # Before PyTorch 2.4.
            return [torch.linalg.vector_norm(tensor, order, dtype=torch.float32) for tensor in tensors]


def add_activation(torch: Any, record: LayerRecord, index: int, output: Any) -> None:
    """The output of a layer, and the weights of its attention where it has any."""
    first, weights = _parts(torch, output)
    if first is not None and first.numel():
        values = _plain(torch, first)
        record.add(index, "sum", values.sum(dtype=None if values.dtype == torch.float64 else torch.float32))
        sample = _sample(values, _ACTIVATION_SAMPLE).float()
        deviation, mean = torch.std_mean(sample, unbiased=False)
        record.add(index, "mean", mean)
        record.add(index, "deviation", deviation)
        record.add(index, "zeros", (sample == 0).sum() / sample.numel())
        record.add(index, "bad", 1.0 - torch.isfinite(sample).sum() / sample.numel())
        record.order.append(index)
    if weights is not None and weights.numel():
        rows = weights.detach().reshape(-1, weights.shape[-1])
        rows = rows[: max(1, _ATTENTION_SAMPLE // max(1, rows.shape[-1]))].float()
        record.add(index, "entropy", torch.special.entr(rows).sum(-1).mean())
        record.add(index, "largest", rows.amax())


def _parts(torch: Any, output: Any) -> "Tuple[Any, Any]":
    """The first tensor of an output, and what looks like attention weights beside it: (…, queries, keys)."""
    if isinstance(output, torch.Tensor):
        return (output if _is_usable(torch, output) else None), None
    items = list(output.values()) if hasattr(output, "values") else list(output) if isinstance(output, (tuple, list)) else []
    tensors = [one for one in items[:4] if isinstance(one, torch.Tensor) and _is_usable(torch, one)]
    if not tensors:
        return None, None
    weights = next((one for one in tensors[1:] if one.dim() in (3, 4) and one.shape[-2] == tensors[0].shape[-2]), None)
    return tensors[0], weights


def _is_usable(torch: Any, tensor: Any) -> bool:
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.device.type != "meta" and tensor.numel() > 0


def _plain(torch: Any, tensor: Any) -> Any:
    """Real and dense numbers: those of this rank's shard, of a sparse gradient's rows, and both parts of complex ones."""
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.layout != torch.strided:
        tensor = tensor._values() if tensor.is_sparse else tensor.values()
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _sample(tensor: Any, most: int) -> Any:
    size = tensor.numel()
    flat = tensor.reshape(-1) if tensor.is_contiguous() or size <= most else _in_memory_order(tensor)
    return flat[:: -(-size // most)] if size > most else flat


def _in_memory_order(tensor: Any) -> Any:
    """A flat view without a copy, where the values lie without gaps, as in channels-last; else of the first slice."""
    if tensor.numel() == 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())):
        return tensor.as_strided((tensor.numel(),), (1,))
    return tensor[tuple(slice(0, max(1, size // 2)) if axis == 0 else slice(None) for axis, size in enumerate(tensor.shape))].reshape(-1)


def _alike(places: "List[Tuple[int, Any]]") -> "List[List[Tuple[int, Any]]]":
    """By device and type, for which there are fused calls."""
    groups: Dict[Any, List[Tuple[int, Any]]] = {}
    for place in places:
        groups.setdefault((place[1].device, place[1].dtype), []).append(place)
    return list(groups.values())

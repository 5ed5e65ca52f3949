"""What a model is computed in: `bfloat16`, `float16`, `tf32`, `float32`, `float8`."""
from __future__ import annotations

from collections import Counter, deque
from typing import Any, Optional

_PRODUCTS = ("AddmmBackward", "MmBackward", "BmmBackward", "LinearBackward", "ConvolutionBackward", "ScaledDotProduct")
_MOST_NODES = 2000


def of_loss(torch: Any, loss: Any) -> str:
    """By the matrix products that the loss came from, as autocast changes their type and not that of the parameters; empty: it shows none."""
    try:
        return _of_graph(torch, loss) or ""
    except Exception:  # A graph that looks different shows nothing.
        return ""


def _of_graph(torch: Any, loss: Any) -> Optional[str]:
    waiting = deque([loss.grad_fn])
    seen: "set[Any]" = set()
    found: "Counter[str]" = Counter()
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.popleft()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name().startswith(_PRODUCTS):
            metadata = getattr(node, "_input_metadata", None)
            if metadata:
                found[_name(torch, metadata[0].dtype)] += 1
        waiting.extend(following for following, _ in node.next_functions)
    return found.most_common(1)[0][0] if found else None


def of_precision(torch: Any, precision: Any, model: Any) -> Optional[str]:
    """By what a trainer is set to (`bf16-mixed`, `16-mixed`, `fp8`), else by the parameters."""
    text = str(precision)
    if "8" in text and "16" not in text:
        return "float8"
    if "bf16" in text:
        return "bfloat16"
    if "16" in text:
        return "float16"
    parameter = next((one for one in model.parameters() if one.is_floating_point()), None)
    return None if parameter is None else _name(torch, parameter.dtype)


def _name(torch: Any, dtype: Any) -> str:
    name = str(dtype).replace("torch.", "")
    if name == "float32" and torch.cuda.is_available() and torch.get_float32_matmul_precision() != "highest":
        return "tf32"
    return "float8" if name.startswith("float8") else name

"""The norm of all gradients of an optimizer, on their device."""
from __future__ import annotations

import sys
from typing import Any


def norm_of_gradients(optimizer: Any) -> Any:
    """None: there are no gradients. Nothing waits for the GPU."""
    torch = sys.modules["torch"]
    gradients = [p.grad.detach() for group in optimizer.param_groups for p in group["params"] if p.grad is not None and not p.grad.is_sparse]
    if not gradients:
        return None
    with torch.no_grad():
        return torch.linalg.vector_norm(torch.stack([norm.float() for norm in torch._foreach_norm(gradients)]))

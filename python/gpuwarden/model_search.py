"""Finds the model of a training that nobody named: the outermost module that has the parameters of its optimizer."""
from __future__ import annotations

import gc
import time
from typing import Any, List, Optional

_AT_ONCE = 20_000
#: Wrappers, and where they keep what they wrap.
_WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod", "FullyShardedDataParallel": "module"}


def find_model(torch: Any, optimizer: Any) -> Optional[Any]:
    """Looks through all objects, in portions, as other threads have work to do."""
    parameter = next((one for group in optimizer.param_groups for one in group["params"]), None)
    if parameter is None:
        return None
    module_type = torch.nn.Module
    objects = gc.get_objects()
    modules: List[Any] = []
    for start in range(0, len(objects), _AT_ONCE):
        # By type(): isinstance asks the object, and a proxy may do anything then.
        modules += [one for one in objects[start : start + _AT_ONCE] if issubclass(type(one), module_type)]
        time.sleep(0.001)
    del objects
    inner = {id(child) for module in modules for child in module._modules.values()}
    roots = [module for module in modules if id(module) not in inner]
    owners = [module for module in roots if any(one is parameter for one in module.parameters())]
    return max(owners, key=lambda module: sum(one.numel() for one in module.parameters()), default=None)


def unwrapped(model: Any) -> Any:
    for _ in range(4):
        place = _WRAPPERS.get(type(model).__name__)
        if place is None or not hasattr(model, place):
            break
        model = getattr(model, place)
    return model

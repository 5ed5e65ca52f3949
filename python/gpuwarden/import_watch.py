"""Calls the hooks once the program has imported what they attach to. Imports nothing by itself; see startup/sitecustomize.py."""
from __future__ import annotations

import importlib
import importlib.abc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Set

#: Module of the program → module of ours whose function `attach(name, module)` is called after it was imported.
WATCHED = {
    "torch": "gpuwarden.torch_hooks",
    "torch.utils.tensorboard.writer": "gpuwarden.framework_hooks",
    "torch.distributed.checkpoint.state_dict_saver": "gpuwarden.framework_hooks",
    "torch.nn.parallel.distributed": "gpuwarden.torch_hooks",
    "torch.utils.data.dataloader": "gpuwarden.torch_hooks",
    "tensorboardX.writer": "gpuwarden.framework_hooks",
    "safetensors.torch": "gpuwarden.framework_hooks",
    "wandb.sdk.wandb_run": "gpuwarden.framework_hooks",
    "mlflow.tracking.fluent": "gpuwarden.framework_hooks",
    "transformers.trainer": "gpuwarden.framework_hooks",
    "lightning.pytorch.trainer.trainer": "gpuwarden.framework_hooks",
    "lightning.pytorch.loops.evaluation_loop": "gpuwarden.framework_hooks",
    "pytorch_lightning.trainer.trainer": "gpuwarden.framework_hooks",
    "pytorch_lightning.loops.evaluation_loop": "gpuwarden.framework_hooks",
    "accelerate.accelerator": "gpuwarden.framework_hooks",
}
#: May be imported while `torch` is: their hooks come with its own, once it is whole.
_PARTS_OF_TORCH = frozenset(("torch.nn.parallel.distributed", "torch.utils.data.dataloader"))

_attached: Set[str] = set()
_is_finding: Set[str] = set()


class _Loader(importlib.abc.Loader):
    """The module's own loader, and then the hooks."""

    def __init__(self, name: str, loader: Any) -> None:
        self._name = name
        self._loader = loader

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        spec = getattr(module, "__spec__", None)
        # Whoever asks the module for its loader gets its own.
        for owner, attribute in ((spec, "loader"), (module, "__loader__")):
            try:
                setattr(owner, attribute, self._loader)
            except AttributeError:
                pass
        self._loader.exec_module(module)
        attach(self._name, module)


class _Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name not in WATCHED or name in _is_finding or name in _attached:
            return None
        _is_finding.add(name)
        try:
            for finder in sys.meta_path:
                find = getattr(finder, "find_spec", None)
                spec = None if finder is _Finder or find is None else find(name, path, target)
                if spec is not None:
                    break
            else:
                return None
        finally:
            _is_finding.discard(name)
        if spec.loader is not None and hasattr(spec.loader, "exec_module") and hasattr(spec.loader, "create_module"):
            spec.loader = _Loader(name, spec.loader)
        return spec


def install() -> None:
    """Watches what is imported from now on, and attaches to what is there already."""
    if not any(finder is _Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder)
    for name in WATCHED:
        module = sys.modules.get(name)
        is_importing = getattr(getattr(module, "__spec__", None), "_initializing", False)
        if module is not None and not is_importing:
            attach(name, module)


def attach(name: str, module: Any) -> None:
    """Never raises: without its hooks the program runs as it always did."""
    if name in _attached or (name in _PARTS_OF_TORCH and "torch" not in _attached):
        return
    _attached.add(name)
    import logging

    log = logging.getLogger("gpuwarden")
    try:
        importlib.import_module(WATCHED[name]).attach(name, module)
        log.debug("gpuwarden: hooks in %s", name)
    except Exception as error:
        log.debug("gpuwarden: no hooks in %s: %s: %s", name, type(error).__name__, error)
    if name == "torch":
        for part in _PARTS_OF_TORCH:
            if part in sys.modules:
                attach(part, sys.modules[part])

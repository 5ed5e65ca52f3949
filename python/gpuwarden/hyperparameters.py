"""The settings of a training, as they are kept with its run: flat, bounded, and without secrets. `src/core/hyperparameters.ts` does the same."""
from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Dict, Mapping, Optional, Tuple, Union

Hyperparameter = Union[str, int, float, bool, None]

MOST = 200
_LONGEST_NAME = 100
_LONGEST_TEXT = 200
_DEEPEST = 4
MASKED = "***"

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:password|passwd|pwd|secret|credentials?|(?:api|access|private|auth|secret|license|hub|ssh|account)_?key|apikey|auth)(?:_|$)|^key$"
)
_TOKEN_NAME = re.compile(r"(?:^|_)token$")
#: `pad_token: "<pad>"` is the vocabulary's.
_WORD_TOKEN = re.compile(
    r"(?:^|_)(?:pad|eos|bos|unk|sep|cls|mask|image|audio|video|special|additional|stop|start|end|prefix|suffix|middle)_token$"
)
_SECRET_VALUE = re.compile(r"^(?:sk-|hf_|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|Bearer )|://[^/\s:@]*:[^/\s@]+@")
_NO_CONFIG = object()


def flat(config: Any) -> Dict[str, Hyperparameter]:
    """Of a map, a dataclass or a namespace (argparse's): nested ones by `outer.inner`. Never raises."""
    kept: Dict[str, Hyperparameter] = {}
    try:
        values = _mapping(config)
        if values is not None:
            _take(values, "", 0, kept)
    except Exception:  # A config is somebody else's object: what could be read of it is kept.
        pass
    return kept


def changed_fields(config: Any, always: Tuple[str, ...] = ()) -> Dict[str, Any]:
    """What of a dataclass is not as it is by default, after those that are `always` of interest."""
    values = {name: getattr(config, name) for name in always if hasattr(config, name)}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name, None)
        default = field.default if field.default is not dataclasses.MISSING else _NO_CONFIG
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name not in values and not field.name.startswith("_") and not _is_same(value, default):
            values[field.name] = value
    return values


def _is_same(value: Any, default: Any) -> bool:
    try:
        return bool(value == default)
    except Exception:
        return False


def _mapping(value: Any) -> Optional[Mapping[Any, Any]]:
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    for name in ("to_dict", "as_dict"):  # OmegaConf, transformers, wandb.Config.
        method = getattr(value, name, None)
        if callable(method) and not isinstance(value, type):
            found = method()
            if isinstance(found, Mapping):
                return found
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return {key: value[key] for key in value.keys()}
    if type(value).__name__ in ("Namespace", "SimpleNamespace"):
        return dict(vars(value))
    return None


def _take(values: Mapping[Any, Any], before: str, depth: int, kept: Dict[str, Hyperparameter]) -> None:
    for key, value in list(values.items()):
        if len(kept) >= MOST:
            return
        name = ("%s%s" % (before, key))[:_LONGEST_NAME]
        inner = _mapping(value) if depth < _DEEPEST and not isinstance(value, (str, int, float, list, tuple)) and value is not None else None
        if inner is not None:
            _take(inner, name + ".", depth + 1, kept)
        elif name:
            kept[name] = _masked(str(key), _plain(value))


def _plain(value: Any) -> Hyperparameter:
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value if abs(value) < 2**53 else str(value)
    text = str(getattr(value, "value", value))  # An enumeration has its own text.
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _masked(key: str, value: Hyperparameter) -> Hyperparameter:
    if not isinstance(value, str) or not value:
        return value
    name = re.sub(r"[^A-Za-z0-9]+", "_", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", key)).lower()
    is_secret = _SECRET_NAME.search(name) or (_TOKEN_NAME.search(name) and not _WORD_TOKEN.search(name)) or _SECRET_VALUE.search(value)
    return MASKED if is_secret else value

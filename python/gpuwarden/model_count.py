"""How many parameters a model has, how many of them work on a token, and what that takes by the usual formula."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k")


class Count(NamedTuple):
    parameters: int
    #: Without embeddings that are only looked up; of experts those that a token is given to.
    active: float
    #: Of these, what is trained.
    active_trainable: float

    @property
    def passes(self) -> float:
        """How many forward passes a step is worth: one, one for gradients of activations, one for those of the trained weights."""
        return 2.0 + (self.active_trainable / self.active if self.active else 1.0)


def count(torch: Any, model: Any) -> Optional[Count]:
    """None: this process has only a part of it, of unknown size."""
    tables = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    chosen_share = _chosen_share(getattr(model, "config", None))
    owned = [(path, module, parameter) for path, module in model.named_modules() for parameter in module._parameters.values() if parameter is not None]
    if any(type(parameter).__name__ == "FlatParameter" for _, _, parameter in owned):
        return None
    # An output projection that shares its weight with the embedding multiplies it.
    multiplied = {id(parameter) for _, module, parameter in owned if not isinstance(module, tables)}
    seen = set()
    total, active, trainable = 0, 0.0, 0.0
    for path, _, parameter in owned:
        if id(parameter) in seen:
            continue
        seen.add(id(parameter))
        size = _size(parameter)
        total += size
        if id(parameter) not in multiplied:
            continue
        own = size * (chosen_share if "experts" in path.split(".") else 1.0)
        active += own
        trainable += own if parameter.requires_grad else 0.0
    return Count(total, active, trainable)


def flops_per_token(model: Any, counted: Count, sequence: float) -> Optional[float]:
    """2 per parameter and pass, and what attention takes, as Transformers say in their config; None: this one does not."""
    config = _text_config(getattr(model, "config", None))
    layers, hidden = _first(config, _LAYERS), _first(config, _HIDDEN)
    if layers is None or hidden is None or getattr(config, "is_encoder_decoder", False):
        return None
    heads, head_size = _first(config, _HEADS), _first(config, ("head_dim",))
    width = heads * head_size if heads is not None and head_size is not None else hidden
    return counted.passes * (2.0 * counted.active + 4.0 * layers * width * sequence)


def _size(parameter: Any) -> int:
    size = int(parameter.numel())
    # bitsandbytes packs two values of 4 bits into a byte.
    return size * 2 * parameter.element_size() if type(parameter).__name__ == "Params4bit" else size


def _chosen_share(config: Any) -> float:
    config = _text_config(config)
    experts, chosen = _first(config, _EXPERTS), _first(config, _CHOSEN)
    return min(1.0, chosen / experts) if experts is not None and chosen is not None else 1.0


def _text_config(config: Any) -> Any:
    return getattr(config, "text_config", None) or config


def _first(config: Any, names: Any) -> Optional[float]:
    for name in names:
        value = getattr(config, name, None)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            return float(value)
    return None

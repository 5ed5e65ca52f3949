"""A fine-tune with Hugging Face's Trainer and low-rank adapters, watched by gpuwarden. Needs torch and transformers:

    python examples/qlora_finetune_monitored.py --output-dir ./results --gpu-index 0 --monitoring-log-dir ./gpu_logs

With nothing else given it trains on a tiny model that is made on the spot: no download, a few seconds on a CPU.
`--model-config NAME` may also be a folder or a name that transformers can load; it is then quantised to 4 bits where bitsandbytes is
installed and there is a GPU. `gemma-3n` is google/gemma-3n-E2B-it; where that cannot be had the tiny model stands in for it, and says so.
`--data PATH` is a text file, one example a line (or JSON lines with "text"), or a folder of such files (*.txt, *.jsonl).
"""
from __future__ import annotations

import argparse
import json
import logging
import math
import os
import sys
from typing import Any, Dict, List, Tuple

import torch
from torch import nn
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from gpuwarden import GPUMonitor
from gpuwarden.transformers import GPUMonitoringCallback

#: Made on the spot; bytes are the vocabulary, so that no tokenizer is needed.
TINY_MODELS = {
    "tiny": dict(n_layer=2, n_head=2, n_embd=64),
    "small": dict(n_layer=4, n_head=4, n_embd=256),
    "medium": dict(n_layer=12, n_head=12, n_embd=768),
}
#: Short names of models on the hub. They are large, and some ask for a licence to be accepted first.
HUB_NAMES = {"gemma-3n": "google/gemma-3n-E2B-it"}
VOCABULARY = 257
END = 256


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-config", default="tiny", help="%s, or what transformers can load (default: tiny)" % ", ".join([*TINY_MODELS, *HUB_NAMES]))
    parser.add_argument("--data", help="text file, or a folder of them; made up when not given")
    parser.add_argument("--output-dir", default="./results")
    parser.add_argument("--gpu-index", type=int, default=0)
    parser.add_argument("--monitoring-log-dir", default="./gpu_logs")
    parser.add_argument("--enable-prometheus", action="store_true")
    parser.add_argument("--prometheus-port", type=int, default=9090)
    parser.add_argument("--max-steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--sequence-length", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--lora-rank", type=int, default=8)
    parser.add_argument("--logging-steps", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.data is not None and not os.path.exists(arguments.data):
        parser.error("--data: there is no file or folder %s" % arguments.data)
    return arguments


class LowRank(nn.Module):
    """A frozen layer with a trainable product of two thin matrices beside it: what LoRA is."""

    def __init__(self, base: nn.Module, features_in: int, features_out: int, rank: int) -> None:
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(features_in, rank) / math.sqrt(features_in))
        self.up = nn.Parameter(torch.zeros(rank, features_out))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.base(inputs) + (inputs.to(self.down.dtype) @ self.down @ self.up).to(inputs.dtype)


def add_adapters(model: nn.Module, rank: int) -> None:
    for parameter in model.parameters():
        parameter.requires_grad = False
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            weight = getattr(child, "weight", None)
            is_attention = name in ("c_attn", "q_proj", "v_proj")
            if not is_attention or weight is None:
                continue
            # GPT-2 keeps (in, out), nn.Linear (out, in).
            features_in = getattr(child, "in_features", None) or getattr(child, "nx", None) or weight.shape[0]
            features_out = getattr(child, "out_features", None) or getattr(child, "nf", None) or weight.shape[1]
            adapter = LowRank(child, features_in, features_out, rank)
            setattr(module, name, adapter.to(weight.device))


def find_model(name: str) -> "Tuple[str, nn.Module]":
    """The model, and what it is called."""
    if name in TINY_MODELS:
        return name, load_model(name)
    full_name = HUB_NAMES.get(name, name)
    try:
        return full_name, load_model(full_name)
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        if name not in HUB_NAMES:
            raise SystemExit("--model-config: %s cannot be loaded: %s" % (name, reason)) from error
        print("%s cannot be loaded here (%s): a tiny model made on the spot stands in for it" % (full_name, reason), file=sys.stderr)
        return "tiny", load_model("tiny")


def load_model(name: str) -> nn.Module:
    if name in TINY_MODELS:
        torch.manual_seed(0)
        return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=1024, bos_token_id=END, eos_token_id=END, **TINY_MODELS[name]))
    options: Dict[str, Any] = {}
    if torch.cuda.is_available():
        try:
            import bitsandbytes  # noqa: F401
            from transformers import BitsAndBytesConfig

            options["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16
            )
        except ImportError:
            options["torch_dtype"] = torch.bfloat16
    return AutoModelForCausalLM.from_pretrained(name, **options)


def texts(path: "str | None") -> List[str]:
    if path is None:
        return ["the gpu %d has %d free bytes and %d used bytes" % (n % 8, n * 7 % 101, n * 13 % 103) for n in range(512)]
    files = [path]
    if os.path.isdir(path):
        files = sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith((".txt", ".jsonl")))
    lines = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            lines += [line.strip() for line in file if line.strip()]
    if not lines:
        raise SystemExit("--data: %s holds no text (*.txt, or *.jsonl with \"text\")" % path)
    return [json.loads(line)["text"] if line.startswith("{") else line for line in lines]


class Blocks(torch.utils.data.Dataset):
    """All texts end to end, cut into blocks of one length."""

    def __init__(self, name: str, examples: List[str], length: int) -> None:
        tokens = self._tokens(name, examples)
        count = max(1, len(tokens) // length)
        tokens = (tokens * (length // max(1, len(tokens)) + 1))[: count * length]
        self._blocks = torch.tensor(tokens).view(count, length)

    @staticmethod
    def _tokens(name: str, examples: List[str]) -> List[int]:
        if name in TINY_MODELS:
            return [token for text in examples for token in [*text.encode("utf-8"), END]]
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(name)
        return [token for text in examples for token in [*tokenizer(text)["input_ids"], tokenizer.eos_token_id or 0]]

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, index: int) -> Dict[str, torch.Tensor]:
        return {"input_ids": self._blocks[index], "labels": self._blocks[index]}


def main() -> None:
    arguments = arguments_of()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    examples = texts(arguments.data)
    name, model = find_model(arguments.model_config)
    add_adapters(model, arguments.lora_rank)
    trainable = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    print("trainable parameters: %d of %d" % (trainable, sum(parameter.numel() for parameter in model.parameters())))

    monitor = GPUMonitor(
        gpu_index=arguments.gpu_index,
        log_dir=os.path.abspath(arguments.monitoring_log_dir),
        enable_prometheus=arguments.enable_prometheus,
        prometheus_port=arguments.prometheus_port if arguments.enable_prometheus else None,
        run_name="qlora-%s" % os.path.basename(name),
    )
    callback = GPUMonitoringCallback(monitor, log_interval=10)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=arguments.output_dir,
            max_steps=arguments.max_steps,
            per_device_train_batch_size=arguments.batch_size,
            learning_rate=arguments.learning_rate,
            lr_scheduler_type="cosine",
            logging_steps=arguments.logging_steps,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=Blocks(name, examples, arguments.sequence_length),
        callbacks=[callback],
    )
    result = trainer.train()
    os.makedirs(arguments.output_dir, exist_ok=True)
    adapters = {name: value for name, value in model.state_dict().items() if name.endswith((".down", ".up"))}
    torch.save(adapters, os.path.join(arguments.output_dir, "adapters.pt"))
    summary = {
        "loss": result.training_loss,
        "steps": result.global_step,
        "sent": callback.run.statistics() if callback.run else None,
        "gpu": monitor.get_summary(),
    }
    with open(os.path.join(arguments.output_dir, "summary.json"), "w", encoding="utf-8") as file:
        json.dump(summary, file, indent=2)
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()

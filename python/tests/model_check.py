"""What is counted of real models; needs torch and transformers, so it is not found by plain discovery."""
from __future__ import annotations

import gc
import unittest
from types import SimpleNamespace
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from gpuwarden import compute_type, meta_flops, model_count, model_search
from gpuwarden.batch_size import size_of_spec, spec_of


class Noting(torch.nn.Module):
    """Changes what it holds in its forward, and draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(8, 8)
        self.seen: "list[Any]" = []
        self.calls = 0
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: Any) -> Any:
        self.seen.append(x)
        self.calls += 1
        self.mean += 1
        return self.line(x) + torch.rand(8)


class Values(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return self.line(x) if x.sum().item() > 0 else x


def forward_flops(model: Any, batch: Any) -> Any:
    return meta_flops.count_forward(torch, model, spec_of(batch), lambda: True)


class Counting(unittest.TestCase):
    def test_a_transformer_by_its_config(self) -> None:
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=100, n_positions=64))
        counted = model_count.count(torch, model)
        assert counted is not None
        # The table of words is also the output projection; that of positions is only looked up.
        self.assertEqual(counted.parameters - counted.active, 64 * 64)
        self.assertEqual(model_count.flops_per_token(model, counted, 32), 6 * counted.active + 12 * 2 * 64 * 32)
        model.requires_grad_(False)
        frozen = model_count.count(torch, model)
        assert frozen is not None
        self.assertEqual(model_count.flops_per_token(model, frozen, 0), 4 * counted.active)

    def test_the_formula_and_the_counter_agree(self) -> None:
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=100, n_positions=64))
        batch = {"input_ids": torch.zeros(2, 32).long()}
        counted = model_count.count(torch, model)
        flops = forward_flops(model, batch)
        assert counted is not None and flops is not None
        by_formula = model_count.flops_per_token(model, counted, 32) or 0.0
        self.assertAlmostEqual(flops * 3 / 64 / by_formula, 1.0, delta=0.03)

    def test_experts_count_as_far_as_they_are_chosen(self) -> None:
        model = torch.nn.Module()
        model.experts = torch.nn.ModuleList(torch.nn.Linear(10, 10, bias=False) for _ in range(4))
        model.gate = torch.nn.Linear(10, 4, bias=False)
        model.config = SimpleNamespace(num_local_experts=4, num_experts_per_tok=1)
        counted = model_count.count(torch, model)
        assert counted is not None
        self.assertEqual((counted.parameters, counted.active), (440, 140))

    def test_counting_leaves_no_trace(self) -> None:
        model = Noting()
        model.register_forward_hook(lambda *_: self.fail("a hook of the program was called"))
        state = torch.get_rng_state()
        self.assertEqual(forward_flops(model, torch.zeros(4, 8)), 2 * 4 * 8 * 8)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertEqual((model.seen, model.calls, model.training, float(model.mean.sum())), ([], 0, True, 0.0))
        self.assertEqual(model.line.weight.device.type, "cpu")

    def test_a_model_that_asks_for_values_is_not_counted(self) -> None:
        self.assertIsNone(forward_flops(Values(), torch.zeros(4, 8)))
        self.assertIsNone(meta_flops.count_forward(torch, Noting(), spec_of(torch.zeros(4, 8)), lambda: False))

    def test_batches(self) -> None:
        words = torch.zeros(4, 32).long()
        for batch in (words, [words, torch.zeros(4)], {"attention_mask": torch.zeros(4, 9), "input_ids": words}):
            self.assertEqual(size_of_spec(spec_of(batch)), (4, 128))
        self.assertEqual(size_of_spec(spec_of([torch.zeros(4, 3, 8, 8), 5])), (4, None))
        for batch in (None, "text", [], {}, torch.tensor(1.0)):
            self.assertIsNone(size_of_spec(spec_of(batch)))

    def test_the_model_of_an_optimizer_is_found(self) -> None:
        inner = torch.nn.Linear(4, 4)
        whole = torch.nn.Sequential(inner, torch.nn.Linear(4, 4))
        other = torch.nn.Sequential(torch.nn.Linear(400, 400))
        optimizer = torch.optim.SGD(inner.parameters(), lr=0.1)
        self.assertIs(model_search.find_model(torch, optimizer), whole)
        self.assertIs(model_search.unwrapped(torch.nn.DataParallel(whole)), whole)
        self.assertIsNone(model_search.find_model(torch, torch.optim.SGD([torch.nn.Parameter(torch.zeros(3))], lr=0.1)))
        del other
        gc.collect()

    def test_what_it_is_computed_in(self) -> None:
        line = torch.nn.Linear(8, 8)
        self.assertEqual(compute_type.of_loss(torch, line(torch.randn(2, 8)).sum()), "float32")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = line(torch.randn(2, 8)).sum()
        self.assertEqual(compute_type.of_loss(torch, loss), "bfloat16")
        self.assertEqual(compute_type.of_loss(torch, torch.zeros(1, requires_grad=True).exp()), "")
        self.assertEqual([compute_type.of_precision(torch, name, line) for name in ("bf16-mixed", "16-mixed", "32-true", None)], ["bfloat16", "float16", "float32", "float32"])


if __name__ == "__main__":
    unittest.main()

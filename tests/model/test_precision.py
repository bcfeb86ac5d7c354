"""How a process computes here: bf16, by how much it differs from fp32; threads; and the memory that tensors leave."""

import ctypes
import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from conftest import a_processor_with, loss_and_gradients, make_backbone, needs_bf16, noisy_adapter, prefixes_of
from torch import nn

from pipeline.model import precision, processor
from pipeline.model.backbone import Backbone, Rendered
from pipeline.model.frozen_linear import PackedLinear, Vocabulary
from pipeline.model.precision import Precision, multiplies_bf16, resolve, threads_of
from pipeline.model.processor import compute_with, return_large_tensors

PAGES = 64 * 2**20 // resource.getpagesize()
"""Of a block of 64 MiB."""
needs_glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="left out: not glibc")


@pytest.mark.parametrize("flags", ["avx512_bf16", "amx_bf16"])
def test_a_processor_says_what_it_multiplies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    a_processor_with(flags, tmp_path, monkeypatch)
    assert multiplies_bf16("auto")
    assert resolve("auto", "cpu") == resolve("bf16", "cpu") == "bf16"
    assert resolve("fp32", "cpu") == "fp32"


@pytest.mark.parametrize(("flags", "gpu", "expected"), [("avx2", True, "bf16"), ("avx512_bf16", False, "fp32")])
def test_a_gpu_decides_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, gpu: bool, expected: Precision
) -> None:
    """It computes, unless `device` is the processor."""
    a_processor_with(flags, tmp_path, monkeypatch)
    assert resolve("auto", "auto") == ("fp32" if gpu else "bf16"), "without a GPU"
    monkeypatch.setattr(precision, "GPUS", [tmp_path])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: gpu and not including_emulation)
    assert resolve("auto", "auto") == resolve("auto", "cuda") == expected
    assert resolve("auto", "cpu") == ("fp32" if gpu else "bf16")


def test_threads_are_given_or_the_environments_or_one_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert (threads_of(2), threads_of(None)) == (2, 5)
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2})
    assert threads_of(None) == 3


@needs_bf16
def test_a_product_in_bf16_by_hand() -> None:
    """bf16 has 8 digits: 1 + 2⁻⁹ is 1, and 3 · 1 + 1 · 5 is 8 exactly; gradients are W's columns."""
    layer = nn.Linear(2, 1, bias=False).requires_grad_(False)
    layer.weight.data = torch.tensor([[3.0, 5.0]])
    inputs = torch.tensor([[1 + 2**-9, 1.0]], requires_grad=True)
    product = PackedLinear(layer, "bf16")(inputs)
    assert (product.dtype, product.item()) == (torch.bfloat16, 8.0)
    product.float().sum().backward()
    assert inputs.grad.tolist() == [[3.0, 5.0]]


@needs_bf16
def test_logits_keep_their_digits_near_the_target() -> None:
    """Logits 100.25 and 100: bf16 has steps of 1/2 there, of which 0.25 is lost; less the target's, 0.25 and 0."""
    layer = nn.Linear(2, 2, bias=False).requires_grad_(False)
    layer.weight.data = torch.tensor([[1.0, 0.25], [1.0, 0.0]])
    head, hidden = Vocabulary(layer, layer.weight), torch.tensor([[100.0, 1.0]])
    assert head(hidden).tolist() == [[100.25, 100.0]], "the largest ones, where there is no target"
    assert head(hidden, torch.tensor([1])).tolist() == [[0.25, 0.0]]
    assert head(hidden, torch.tensor([0])).diff().item() == pytest.approx(-0.25, abs=1e-6)


@needs_bf16
@pytest.mark.parametrize("words", [640, 641])
def test_the_largest_logits_are_not_rounded(words: int) -> None:
    """Of 640 words in blocks of 64, or of 641 without blocks: the best sixteen are as fp32 has them."""
    torch.manual_seed(0)
    layer = nn.Linear(32, words, bias=False).requires_grad_(False)
    layer.weight.data = layer.weight.data.bfloat16().float()
    hidden = (40 * torch.randn(5, 32)).bfloat16().float()
    exact = hidden @ layer.weight.T
    best = exact.topk(8).indices
    found = Vocabulary(layer, layer.weight)(hidden)
    assert torch.allclose(found.gather(1, best), exact.gather(1, best), atol=1e-4)
    assert found.argmax(1).tolist() == exact.argmax(1).tolist()


@needs_bf16
@pytest.mark.parametrize("family", ["llama", "bart"])
def test_a_short_target_sees_nothing_of_what_comes(family: str) -> None:
    """Four tokens: two targets that begin alike have the same hidden states where they do."""
    backbone = make_backbone(family, precision="bf16")
    short = [Rendered((5, 6, 7, 8), (5, 6, *rest), 4, 4) for rest in ((7, 9), (11, 13))]
    first, second = (backbone.encode(one, for_generation=False)[0]["hidden"] for one in short)
    assert torch.equal(first[:2], second[:2])


@needs_bf16
def test_losses_gradients_and_stored_prefixes(backbone: Backbone) -> None:
    """Of one adapter in both precisions; what is stored of a source takes half the bytes."""
    family = backbone.name.removeprefix("tiny-")
    bf16, adapter = make_backbone(family, precision="bf16"), noisy_adapter(backbone)
    exact, of_exact = loss_and_gradients(backbone, adapter)
    rounded, of_rounded = loss_and_gradients(bf16, adapter)
    assert rounded == pytest.approx(exact, rel=0.02)
    if family in ("llama", "bart"):  # the store against a full pass: other orders of summation, each rounded
        assert rounded == pytest.approx(loss_and_gradients(bf16, adapter, cached=False)[0], rel=2e-3)
    within = 1.0 if family == "longt5" else 0.2  # with random weights T5's unscaled attention is all or nothing
    for name, gradient in of_exact.items():
        assert float((of_rounded[name] - gradient).norm()) < within * float(gradient.norm())
        assert of_rounded[name].dtype == torch.float32
    (stored,), (halved,) = prefixes_of(backbone, 1), prefixes_of(bf16, 1)
    large = {"keys", "values", "source"} & set(stored)
    assert large
    assert all(2 * halved[name].nbytes == stored[name].nbytes for name in large)
    assert halved["hidden"].dtype == torch.float32, "the residual stream"


@needs_glibc
def test_a_block_that_was_freed_serves_the_next() -> None:
    """Of 64 MiB: counted are pages that the kernel hands over, and clears."""
    compute_with(1)
    counts = []
    for _ in range(20):
        torch.ones(2**24)
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    # What is left between other blocks may be too small by a few bytes at first: the C library aligns tensors.
    assert min(after - before for before, after in pairwise(counts)) < PAGES / 100


GIVEN_BACK = """
import resource
import torch
from pathlib import Path
from pipeline.model.processor import LARGE, compute_with, return_large_tensors
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
compute_with(1)
return_large_tensors()
large = torch.ones(LARGE)
before = resident()
del large
print((before - resident()) / (4 * LARGE))
"""


@needs_glibc
def test_a_large_tensor_is_given_back_where_few_come_and_go() -> None:
    """Four times the limit, in a new process: in this one a block that others left might serve."""
    found = subprocess.run([sys.executable, "-c", GIVEN_BACK], capture_output=True, text=True, check=True)
    assert float(found.stdout) > 0.95


def test_without_glibc_memory_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor.ctypes, "CDLL", lambda name: object())
    compute_with(1)
    return_large_tensors()
    assert torch.get_num_threads() == 1

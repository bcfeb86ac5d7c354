"""The losses, with numbers worked by hand, and their gradients against automatic differentiation.

One position, three words. Teacher logits ln(1/2), ln(1/4), ln(1/4) give q_g = (1/2, 1/4, 1/4); student logits of 0 give
q_l = (1/3, 1/3, 1/3). Then

    H(q_g) = 1/2 ln 2 + 2 · 1/4 ln 4 = 3/2 ln 2 = 1.0397                                   (Eq. 7)
    CE = ln 3 = 1.0986
    KL(q_g ‖ q_l) = Σ q_g ln q_g − Σ q_g ln q_l = −3/2 ln 2 + ln 3 = 0.0589                (Eq. 6)
    0.8 · CE + 0.2 · KL = ln 3 − 0.3 ln 2 = 0.8907
"""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from halfway import Halfway
from hypothesis import given, settings
from hypothesis.strategies import floats, integers, sampled_from
from torch import Tensor

from benchmarks.eq8 import token_losses
from pipeline.federated.algorithms.fedselectkd import Hyperparameters
from pipeline.federated.head import backward_through_head, through_head
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY, cross_entropy, distribution, entropy
from pipeline.federated.objectives.distillation import DISTILLED, Direction, Distillation
from pipeline.federated.objectives.threshold import EVERY_TOKEN, Threshold
from pipeline.federated.randomness import Randomness

TEACHER = torch.tensor([[0.5, 0.25, 0.25]]).log()
STUDENT = torch.zeros(1, 3)
FIRST_WORD = torch.tensor([0])
WAYS: tuple[Direction, ...] = ("forward", "reverse")
H = 1.5 * math.log(2)
CE = math.log(3)
KL = math.log(3) - H
REVERSE = -math.log(3) + 5 / 3 * math.log(2)
"""KL(q_l ‖ q_g) = −ln 3 + (ln 2 + 2 ln 4) / 3 = 0.0566."""
RNG = Randomness(1, "A", 1)
MARKED = torch.tensor([True, True, False, False])
LOSSES = [
    (1.04, 0.2, "forward", 0.8 * CE + 0.2 * KL, True),
    (1.03, 0.2, "forward", CE, False),
    (distribution(TEACHER)[1].item(), 0.2, "forward", CE, False),
    (9.0, 0.3, "reverse", 0.7 * CE + 0.3 * REVERSE, True),
]
SELECTED = [
    ("entropy", {}, None, [True, False, True, False]),
    ("inverse", {}, None, [False, True, False, True]),
    ("random", {"draw": torch.tensor([0.9, 0.1, 0.8, 0.2])}, None, [False, True, False, True]),
    ("entropy", {"marked": MARKED}, lambda pieces: [True] * len(pieces), [True, True, False, False]),
]
TAUS = [
    (5, 5.0, None, 5.0),
    (0, 0.0, None, 0.0),
    ("2.5", 2.5, None, 2.5),
    ("q0.88", math.inf, 0.88, "q0.88"),
    ("q0.123456789", math.inf, 0.123456789, "q0.123456789"),
]


def test_the_entropy_of_a_certain_teacher_is_zero() -> None:
    assert distribution(torch.tensor([[0.0, -torch.inf, -torch.inf]]))[1].item() == 0.0


@pytest.mark.parametrize(("tau", "weight", "direction", "loss", "mask"), LOSSES)
def test_the_loss_by_hand(tau: float, weight: float, direction: Direction, loss: float, mask: bool) -> None:
    """Below τ cross-entropy and divergence mix, at and above τ only cross-entropy counts."""
    found = Distillation(Threshold(tau), weight, direction=direction)(STUDENT, FIRST_WORD, TEACHER, {})
    assert found.loss.item() == pytest.approx(loss)
    assert found.masks[DISTILLED].tolist() == [mask]
    assert found.figures["teacher_entropy"].item() == pytest.approx(H)
    assert found.figures["cross_entropy"].item() == pytest.approx(CE)


def test_the_gradient_by_hand() -> None:
    """d/dz of CE is q_l − y, of KL it is q_l − q_g: 0.8 (1/3 − 1) + 0.2 (1/3 − 1/2) = −0.5667 at the first word."""
    found = Distillation(Threshold(9.0), 0.2)(STUDENT, FIRST_WORD, TEACHER, {})
    # At the others it is 0.8 · 1/3 + 0.2 (1/3 − 1/4) = 0.2833.
    torch.testing.assert_close(found.gradient, torch.tensor([[-17 / 30, 17 / 60, 17 / 60]]))


def test_distillation_needs_a_teacher() -> None:
    with pytest.raises(ValueError, match="needs a teacher"):
        Distillation(EVERY_TOKEN, 0.2).begin(Halfway())


@pytest.mark.parametrize("direction", WAYS)
def test_a_teacher_that_excludes_words_gives_a_finite_gradient_and_no_logits_change(direction: Direction) -> None:
    excluding = torch.tensor([[0.0, -torch.inf, 0.0]])
    student, teacher = STUDENT.clone(), excluding.clone()
    found = Distillation(Threshold(9.0), 0.2, direction=direction)(student, FIRST_WORD, teacher, {})
    CROSS_ENTROPY(student, FIRST_WORD, None, {})
    assert torch.isfinite(torch.cat([found.loss, found.gradient[0]])).all()
    assert torch.equal(student, STUDENT)
    assert torch.equal(teacher, excluding)


@settings(max_examples=60, deadline=None)
@given(integers(0, 9999), integers(1, 6), integers(2, 9), floats(0, 2.5), floats(0, 1), sampled_from(WAYS))
def test_losses_and_gradients_are_those_of_eq_8_and_of_torch(
    seed: int, tokens: int, words: int, tau: float, weight: float, direction: Direction
) -> None:
    torch.manual_seed(seed)
    student, teacher = ((2 * torch.randn(tokens, words)).requires_grad_() for _ in range(2))
    targets = torch.randint(0, words, (tokens,))
    how = Distillation(Threshold(tau), weight, direction=direction)
    plain = torch.nn.functional.cross_entropy(student, targets, reduction="none")
    for expected, objective in ((token_losses(student, teacher, targets, how), how), (plain, CROSS_ENTROPY)):
        student.grad = None
        expected.sum().backward()  # type: ignore[no-untyped-call]
        found = objective(student, targets, teacher, {})
        torch.testing.assert_close(found.loss, expected.detach(), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(found.gradient, student.grad, atol=1e-5, rtol=1e-4)
    assert teacher.grad is None, "nothing reaches the teacher"
    torch.testing.assert_close(cross_entropy(student, targets), plain)


@pytest.mark.parametrize("tokens", [1, 31, 32, 33, 300])
@pytest.mark.parametrize("direction", WAYS)
def test_the_chunked_head_equals_the_plain_one(tokens: int, direction: Direction) -> None:
    """Loss and gradient through chunks of 32 positions = those of the mean over all logits at once."""
    torch.manual_seed(0)
    weight, base, teacher = (torch.randn(count, 8) for count in (50, tokens, tokens))
    targets = torch.randint(0, 50, (tokens,))
    how = Distillation(Threshold(2.5), 0.3, direction=direction)
    plain, chunked = base.clone().requires_grad_(), base.clone().requires_grad_()
    expected = token_losses(plain @ weight.T, teacher @ weight.T, targets, how)
    expected.mean().backward()  # type: ignore[no-untyped-call]
    found = backward_through_head(lambda h, *_: h @ weight.T, chunked * 1.0, targets, how, teacher)
    torch.testing.assert_close(found.loss, expected.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(chunked.grad, plain.grad, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(found.gradient, plain.grad, rtol=1e-4, atol=1e-7)
    entropies = through_head(lambda h, *_: h @ weight.T, teacher, targets, entropy)
    torch.testing.assert_close(found.figures["teacher_entropy"], entropies)
    assert torch.equal(found.masks[DISTILLED], entropies < 2.5)


def test_the_mean_runs_over_all_tokens_not_over_the_distilled() -> None:
    """A sure teacher and an unsure one, τ = 1: half of the first token's gradient and half of the other's."""
    teacher = torch.cat([torch.tensor([[0.9, 0.05, 0.05]]).log(), TEACHER])
    hidden = torch.zeros(2, 3, requires_grad=True)
    how = Distillation(Threshold(1.0), 0.2)
    found = backward_through_head(lambda h, *_: h, hidden * 1.0, torch.tensor([0, 1]), how, teacher)
    h_sure = -0.9 * math.log(0.9) - 0.1 * math.log(0.05)  # = 0.3944, and the other's H is 1.0397
    assert found.loss.tolist() == pytest.approx([0.8 * CE + 0.2 * (math.log(3) - h_sure), CE])
    assert found.masks[DISTILLED].tolist() == [True, False]
    first = 0.8 * (1 / 3 - 1) + 0.2 * (1 / 3 - 0.9)  # = −0.6467 at its word; the other's is 1/3 − 1
    assert [hidden.grad[0, 0].item(), hidden.grad[1, 1].item()] == pytest.approx([first / 2, (1 / 3 - 1) / 2])


def test_extras_are_split_as_the_positions_are() -> None:
    """300 positions in chunks, every third one marked."""
    marked = torch.arange(300) % 3 == 0
    how = Distillation(EVERY_TOKEN, 0.2, mark=lambda pieces: [True] * len(pieces))
    hidden = torch.zeros(300, 3, requires_grad=True)
    targets = torch.zeros(300, dtype=torch.long)
    found = backward_through_head(lambda h, *_: h, hidden * 1.0, targets, how, torch.zeros(300, 3), {"marked": marked})
    assert torch.equal(found.masks[DISTILLED], marked)


def test_without_a_teacher_the_chunked_head_is_cross_entropy() -> None:
    """Logits 0, 0, 0 and the first word: the loss is ln 3, its gradient q − y = (1/3 − 1, 1/3, 1/3)."""
    hidden = torch.zeros(1, 3, requires_grad=True)
    result = backward_through_head(lambda h, *_: h, hidden * 1.0, FIRST_WORD, CROSS_ENTROPY)
    assert result.loss.item() == pytest.approx(CE)
    assert through_head(lambda h, *_: h, hidden, FIRST_WORD).item() == pytest.approx(CE)
    assert (result.figures, result.masks) == ({}, {})
    torch.testing.assert_close(hidden.grad, torch.tensor([[-2 / 3, 1 / 3, 1 / 3]]))


@pytest.mark.parametrize(("select", "extras", "mark", "expected"), SELECTED)
def test_selected_tokens(select: Any, extras: dict[str, Tensor], mark: Any, expected: list[bool]) -> None:
    """τ = 2: two of four entropies are below. `random` takes the two least numbers; marks replace the entropies."""
    how = Distillation(Threshold(2.0), 0.2, select, mark=mark)
    assert how.selected(torch.tensor([0.5, 3.0, 1.0, 4.0]), extras).tolist() == expected


def test_extras_are_of_the_batchs_examples_in_their_order() -> None:
    """Examples 2 and 0 of three; words of one letter are marked. A draw has a number per token, and differs by step."""
    data = Halfway(summaries=[["a", "bc"], ["d"], ["ef", "g", "h"]])
    how = Distillation(EVERY_TOKEN, 0.2, mark=lambda pieces: [len(piece) == 1 for piece in pieces])
    assert how.extras(data, RNG, 0, [2, 0])["marked"].tolist() == [False, True, True, True, False]
    assert Distillation(Threshold(2.0), 0.2).extras(data, RNG, 0, [0]) == {}
    random = Distillation(Threshold(2.0), 0.2, "random")
    first, again, next_step = (random.extras(data, RNG, step, [0, 1])["draw"] for step in (0, 0, 1))
    assert first.shape == (3,)
    assert torch.equal(first, again)
    assert not torch.equal(first, next_step)


def test_a_quantile_becomes_nats_of_the_teachers_entropies_in_each_round() -> None:
    """The median of 1, 2 and 3 is 2. Other thresholds need no entropies."""
    data, teacher = Halfway(), {"w": torch.ones(1)}
    how = Distillation(Threshold(quantile=0.5), 0.2).with_teacher(teacher)
    for threshold, constants in ((Threshold(5.0), {"tau": 5.0}), (EVERY_TOKEN, {})):
        found = replace(how, threshold=threshold).begin(data)
        assert (found.threshold, found.constants, data.teachers) == (threshold, constants, [])
    found = how.begin(data)
    assert (found.threshold, found.constants, data.teachers) == (Threshold(2.0), {"tau": 2.0}, [teacher])
    assert how.threshold == Threshold(quantile=0.5), "unchanged"


@pytest.mark.parametrize(("written", "nats", "quantile", "plain"), TAUS)
def test_a_tau_is_nats_or_a_quantile(written: object, nats: float, quantile: float | None, plain: float | str) -> None:
    """Parsing what was written gives the same threshold again; a hyperparameter is written as `plain`."""
    found = Threshold.parse(written)
    assert (found.nats, found.quantile, found.plain) == (nats, quantile, plain)
    assert Threshold.parse(found.plain) == Threshold.parse(found) == found
    hyper = Hyperparameters.model_validate({"tau": written, "lambda": 0.2})
    assert (hyper.tau, hyper.model_dump(mode="json")["tau"]) == (found, plain)


@pytest.mark.parametrize("tau", ["q1.5", "q0", "q1", "q", "qq", "high", -1, math.inf, math.nan, True, None, [5]])
def test_anything_else_is_no_threshold(tau: object) -> None:
    for parse in (Threshold.parse, lambda value: Hyperparameters.model_validate({"tau": value, "lambda": 0.2})):
        with pytest.raises(ValueError, match=r"nats|quantile"):
            parse(tau)

"""The losses, with numbers worked by hand.

One position, three words. Teacher logits ln(1/2), ln(1/4), ln(1/4) give q_g = (1/2, 1/4, 1/4); student logits of 0 give
q_l = (1/3, 1/3, 1/3). Then

    H(q_g) = 1/2 ln 2 + 2 · 1/4 ln 4 = 3/2 ln 2 = 1.0397                                   (Eq. 7)
    CE = ln 3 = 1.0986
    KL(q_g ‖ q_l) = Σ q_g ln q_g − Σ q_g ln q_l = −3/2 ln 2 + ln 3 = 0.0589                (Eq. 6)
    0.8 · CE + 0.2 · KL = ln 3 − 0.3 ln 2 = 0.8907
"""

from __future__ import annotations

import math

import pytest
import torch

from pipeline.federated.eq8 import selective_kd_loss
from pipeline.federated.head import backward_through_head, cross_entropy_through_head
from pipeline.federated.objectives.distillation import Distillation, distribution, losses_and_gradient, selected

TEACHER = torch.tensor([0.5, 0.25, 0.25]).log().view(1, 1, 3)
STUDENT = torch.zeros(1, 1, 3)
FIRST_WORD = torch.tensor([[0]])
H = 1.5 * math.log(2)
CE = math.log(3)
KL = math.log(3) - H


def test_entropy_is_in_nats() -> None:
    assert distribution(TEACHER[0])[1].item() == pytest.approx(H)


def test_entropy_of_a_certain_teacher_is_zero_and_finite() -> None:
    assert distribution(torch.tensor([[0.0, -torch.inf, -torch.inf]]))[1].item() == 0.0


def test_below_tau_cross_entropy_and_divergence_mix() -> None:
    loss, distilled = selective_kd_loss(STUDENT, TEACHER, FIRST_WORD, tau=1.04, weight=0.2)
    assert loss.item() == pytest.approx(0.8 * CE + 0.2 * KL)
    assert distilled.tolist() == [[True]]


def test_above_tau_only_cross_entropy_counts() -> None:
    loss, distilled = selective_kd_loss(STUDENT, TEACHER, FIRST_WORD, tau=1.03, weight=0.2)
    assert loss.item() == pytest.approx(CE)
    assert distilled.tolist() == [[False]]


def test_selection_is_strict() -> None:
    entropy = distribution(TEACHER[0])[1].item()
    assert not selective_kd_loss(STUDENT, TEACHER, FIRST_WORD, tau=entropy, weight=0.2)[1].item()


def test_the_mean_runs_over_all_real_tokens_not_over_the_distilled() -> None:
    """A sure and an unsure token, and padding: (0.8 CE + 0.2 KL_sure + CE) / 2, with KL_sure = ln 3 − H(sure).

    The sure teacher has q = (0.9, 0.05, 0.05), H = −0.9 ln 0.9 − 0.1 ln 0.05 = 0.3944.
    """
    sure = torch.tensor([0.9, 0.05, 0.05]).log()
    teacher = torch.stack([sure, TEACHER[0, 0], sure])[None]
    targets = torch.tensor([[0, 1, -100]])
    loss, distilled = selective_kd_loss(torch.zeros(1, 3, 3), teacher, targets, tau=1.0, weight=0.2)
    h_sure = -0.9 * math.log(0.9) - 0.1 * math.log(0.05)
    assert loss.item() == pytest.approx((0.8 * CE + 0.2 * (math.log(3) - h_sure) + CE) / 2, rel=1e-5)
    assert distilled.tolist() == [[True, False, False]]


def test_no_real_token_gives_zero() -> None:
    loss, distilled = selective_kd_loss(STUDENT, TEACHER, torch.tensor([[-100]]), tau=9, weight=0.2)
    assert loss.item() == 0.0
    assert not distilled.any()


def test_no_gradient_reaches_the_teacher() -> None:
    teacher = TEACHER.clone().requires_grad_()
    student = STUDENT.clone().requires_grad_()
    selective_kd_loss(student, teacher, FIRST_WORD, tau=9, weight=0.2)[0].backward()
    assert teacher.grad is None
    # d/dz of CE is q_l − y, of KL it is q_l − q_g: 0.8 (1/3 − 1) + 0.2 (1/3 − 1/2) = −0.5667 at the first word.
    assert student.grad is not None
    assert student.grad[0, 0, 0].item() == pytest.approx(0.8 * (1 / 3 - 1) + 0.2 * (1 / 3 - 1 / 2))


def test_a_teacher_that_rules_words_out_gives_finite_loss_and_gradient() -> None:
    student = STUDENT.clone().requires_grad_()
    teacher = torch.tensor([[[0.0, -torch.inf, 0.0]]])
    loss, _ = selective_kd_loss(student, teacher, FIRST_WORD, tau=9, weight=0.2)
    loss.backward()
    assert student.grad is not None
    assert torch.isfinite(student.grad).all()


@pytest.mark.parametrize("tokens", [1, 127, 128, 300])
def test_the_chunked_head_equals_the_plain_one(tokens: int) -> None:
    """Loss and gradient through chunks of 128 positions = the loss on all logits at once."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(50, 8, generator=generator)
    base = torch.randn(tokens, 8, generator=generator)
    teacher = torch.randn(tokens, 8, generator=generator)
    targets = torch.randint(0, 50, (tokens,), generator=generator)
    plain, chunked = base.clone().requires_grad_(), base.clone().requires_grad_()
    expected, mask = selective_kd_loss(
        (plain @ weight.T)[None], (teacher @ weight.T)[None], targets[None], tau=2.5, weight=0.3
    )
    expected.backward()
    result = backward_through_head(
        lambda h: h @ weight.T, chunked * 1.0, targets, teacher, Distillation(tau=2.5, weight=0.3)
    )
    assert result.loss.mean().item() == pytest.approx(expected.item(), rel=1e-5)
    assert result.distilled.tolist() == mask[0].tolist()
    torch.testing.assert_close(chunked.grad, plain.grad, rtol=1e-4, atol=1e-7)


def test_without_a_teacher_the_chunked_head_is_cross_entropy() -> None:
    """Logits 0, 0, 0 and the first word: the loss is ln 3, its gradient q − y = (1/3 − 1, 1/3, 1/3)."""
    hidden = torch.zeros(1, 3, requires_grad=True)
    result = backward_through_head(lambda h: h @ torch.eye(3), hidden * 1.0, torch.tensor([0]), None, None)
    assert result.loss.item() == pytest.approx(CE)
    assert not result.distilled.any()
    torch.testing.assert_close(hidden.grad, torch.tensor([[-2 / 3, 1 / 3, 1 / 3]]))


def test_losses_without_gradient_are_the_same() -> None:
    weight, hidden = torch.eye(3), torch.tensor([[0.1, 0.2, 0.3]])
    losses = cross_entropy_through_head(lambda h: h @ weight, hidden, torch.tensor([2]))
    assert losses.item() == pytest.approx(math.log(sum(math.exp(x) for x in (0.1, 0.2, 0.3))) - 0.3)


ENTROPIES = torch.tensor([0.5, 3.0, 1.0, 4.0])


@pytest.mark.parametrize(
    ("select", "marks", "expected"),
    [
        ("entropy", None, [True, False, True, False]),
        ("inverse", None, [False, True, False, True]),
        ("random", torch.tensor([0.9, 0.1, 0.8, 0.2]), [False, True, False, True]),
        ("marked", torch.tensor([True, True, False, False]), [True, True, False, False]),
    ],
)
def test_what_is_distilled(select: str, marks: torch.Tensor | None, expected: list[bool]) -> None:
    """τ = 2: two of four are sure. `random` takes the two smallest numbers instead."""
    assert selected(ENTROPIES, Distillation(2.0, 0.2, select), marks).tolist() == expected  # type: ignore[arg-type]


def test_marks_are_asked_for_where_they_are_needed() -> None:
    with pytest.raises(ValueError, match="needs marks"):
        selected(ENTROPIES, Distillation(2.0, 0.2, "marked"))


def test_the_reverse_divergence_by_hand_and_its_gradient_by_differentiation() -> None:
    """KL(q_l ‖ q_g) of (1/3, 1/3, 1/3) and (1/2, 1/4, 1/4): −ln 3 + (ln 2 + 2 ln 4) / 3 = 0.0566."""
    how = Distillation(tau=9.0, weight=0.3, direction="reverse")
    targets = torch.tensor([0])
    losses, gradient = losses_and_gradient(STUDENT[0], targets, TEACHER[0], how)
    divergence = -math.log(3) + 5 / 3 * math.log(2)
    assert losses.loss.item() == pytest.approx(0.7 * CE + 0.3 * divergence, rel=1e-5)
    logits = torch.tensor([[0.3, -0.2, 0.9]], requires_grad=True)
    student = logits.log_softmax(-1)
    loss = -0.7 * student[0, 0] + 0.3 * (student.exp() * (student - TEACHER[0].log_softmax(-1))).sum()
    loss.backward()
    _, gradient = losses_and_gradient(logits.detach(), targets, TEACHER[0], how)
    torch.testing.assert_close(gradient, logits.grad)

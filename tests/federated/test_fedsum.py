"""FedSum's parts, with the figures of its definitions worked by hand."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientState, Context, Fit, Trace, Update
from pipeline.federated.algorithms import fedsum
from pipeline.federated.algorithms.fedsum import Hyperparameters, zeta
from pipeline.federated.objectives.extraction import Extraction, Heads
from pipeline.federated.objectives.objective import ItemLosses, Objective
from pipeline.federated.objectives.prototypes import NearPrototypes, class_means, prototype_gradient

LABELS = torch.tensor([1, 0, 1, 1, 1, 0, 0, 0, 1])
"""Three documents of three units: 101, 110, 001."""
HALVES = torch.full((9,), 0.5)
H = torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, 4.0]])
"""The states of four units."""
OFF = ({"perturb": False, "mask_rate": 0.5}, {"perturb": False, "distance": "one"}, {"skip": False, "weights": "all"})
LIMITS = [
    ({}, 1, 0.5),  # (30 · 0.4 + 10 · 0.8) / 40
    ({"weights": "all"}, 1, 0.2),  # over 100 examples of all clients
    ({"mode": "as_released"}, 2, 0.4),  # the same, added in each of two rounds
]


def batch(
    objective: Objective, losses: Tensor = HALVES, labels: Tensor = LABELS, draw: float = 0.5, device: str = "cpu"
) -> ItemLosses:
    """What an objective makes of documents of three units with these cross-entropies and states of 0; ρ is 0.5."""
    right, count = torch.exp(-losses), len(labels)
    logits = torch.zeros(count, 4)
    logits[:, 3] = torch.logit(torch.where(labels > 0, right, 1 - right))
    extras = {"document": torch.arange(count) // 3, "documents": torch.full((count,), count // 3)}
    extras |= {"column": torch.arange(count) % 3 + 1, "weight": torch.ones(count)}
    extras |= {"rho": torch.full((count,), 0.5), "draw": torch.full((count,), draw)}
    return objective(logits.to(device), labels.to(device), None, {name: own.to(device) for name, own in extras.items()})


@pytest.mark.parametrize(("share", "column"), [(0.3, 1), (0.5, 2), (0.6, 3)])
def test_the_key_column_is_the_first_by_which_more_than_the_share_of_key_units_came(share: float, column: int) -> None:
    """Columns have 2, 1 and 2 of 5 key units: 2 > 1.5; 3 > 2.5 but not 2; 5 > 3 but not 3."""
    assert batch(Extraction(None, share=share)).figures["key_column"].tolist() == [column] * 9


def test_the_key_loss_is_the_sum_of_key_units_losses_by_document() -> None:
    """(0.1 + 0.2 + 0.4 + 0.3 + 0.6) / 3."""
    losses = torch.tensor([0.1, 0.5, 0.2, 0.4, 0.3, 0.9, 0.2, 0.2, 0.6])
    found = batch(Extraction(None), losses)
    torch.testing.assert_close(found.figures["key_loss"], torch.full((9,), 1.6 / 3))
    torch.testing.assert_close(found.loss, losses)


def test_a_batch_at_both_limits_is_normal() -> None:
    key_loss = float(batch(Extraction(None)).figures["key_loss"][0])
    assert not batch(Extraction((2.0, key_loss))).masks["prime"].any()
    assert batch(Extraction((1.0, key_loss))).masks["prime"].all()


def test_the_released_code_has_the_last_batchs_key_column_where_a_prefix_does_not_reach_the_share() -> None:
    """Key units in the second column, then, also of the next epoch, in the last one alone."""
    second, last, losses = torch.tensor([0, 1, 0]), torch.tensor([0, 0, 1]), torch.full((3,), 0.5)
    assert batch(Extraction(None), losses, last).figures["key_column"][0] == 3
    released = Extraction(None, released=True)
    assert [int(batch(released, losses, own).figures["key_column"][0]) for own in (second, last)] == [2, 2]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="left out: no GPU")
def test_a_gpu_computes_what_the_processor_does() -> None:
    heads = Heads(torch.tensor([[1.0, 0.0, 0.0]]), torch.ones(1))
    for objective in (Extraction(None, heads), NearPrototypes(torch.zeros(2, 2), torch.tensor([True, True]), 0.7)):
        here, there = (batch(objective, device=device).gradient.cpu() for device in ("cpu", "cuda"))
        torch.testing.assert_close(there, here)


@pytest.mark.parametrize(("draw", "skipped"), [(0.5, True), (0.51, False)])
def test_a_skipped_batch_has_no_gradient(draw: float, skipped: bool) -> None:
    found = batch(Extraction((9.0, 9.0)), draw=draw)
    assert found.masks["skipped"].tolist() == [skipped] * 9
    assert bool(found.gradient.any()) is not skipped


def test_the_gradient_under_another_head() -> None:
    """z = 0 and ln 3: σ(z) − y = −½ and ¾, times ζ = tanh ½ and the head (1, 0)."""
    states, labels = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]]), torch.tensor([1.0, 0.0])
    gradient = Heads(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([math.tanh(0.5)])).gradient(states, labels)
    torch.testing.assert_close(gradient, math.tanh(0.5) * torch.tensor([[-0.5, 0.0], [0.75, 0.0]]))


def test_a_head_of_which_everything_is_masked_moves_nothing() -> None:
    states, labels = torch.randn(3, 2), torch.tensor([1.0, 0.0, 1.0])
    assert not Heads(torch.zeros(1, 3), torch.ones(1)).gradient(states, labels).any()


def test_the_gradient_of_perturbed_heads_is_that_of_autograd() -> None:
    torch.manual_seed(0)
    states, labels = torch.randn(7, 4, dtype=torch.float64, requires_grad=True), torch.tensor([1, 0, 0, 1, 0, 1, 1.0])
    heads = Heads(torch.randn(3, 5, dtype=torch.float64), torch.rand(3, dtype=torch.float64))
    logits = states @ heads.weights[:, :-1].T + heads.weights[:, -1]
    each = labels.double()[:, None].expand(-1, 3)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(logits, each, reduction="none")
    (losses.sum(0) @ heads.zeta).backward()
    torch.testing.assert_close(heads.gradient(states.detach(), labels.double()), states.grad, atol=1e-6, rtol=0)


def test_the_loss_of_prototypes() -> None:
    labels, inside = torch.tensor([1, 1, 0, 0]), torch.tensor([0.9, 0.2, 0.7, 0.1])
    logits = torch.stack([torch.zeros(4), torch.log(inside / (1 - inside))], 1)
    loss, gradient = prototype_gradient(H, logits, labels, torch.tensor([[0.0, 0.0], [2.0, 1.0]]))
    # P_c = (0, 3), (2, 0): norms 3 and 1. P_p = (1.5, 2), (0.5, 1): norm √2.
    assert loss == pytest.approx(1 + 3 - math.sqrt(2), abs=1e-6)
    torch.testing.assert_close(gradient[0], torch.tensor([0.3536, -0.1464]), atol=1e-4, rtol=0)


def test_the_gradient_of_prototypes_is_that_of_autograd() -> None:
    torch.manual_seed(1)
    states = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
    logits, labels = torch.randn(9, 2, dtype=torch.float64), torch.tensor([1, 0, 1, 0, 0, 1, 0, 0, 1])
    shared = torch.randn(2, 4, dtype=torch.float64)
    own, _ = class_means(states, labels)
    guess, _ = class_means(states, logits.argmax(-1))
    ((own - shared).norm(dim=1).sum() - (guess[1] - guess[0]).norm()).backward()
    _, gradient = prototype_gradient(states.detach(), logits, labels, shared)
    torch.testing.assert_close(gradient, states.grad, atol=1e-6, rtol=0)


def test_an_empty_class_gives_no_term() -> None:
    logits = torch.tensor([[0.0, 1.0]] * 4)  # all predicted inside
    loss, gradient = prototype_gradient(H, logits, torch.zeros(4, dtype=torch.long), H.mean(0).expand(2, -1))
    assert loss == 0
    assert not gradient.any()


def test_the_loss_of_fedproto_is_that_of_autograd() -> None:
    torch.manual_seed(2)
    states = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    labels, shared = torch.tensor([1, 0, 1, 0, 0, 0]), torch.randn(2, 3, dtype=torch.float64)
    objective = NearPrototypes(shared, torch.tensor([True, True]), 0.7)
    logits = torch.cat([states.detach(), torch.zeros(6, 2)], 1)
    found = objective(logits, labels, None, {"documents": torch.full((6,), 2)}).gradient[:, :3]
    # The mean over documents follows later, so the gradient is twice that of the loss.
    means, _ = class_means(states, labels)
    (0.7 * ((means - shared) ** 2).sum()).backward()
    torch.testing.assert_close(found, 2 * states.grad, atol=1e-6, rtol=0)


def test_zeta_is_the_tanh_of_a_distance() -> None:
    portraits = torch.tensor([[0.0, 0.0], [0.3, 0.4], [0.0, 3.0]])
    assert zeta(torch.zeros(2), portraits, "tanh").tolist() == pytest.approx([0.0, 0.4621, 0.9951], abs=1e-4)
    assert zeta(torch.zeros(2), portraits, "one").tolist() == [0.0, 1.0, 1.0]  # its own head is the first
    assert float(zeta(torch.zeros(2), portraits, "scaled")[2]) == pytest.approx(math.tanh(3 / math.sqrt(2)))


@pytest.mark.parametrize(("hyper", "rounds", "limit"), LIMITS)
def test_limits_are_means_by_examples(hyper: dict[str, str], rounds: int, limit: float) -> None:
    algorithm = fedsum.build(Hyperparameters(**hyper))
    initial = {"head.out.weight": torch.ones(1, 2), "head.out.bias": torch.zeros(1)}
    state = algorithm.init(initial, 100)
    measured = ((30, torch.tensor([0.4, 0.4])), (10, torch.tensor([0.8, 0.8])))
    updates = [Update(initial, n, 1, {fedsum.LIMITS: own, fedsum.PROTOTYPES: torch.zeros(2, 2)}) for n, own in measured]
    for number in range(1, rounds + 1):
        state = algorithm.server_update(state, updates, Context(seed=1, round=number))
    assert state.memory[fedsum.LIMITS].tolist() == pytest.approx([limit, limit])
    assert state.memory[fedsum.HEADS].shape == (2, 3)


@pytest.mark.parametrize("idle", [*OFF, {"mode": "as_released", "prototypes": False}])
def test_a_knob_of_a_part_that_is_off_is_refused(idle: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="changes nothing with mode: "):
        Hyperparameters(**idle)


def test_a_client_whose_units_have_one_label_is_refused_by_name() -> None:
    algorithm, initial = fedsum.build(Hyperparameters()), {"head.out.weight": torch.ones(1, 2)}
    units = H, torch.zeros(4, 2), torch.zeros(4, dtype=torch.long)
    client: Any = SimpleNamespace(fit=lambda *_: Fit(initial, Trace(0.0, 1, 0.0), {}), states=lambda _: units)
    sent = algorithm.shares(algorithm.init(initial, 1))
    with pytest.raises(QuorumError, match="client A: all its units are outside extracts; give it a document with both"):
        algorithm.client_update(sent, ClientState(initial), client, fedsum.Randomness(1, "A", 1))


def test_the_server_masks_heads_and_does_not_rescale_them() -> None:
    for rate, share in ((0.0, 1.0), (1.0, 0.0)):
        assert float(fedsum.masked(torch.ones(50), rate, fedsum.Randomness(1, "head 0", 1)).mean()) == share
    some = fedsum.masked(torch.full((10_000,), 2.0), 0.3, fedsum.Randomness(1, "head 0", 1))
    assert float((some == 0).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert set(some.tolist()) == {0.0, 2.0}

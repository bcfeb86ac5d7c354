"""A GPU computes what the processor does, for every family; left out where there is none."""

from dataclasses import replace

import pytest
import torch
from conftest import FAMILIES, TRAINING, loss_and_gradients, make_backbone, noisy_adapter, prefixes_of

from pipeline.federated.algorithm import Fit
from pipeline.federated.local import LocalClientData
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.objectives.threshold import Threshold
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import on_device
from pipeline.model.backbone import Row, targets_of
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.entry import Entry
from pipeline.model.generation import generate
from pipeline.model.precision import Precision

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="left out: no GPU")
pytestmark = [needs_gpu, pytest.mark.parametrize("family", FAMILIES)]
DEVICES = ("cpu", "cuda")
TAUGHT = Distillation(Threshold(20.0), 0.2)


@pytest.mark.parametrize(("precision", "loss", "within"), [("fp32", 1e-5, 1e-3), ("bf16", 0.02, 0.2)])
def test_losses_and_gradients(family: str, precision: Precision, loss: float, within: float) -> None:
    """Of the distillation loss, against the processor's in fp32; the teacher is another adapter."""
    if (family, precision) == ("longt5", "bf16"):
        within = 1.0  # with random weights T5's unscaled attention is all or nothing
    (here, of_here), (there, of_there) = (
        loss_and_gradients(backbone, noisy_adapter(backbone), objective=TAUGHT, teacher=noisy_adapter(backbone, seed=1))
        for backbone in (make_backbone(family), make_backbone(family, precision=precision, device="cuda"))
    )
    assert there == pytest.approx(here, rel=loss)
    assert of_here
    for name, gradient in of_here.items():
        assert of_there[name].dtype == torch.float32
        assert float((of_there[name] - gradient).norm()) < within * float(gradient.norm())


@pytest.mark.parametrize("beams", [1, 3])
def test_summaries(family: str, beams: int) -> None:
    def written(device: str) -> list[list[int]]:
        backbone = make_backbone(family, device=device)
        prefixes = prefixes_of(backbone, for_generation=True)
        adapter = on_device(noisy_adapter(backbone), backbone.device)
        rows = [Row(i, adapter) for i in range(3)]
        return generate(backbone, prefixes, rows, DecodingRule(beams=beams, max_tokens=20))

    here, there = map(written, DEVICES)
    assert here == there


def test_a_round_of_training(family: str) -> None:
    """Two epochs over three examples in batches of two, distilled from another adapter: the same weights."""

    def trained(device: str) -> Fit:
        backbone = make_backbone(family, device=device)
        prefixes = {str(i): p for i, p in enumerate(prefixes_of(backbone))}
        entries = [Entry(f"e{key}", key, len(targets_of([p]))) for key, p in prefixes.items()]
        local = replace(TRAINING, learning_rate=1e-3, local_epochs=2)
        data = LocalClientData(entries, entries, backbone, lambda keys: [prefixes[key] for key in keys], local)
        how = TAUGHT.with_teacher(noisy_adapter(backbone, seed=1))
        return data.fit(noisy_adapter(backbone), Randomness(1, "a", 1), how)

    here, there = map(trained, DEVICES)
    assert all(tensor.device.type == "cpu" for tensor in there.adapter.values()), "what travels"
    for name, tensor in here.adapter.items():
        torch.testing.assert_close(there.adapter[name], tensor, atol=1e-4, rtol=1e-3)

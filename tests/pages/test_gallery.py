"""The page of federations: who has what in every setting."""

from pathlib import Path
from typing import Any

import pytest
from made_results import CLASSIFY, order_of, row_of
from workspaces import stand_ins

from pipeline.pages.files import drawn_of, write_gallery
from pipeline.workspace import layout
from pipeline.workspace.files import write_json

SKEWED: dict[str, Any] = {"data": "news", "kind": "skewed", "clients": 2}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page of a setting with two seeds, one that is not drawn, and one whose clients have nothing."""
    monkeypatch.chdir(tmp_path)
    first, second = {"1": {"x": 3}, "2": {"x": 1, "y": 4}}, {"1": {"y": 9}}
    write_json(layout.clients_of("tc"), {"seeds": {"1": {"clients": first}, "2": {"clients": second}}})
    write_json(layout.clients_of("empty"), {"seeds": {"1": {"clients": {"1": {}, "2": {}}}}})
    settings = {"tc": SKEWED | {"alpha": 0.5, "beta": 2.0}, "undrawn": SKEWED, "empty": SKEWED}
    order = order_of([row_of("run", setting="tc")], data={"news": CLASSIFY}, settings=settings)
    with stand_ins():
        write_gallery(order)
    return layout.GALLERY.read_text(encoding="utf-8")


def test_a_setting_with_examples_is_shown_at_its_first_seed(page: str) -> None:
    """3 and 5 texts: mean 4, standard deviation 1. (1, 0) and (.2, .8): H(.6, .4) = .971, less H(.2, .8) / 2 = .361."""
    assert "2 clients, 3 to 5 examples each (coefficient of variation 0.25); 0.61 bits apart on average" in page
    assert "tc, α = 0.5, β = 2." in page
    assert page.count("<h2") == page.count("<img ") == 1
    assert [path.name for path in layout.FIGURES.glob("*.svg")] == ["federation-tc.svg"]
    assert [own["clients"] for own in drawn_of("tc").values()][1] == {"1": {"y": 9}}
    assert drawn_of("undrawn") == {}

"""Scores of examples and the figures of tables, with numbers worked by hand."""

from pipeline.evaluation.scores import Scored, figures_of, over_seeds, read_rows


def example(identity: str, meeting: str, rouge: float, loss: float, tokens: int = 10) -> dict[str, object]:
    scores = dict.fromkeys(("average", "rouge1"), rouge)
    return {"id": identity, "client": "A", "group": meeting, "items": tokens, "loss_sum": loss, **scores}


def test_a_run_without_predictions_has_its_loss_alone_and_turns_of_the_source_have_none() -> None:
    about = {"id": "x", "client": "A", "group": "m"}
    rows = read_rows([about | {"items": 10, "loss_sum": 20.0}, about | {"text": "hash", "average": 20.0}])
    assert rows == [Scored("x", "A", "m", 10, {"loss": 20.0}), Scored("x", "A", "m", 0, {"average": 20.0})]


def test_loss_is_a_mean_over_tokens_rouge_over_examples() -> None:
    """30 nats over 10 tokens and 30 over 20: 60 / 30."""
    rows = read_rows([example("x", "m", 10, 30, tokens=10), example("y", "n", 20, 30, tokens=20)])
    figures = figures_of(rows, 200)["A"]
    assert (figures.metrics["loss"].value, figures.metrics["rouge1"].value, figures.examples) == (2.0, 15.0, 2)


def test_figures_are_of_each_client_and_of_their_mean() -> None:
    """B has one example of 40, A two of 10: the mean over clients is 25, over examples 20."""
    rows = [Scored(f"{i}", c, f"{i}", 1, {"average": v}) for i, (c, v) in enumerate((("A", 10), ("A", 10), ("B", 40)))]
    found = {client: (own.examples, own.metrics["average"].value) for client, own in figures_of(rows, 200).items()}
    assert found == {"A": (2, 10.0), "B": (1, 40.0), "mean": (3, 25.0)}


def test_a_client_that_was_tested_on_few_meetings_gets_a_point() -> None:
    """29 meetings are too few, 30 are enough; the mean over clients has an interval either way."""
    for meetings, is_point in ((29, True), (30, False)):
        rows = [Scored(str(i), "A", f"m{i}", 1, {"average": float(i % 7)}) for i in range(meetings)]
        figures = figures_of(rows, 200)
        assert figures["A"].metrics["average"].is_point == is_point
        assert not figures["mean"].metrics["average"].is_point


def test_test_sets_that_are_drawn_anew_are_joined() -> None:
    """Seed 2 tests another example, and one of the first seed's with another client: each counts where it was."""
    second = [example("y", "m", 30, 40), example("x", "m", 50, 60) | {"client": "B"}]
    rows = over_seeds(map(read_rows, ([example("x", "m", 10, 20)], second)))
    found = [(row.client, row.id, row.values["rouge1"]) for row in rows]
    assert found == [("A", "x", 10), ("A", "y", 30), ("B", "x", 50)]

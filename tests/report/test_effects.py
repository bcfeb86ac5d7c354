"""Effects as rows of pages and of CSV files."""

from typing import Any

from made_results import AVERAGE, table_rows

from pipeline.evaluation.comparisons import Comparison, Effect
from pipeline.evaluation.intervals import Interval
from pipeline.report.effects import digits_of, effect_records, effects_table, p_text, sensitivities_table
from pipeline.report.page import p_value
from pipeline.tasks.task import LOSS

METRICS = {"average": AVERAGE, "loss": LOSS}
SEEDS = {11: "A", 12: "B", 13: "C"}
POINT, WIDE = Interval(0.5, 0.0, 0.0).alone(), Interval(0.51, 0.16, 0.85)


def comparison(**changes: Any) -> Comparison:
    known = {"name": "c", "statement": "a beats b", "terms": {"a": 1, "b": -1}, "family": "main"}
    return Comparison.model_validate(known | {"effects": {"average": 0.93, "loss": None}} | changes)


def effect(metric: str = "average", interval: Interval = WIDE, **changes: Any) -> Effect:
    return Effect(comparison(**changes.pop("about", {})), metric, interval, **changes)


def test_p_is_holms_where_there_is_a_family_and_has_three_digits() -> None:
    assert [p_text(effect(p=0.01, p_holm=0.04)), p_text(effect(p=0.01)), p_text(effect())] == ["0.040", "0.010", ""]
    assert [p_value(p) for p in (0.0124, 1.0, 0.001, 0.0009)] == ["0.012", "1.000", "0.001", "<0.001"]


def test_a_narrow_interval_has_a_digit_more() -> None:
    losses = Interval(0.03, 0.02, 0.04), Interval(0.0005, 0.0, 0.0019)
    assert [digits_of(effect("loss", own), LOSS) for own in losses] == [4, 5]
    assert [digits_of(one, AVERAGE) for one in (effect(), effect(interval=POINT))] == [2, 2]


def shown(one: Effect) -> list[str]:
    """Its row of the table: the text of each cell with its small print."""
    return table_rows(effects_table([one], lambda _: METRICS[one.metric], SEEDS))[1]


def test_a_row_has_the_effect_its_p_each_run_cochrans_p_and_the_papers_effect() -> None:
    found = shown(effect(p=0.01, p_holm=0.04, p_seeds=0.2, by_seed={11: 0.4, 12: -0.2, 13: 1.0}))
    effect_and_p, each = ["+0.51 (+0.16 … +0.85)", "0.040"], "A +0.40, B −0.20, C +1.00 Q: p 0.200"
    assert found == ["a beats b a − b", "average ROUGE", *effect_and_p, each, "+0.93"]


def test_an_effect_has_notes() -> None:
    equal = {"at_equal_length": Interval(0.1, -0.1, 0.3)}
    changes = {}, {"by_seed": {11: 1.0, 13: 2.0}}, {"by_seed": {12: 1.0}}, equal
    notes = [shown(effect(**change))[2].removeprefix("+0.51 (+0.16 … +0.85)") for change in changes]
    assert notes == ["", " of A and C alone", " of B alone", " at equal length +0.10 (−0.10 … +0.30)"]
    pooled = effect(by_seed=dict.fromkeys(SEEDS, 0.5), pooled=Interval(0.4, 0.3, 0.5))
    assert shown(pooled)[2].endswith("pooled +0.40 (+0.30 … +0.50)")


def test_what_was_not_run_has_no_numbers_and_a_band_is_in_place_of_the_papers_effect() -> None:
    missing = Effect(comparison(effects={"average": None}, band=(-1, 1)), "average")
    assert shown(missing)[2:] == ["not run", "", "", "−1.00 … +1.00"]
    no_family = effect("loss", POINT, about={"family": ""})
    assert shown(no_family) == ["a beats b a − b *", "test loss", "+0.5000", "", ""], "no column of the paper"


def test_a_record_has_six_digits_and_a_column_a_seed() -> None:
    one = effect(interval=Interval(0.12345678, 0.1, 0.2), by_seed={11: 0.1}, pooled=Interval(0.3, 0.2, 0.4), groups=9)
    first, second = effect_records([one, effect("loss", POINT, by_seed={12: 0.2})])
    assert [first[name] for name in ("effect", "low", "high", "groups", "paper")] == [0.123457, 0.1, 0.2, 9, 0.93]
    assert (first["pooled"], first["pooled_low"], first["pooled_high"]) == (0.3, 0.2, 0.4)
    assert (first["seed_11"], first["seed_12"], second["seed_12"]) == (0.1, None, 0.2)
    assert (second["effect"], second["low"], second["pooled"], second["groups"]) == (0.5, None, None, None)


def test_sensitivities_are_columns_of_all_families() -> None:
    """The second change lacks the comparison without a family; a third comparison was run under neither."""
    first, second = effect(p_holm=0.04), effect(about={"name": "d", "family": ""}, p=0.02, p_seeds=0.01)
    gone = effect(about={"name": "gone"})
    table = sensitivities_table([first, second, gone], [("one", [first, second]), ("two", [first])], METRICS)
    text = "+0.51 (+0.16 … +0.85)"
    assert table_rows(table) == [
        ["comparison", "one", "two"],
        ["a − b average ROUGE", f"{text} p 0.040", f"{text} p 0.040"],
        ["a − b * average ROUGE", f"{text} p 0.020; the runs disagree", "–"],
    ]

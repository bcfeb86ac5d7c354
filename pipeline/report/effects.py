"""Effects as tables of a page and as rows of comparisons.csv and sensitivities.csv."""

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from pipeline.evaluation.comparisons import Comparison, Effect
from pipeline.evaluation.intervals import columns
from pipeline.report.page import Cell, Cells, gain_digits, gain_text, p_value, piece, signed, table
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace.record import Json

SMALL = 0.002  # an interval narrower than this is shown with one digit more
HEAD = (
    *(Cell("comparison", kind="left"), "metric", "effect (95% interval)", "p, Holm"),
    *(Cell("each run", kind="left"), "the paper"),
)


def terms_text(terms: Mapping[str, float]) -> str:
    """A contrast in words of a formula.

    >>> terms_text({"fedselectkd": 1, "fedavg": -1}), terms_text({"a": 2, "b": -1, "c": -1})
    ('fedselectkd − fedavg', '2 a − b − c')
    """
    parts = []
    for run, weight in terms.items():
        size = "" if abs(weight) == 1 else f"{abs(weight):g} "
        parts.append(f"{'−' if weight < 0 else '+'} {size}{run}")
    return " ".join(parts).removeprefix("+ ")


def label(comparison: Comparison) -> str:
    """A comparison's contrast, with an asterisk where its p is not corrected by Holm: it has no family."""
    return terms_text(comparison.terms) + ("" if comparison.family else " *")


def digits_of(effect: Effect, metric: Metric) -> int:
    """Digits behind the point of an effect: more where its interval is narrow."""
    found = effect.interval
    narrow = found is not None and not found.is_point and found.high - found.low < SMALL
    return gain_digits(metric) + narrow


def effect_text(effect: Effect, metric: Metric) -> str:
    """As in `+0.51 (+0.16 … +0.85)`; empty where a run is missing."""
    return "" if effect.interval is None else gain_text(effect.interval, digits_of(effect, metric))


def p_text(effect: Effect) -> str:
    """Holm's p; of a comparison without a family, which is marked, its own; empty where there is none."""
    p = effect.p if effect.p_holm is None else effect.p_holm
    return "" if p is None else p_value(p)


def effects_table(effects: Sequence[Effect], metric_of: Callable[[Effect], Metric], seeds: Mapping[int, str]) -> Markup:
    """The table of effects, with a column of the paper's where it has any.

    `seeds`: every seed -> its name on the page.
    """
    rows = [effect_row(one, metric_of(one), seeds) for one in effects]
    width = len(HEAD) if any(row[-1] for row in rows) else len(HEAD) - 1
    return piece("effects", table=table(HEAD[:width], [row[:width] for row in rows], "effects"))


def effect_row(effect: Effect, metric: Metric, seeds: Mapping[int, str]) -> Cells:
    """A row of the table of effects."""
    digits, alone, comparison = digits_of(effect, metric), effect.by_seed, effect.comparison
    paper = "" if effect.paper is None else signed(effect.paper, digits)
    if comparison.band:
        paper = " … ".join(signed(end, digits) for end in comparison.band)
    notes = []
    if effect.pooled is not None:
        pooled = gain_text(effect.pooled, digits)
        over_groups = comparison.over == "groups"
        why = "the runs disagree: their own spread gives the interval; pooled" if over_groups else "over groups"
        notes.append(f"{why} {pooled}")
    if 0 < len(alone) < len(seeds):
        some = " and ".join(seeds[seed] for seed in alone)
        notes.append(f"of {some} alone" if len(alone) < 3 else f"of {len(alone)} seeds")
    if effect.at_equal_length is not None:
        notes.append(f"at equal length {gain_text(effect.at_equal_length, digits)}")
    each = ", ".join(f"{seeds[s]} {signed(v, digits)}" for s, v in alone.items()) if len(alone) > 1 else ""
    return (
        Cell(comparison.statement, label(comparison), "text"),
        metric.title,
        Cell(effect_text(effect, metric) or "not run", "; ".join(notes)),
        p_text(effect),
        Cell(each, "" if effect.p_seeds is None else f"Q: p {p_value(effect.p_seeds)}", "wraps left"),
        paper,
    )


def effect_records(effects: Sequence[Effect]) -> list[Json]:
    """Rows of comparisons.csv, to six digits; of a run that is missing, no effect."""
    seeds = sorted({seed for one in effects for seed in one.by_seed})
    return [
        {
            "name": one.comparison.name,
            "metric": one.metric,
            "terms": terms_text(one.comparison.terms),
            "family": one.comparison.family,
            **columns(one.interval, "effect", "low", "high"),
            "p": _rounded(one.p),
            "p_holm": _rounded(one.p_holm),
            "p_seeds": _rounded(one.p_seeds),
            **columns(one.pooled, "pooled", "pooled_low", "pooled_high"),
            **columns(one.at_equal_length, "equal_length", "equal_length_low", "equal_length_high"),
            "groups": one.groups or None,
            "paper": one.paper,
            **{f"seed_{seed}": _rounded(one.by_seed.get(seed)) for seed in seeds},
        }
        for one in effects
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None or value != value else round(value, 6)


Sensitivities = Sequence[tuple[str, Sequence[Effect]]]  # (What is changed, the effects with that change.)


def sensitivity_records(found: Sensitivities) -> list[Json]:
    """Rows of sensitivities.csv."""
    shown = ("name", "metric", "effect", "low", "high", "p", "p_holm", "p_seeds", "pooled", "pooled_low", "pooled_high")
    rows = [(title, row) for title, effects in found for row in effect_records(effects)]
    return [{"changed": title} | {column: row[column] for column in shown} for title, row in rows]


def sensitivities_table(effects: Sequence[Effect], found: Sensitivities, metrics: Mapping[str, Metric]) -> Markup:
    """A row an effect that some change has, a column a change; empty without any."""
    changed = [{(one.comparison.name, one.metric): one for one in own} for _, own in found]
    rows = []
    for effect in effects:
        own = [one.get((effect.comparison.name, effect.metric)) for one in changed]
        if any(own):
            metric = metrics[effect.metric]
            cells = (Cell(effect_text(one, metric), _note(one)) if one else Cell("–") for one in own)
            rows.append([Cell(label(effect.comparison), metric.title, "text"), *cells])
    head = [Cell(text, kind="left") for text in ("comparison", *(title for title, _ in found))]
    return table(head, rows, "effects") if rows else Markup("")


def _note(effect: Effect) -> str:
    p, disagree = p_text(effect), "the runs disagree" if effect.disagree else ""
    return "; ".join(filter(None, (p and f"p {p}", disagree)))


def answer_of(effects: Sequence[Effect], metrics: Mapping[str, Metric]) -> str:
    """The first comparison in one sentence with its numbers; empty while it has not been run."""
    first = [one for one in effects if one.comparison == effects[0].comparison and one.interval]
    if not first:
        return ""
    numbers = [
        f"{effect_text(one, metrics[one.metric])} {_unit(metrics[one.metric])}"
        + (f" (the paper: {signed(one.paper, 2)})" if one.paper is not None else "")
        for one in first
    ]
    comparison = first[0].comparison
    return f"“{comparison.statement}”: {terms_text(comparison.terms)} is {', '.join(numbers)}."


def _unit(metric: Metric) -> str:
    return f"{metric.unit} of {metric.title}" if metric.name == LOSS.name else metric.title

"""Comparisons of runs: an effect, its interval, p after Holm's correction, and each seed's effect.

A comparison is a contrast Σ coefficient · metric(run), most often one run less another. Its effect is positive where
more is better: a loss counts with the other sign. `over: groups` resamples meetings or documents, so that an interval
is about other texts for the models that were trained; `over: seeds` takes each seed's effect as one observation, by
Student's t.

Where each seed tests other groups, Cochran's Q says whether the seeds agree (Cochran, "The Combination of Estimates
from Different Experiments", Biometrics 1954). With effects e_s and standard errors σ_s,

    w_s = 1 / σ_s²,   ē = Σ w_s e_s / Σ w_s,   Q = Σ w_s (e_s − ē)²  ~  χ² with S − 1 degrees of freedom.

Where its p is under 0.05, effect and interval are those of the seeds' effects (random effects, Student's t), also at
equal length; the pooled effect is reported with them.
"""

import gc
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import yaml
from pydantic import Field, ValidationError
from scipy.stats import chi2, ttest_1samp
from statsmodels.stats.multitest import multipletests

from pipeline.errors import QuorumError
from pipeline.evaluation.equal_length import AtLength, at_equal_length
from pipeline.evaluation.intervals import Clusters, Interval, interval_of, mean_ratio, of_few, sign_flip, standard_error
from pipeline.workspace.record import FilePath, Json, Number, Record, first_problem
from pipeline.workspace.words import nearest

ALPHA = 0.05
MISSPELT = 0.87
"""From this similarity on (difflib's, 0 to 1), an unknown run is taken for a misspelt one: `fedselectkd-own` is not."""


class Comparison(Record):
    """A contrast of runs, fixed before the runs are tested.

    Attributes:
        name: by which tables and documents refer to it.
        statement: the paper's statement, or the experiment's question.
        terms: run -> its coefficient.
        effects: metric -> the paper's own effect in the metric's unit; null where the paper has none.
        over: what is resampled: groups of examples (meetings, documents), or seeds.
        family: Holm's correction runs over the comparisons of one family on one metric; none is corrected without one.
        band: of a statement that two runs are alike, the ends between which the paper has them.
        scale: the one scale that makes it; null: every scale.
    """

    name: str
    statement: str
    terms: dict[str, float] = Field(min_length=1)
    effects: dict[str, float | None] = Field(min_length=1)
    over: Literal["groups", "seeds"] = "groups"
    family: str = ""
    band: tuple[float, float] | None = Field(default=None, strict=False)
    scale: str | None = None


class Sensitivity(Record):
    """All comparisons over groups once more, with one thing changed.

    Attributes:
        title: what is changed, as the page has it.
        seeds: the seeds that count; null: all.
        weigh: what counts alike: clients, or examples.
        groups: a regular expression; what it matches at the start of a group's name is the group.
        replace: seed -> a file below the experiment's folder that has other results of that seed.
    """

    title: str
    seeds: list[int] | None = None
    weigh: Literal["clients", "examples"] = "clients"
    groups: str | None = None
    replace: dict[Number, FilePath] = Field(default_factory=dict)


class Comparisons(Record):
    """comparisons.yaml: an experiment's question, and the contrasts of its runs.

    Attributes:
        deviations: what was done differently from the plan.
        settings: setting -> its skew in the paper; runs on one that is skewed differently are not compared.
    """

    question: str
    comparisons: list[Comparison] = Field(default_factory=list)
    sensitivities: list[Sensitivity] = Field(default_factory=list)
    deviations: str = ""
    settings: dict[str, Json] = Field(default_factory=dict)


Contrast = Callable[[Mapping[str, float], str, int | None], dict[str, Clusters] | None]
"""(terms, metric, a seed, or None for all that the runs share) -> client -> the contrast by group.

Positive where it is better; None where a run or its metric is missing.
"""
Lengths = Callable[[Mapping[str, float], str, int | None], dict[str, AtLength] | None]
"""The same -> client -> its examples' contrasts and their contrasts of log lengths; None without texts."""


@dataclass(frozen=True)
class Effect:
    """A comparison on one metric.

    Attributes:
        interval: the effect with its 95% interval; None where a run is missing.
        p, p_holm: two-sided, and after Holm's correction over the family; None without a family or an interval.
        by_seed: seed -> its own effect, of the seeds at which all runs have results.
        pooled: the effect over the groups of all seeds, where the seeds disagree, or are what is resampled.
        p_seeds: of Cochran's Q; None where seeds share groups, or there is one seed.
        at_equal_length: the effect at equal length, of a metric of texts.
        groups: how many groups it rests on.
    """

    comparison: Comparison
    metric: str
    interval: Interval | None = None
    p: float | None = None
    p_holm: float | None = None
    by_seed: Mapping[int, float] = field(default_factory=dict)
    pooled: Interval | None = None
    p_seeds: float | None = None
    at_equal_length: Interval | None = None
    groups: int = 0

    @property
    def paper(self) -> float | None:
        """The paper's own effect; None where it has none."""
        return self.comparison.effects[self.metric]

    @property
    def disagree(self) -> bool:
        """Whether the seeds differ by more than their groups explain."""
        return self.p_seeds is not None and self.p_seeds < ALPHA


def read_comparisons(path: Path) -> Comparisons:
    """Parse comparisons.yaml. Raises QuorumError if the file is missing or no YAML, or a key is wrong."""
    try:
        return Comparisons.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; restore it from git") from None
    except yaml.YAMLError as error:
        raise QuorumError(f"{path}: not YAML: {' '.join(str(error).split())}; correct it") from None
    except ValidationError as error:
        raise QuorumError(f"{path}: {first_problem(error)}; correct it") from None


def unknown_runs(path: Path, comparisons: Sequence[Comparison], known: Collection[str]) -> list[str]:
    """List the runs of comparisons, in the file `path`, that are not among the planned ones.

    Raises QuorumError if a run is spelt almost like a planned one.
    """
    named = {run: one.name for one in comparisons for run in one.terms if run not in known}
    for run, name in named.items():
        if near := nearest(run, known, MISSPELT):
            wrong = f"{name}.terms.{run}: no such run in params.yaml; did you mean {near}?"
            raise QuorumError(f"{path}: {wrong} Correct the name, or remove the comparison")
    return list(named)


def on_known_metrics(
    path: Path, comparisons: Sequence[Comparison], metrics: Mapping[str, Collection[str]]
) -> list[Comparison]:
    """The comparisons, in the file `path`, on the metrics that their runs have: other tasks have others.

    `metrics`: run -> its metrics; other runs may have any. Raises QuorumError if a metric is spelt almost like one that
    the run has.
    """
    found = []
    for one in comparisons:
        effects = dict(one.effects)
        for run, metric in product(one.terms, one.effects):
            known = metrics.get(run, one.effects)
            if metric not in known:
                effects.pop(metric, None)
                if near := nearest(metric, known, 0.6):
                    problem = f"{path}: {one.name}.effects.{metric}: no such metric of {run}"
                    raise QuorumError(f"{problem}; did you mean {near}? Correct the name")
        found.append(one.model_copy(update={"effects": effects}))
    return found


def compare(
    comparisons: Sequence[Comparison],
    contrast: Contrast,
    seeds: Sequence[int],
    samples: int,
    lengths: Lengths | None = None,
) -> list[Effect]:
    """The effects of all comparisons on all their metrics, in order.

    Args:
        seeds: all at which runs were made.
        samples: random signs behind each interval and p.
        lengths: where texts are scored.
    """
    pairs = [(one, metric) for one in comparisons for metric in one.effects]
    return with_holm([_effect(*pair, contrast, seeds, samples, lengths) for pair in pairs])


def _effect(
    one: Comparison, metric: str, contrast: Contrast, seeds: Sequence[int], samples: int, lengths: Lengths | None
) -> Effect:
    by_seed = {seed: own for seed in seeds if (own := contrast(one.terms, metric, seed))}
    over_seeds = _over_seeds(one, metric, {seed: mean_ratio(clients) for seed, clients in by_seed.items()})
    clients = contrast(one.terms, metric, None)
    if one.over == "seeds":
        return replace(over_seeds, pooled=interval_of(clients, samples) if clients else None)
    if clients is None:
        return Effect(one, metric)
    groups = len({name for own in clients.values() for name in own.names})
    effect = replace(over_seeds, p_seeds=cochran(by_seed), groups=groups)
    pooled = interval_of(clients, samples)

    def equal(seed: int | None) -> Interval | None:
        texts = lengths(one.terms, metric, seed) if lengths else None
        return at_equal_length(texts) if texts else None

    if effect.disagree:
        values = [found.value for seed in by_seed if (found := equal(seed))]
        return replace(effect, pooled=pooled, at_equal_length=of_few(values) if values else None)
    return replace(effect, interval=pooled, p=sign_flip(clients, samples), at_equal_length=equal(None))


def _over_seeds(one: Comparison, metric: str, values: Mapping[int, float]) -> Effect:
    """The mean over seeds, with its interval and p by t."""
    own = [*values.values()]
    p = float(ttest_1samp(own, 0.0).pvalue) if len(set(own)) > 1 else None
    return Effect(one, metric, of_few(own) if own else None, p, by_seed=values)


def cochran(by_seed: Mapping[int, Mapping[str, Clusters]]) -> float | None:
    """The p of Cochran's Q over seeds that test different groups; None where they share some, or there is one seed."""
    names = [{name for client in own.values() for name in client.names} for own in by_seed.values()]
    if len(names) < 2 or sum(map(len, names)) > len(set().union(*names)):
        return None
    effects = np.array([mean_ratio(own) for own in by_seed.values()])
    errors = np.array([standard_error(own) for own in by_seed.values()])
    if not errors.all():
        return None
    weights = errors**-2
    q = float(weights @ (effects - weights @ effects / weights.sum()) ** 2)
    return float(chi2.sf(q, len(effects) - 1))


def with_holm(effects: Sequence[Effect]) -> list[Effect]:
    """Holm's adjusted p within each family and metric.

    A comparison that was not run counts in its family: fewer results are not corrected less.
    """
    found = list(effects)
    families: dict[tuple[str, str], list[int]] = {}
    for place, one in enumerate(found):
        if one.comparison.family:
            families.setdefault((one.comparison.family, one.metric), []).append(place)
    gc.freeze()  # multipletests collects garbage at each call, and would look through all that was imported
    for places in families.values():
        p_values = [1.0 if found[i].p is None else found[i].p for i in places]
        for i, p in zip(places, multipletests(p_values, method="holm")[1], strict=True):
            found[i] = replace(found[i], p_holm=None if found[i].p is None else float(p))
    return found

"""Shares of wins, ties and losses in human ratings, with intervals, and Fleiss' kappa between raters.

Fleiss, "Measuring Nominal Scale Agreement Among Many Raters", Psychological Bulletin 1971.
"""

import pandas as pd
from statsmodels.stats.inter_rater import fleiss_kappa

from pipeline.evaluation.intervals import Clusters, Interval, interval_of


def shares(ratings: pd.DataFrame, samples: int) -> dict[str, Interval]:
    """Outcome -> its share of an example's ratings, averaged over examples, then over clients.

    Args:
        ratings: rows of the table of ratings, against one method.
        samples: random signs of whole meetings, for the intervals.
    """
    by_example = [ratings[column] for column in ("client", "meeting", "example")]
    found = pd.crosstab(by_example, ratings["outcome"], normalize="index")
    clusters: dict[str, dict[str, Clusters]] = {"win": {}, "tie": {}, "loss": {}}
    for client, own in found.reindex(columns=list(clusters), fill_value=0.0).groupby(level="client"):
        for outcome, one in clusters.items():
            meetings = list(own.index.get_level_values("meeting"))
            one[str(client)] = Clusters.of(meetings, list(own[outcome]), [1.0] * len(own))
    return {outcome: interval_of(one, samples) for outcome, one in clusters.items()}


def kappa(ratings: pd.DataFrame) -> tuple[float | None, int]:
    """Fleiss' kappa, and over how many subjects (pairs and criteria): those with the most frequent number of raters.

    None where no subject has two raters, and where all ratings are the same.
    """
    counts = pd.crosstab([ratings["item"], ratings["criterion"]], ratings["outcome"])
    raters = counts.sum(axis=1)
    counted = counts[raters == raters[raters > 1].mode().max()]
    several = counted.any().sum() > 1  # else kappa is 0 / 0
    return float(fleiss_kappa(counted)) if several else None, len(counted)

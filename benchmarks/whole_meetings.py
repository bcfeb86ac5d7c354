"""General queries on QMSum's validation meetings: each meeting in parts, and what fits of it.

    python -m benchmarks.whole_meetings --run fedselectkd

after `make repro`, which ingests QMSum and trains adapters. The adapter of a meeting's domain writes both summaries.
work/whole_meetings.csv has a row for each query and way, reports/benchmarks/whole_meetings.csv the means over domains,
and the difference with its interval over meetings.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from pipeline.corpora.conversation import Turn
from pipeline.corpora.qmsum import DOMAINS, parse_meeting
from pipeline.corpora.text import clean
from pipeline.evaluation.intervals import Clusters, columns, interval_of, mean_ratio
from pipeline.plan.checks import read_params
from pipeline.runs.summarize import Summarizer, row_of, summarizer_of
from pipeline.tasks.rouge import AVERAGED, rouge_of
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import progress
from pipeline.workspace.quiet import silence
from pipeline.workspace.tables import write_table

WAYS = ("one", "parts")
METRICS = ("average", *AVERAGED, "words", "reference_words", "parts", "read")
TABLE, MEANS = layout.work() / "whole_meetings.csv", layout.REPORTS / "benchmarks" / "whole_meetings.csv"


def summaries(summarizer: Summarizer, meeting: list[Turn], query: str) -> Iterator[tuple[str, int, float]]:
    """By each of `WAYS`: the summary, the number of parts, and the share of the meeting's tokens that was read."""
    window, one = summarizer.window(meeting, query), summarizer.of_what_fits(meeting, query)
    read = window.transcript_read / window.transcript_tokens
    yield one, 1, read
    if read == 1:
        yield one, 1, read
    else:
        parts = [part for _, part in summarizer.parts(meeting, query)]
        lost = sum(part.transcript_tokens - part.transcript_read for part in parts)
        yield summarizer.of_parts(meeting, query), len(parts), 1 - lost / window.transcript_tokens


def compared(run: str) -> list[dict[str, Any]]:
    """A row for each general query and way."""
    files = [(domain, path) for domain in DOMAINS for path in sorted((layout.raw("qmsum") / domain / "val").glob("*"))]
    rows = []
    with progress("whole meetings", len(files)) as advance:
        for domain, path in files:
            merge = read_params().queries_of(domain).merge
            summarizer = summarizer_of(row_of(run, domain), domain, path.stem, merge)
            meeting = [Turn(turn.speaker, clean(turn.text)) for turn in parse_meeting(path).turns]
            for number, query in enumerate(read_json(path)["general_query_list"], 1):
                found = zip(WAYS, summaries(summarizer, meeting, query["query"]), strict=True)
                for way, (text, parts, read) in found:
                    (scores,) = rouge_of([query["answer"]], [text], use_stemmer=False)
                    row = {"domain": domain, "meeting": path.stem, "query": number, "way": way}
                    row |= {name: round(scores[name], 4) for name in ("average", *AVERAGED)}
                    row |= {"words": len(text.split()), "reference_words": len(query["answer"].split())}
                    rows.append(row | {"parts": parts, "read": round(read, 4)})
            advance(1)
    return rows


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metric -> the mean over domains of each way, and the difference, with its interval over meetings."""
    found = []
    for metric in METRICS:
        clusters: dict[str, dict[str, Clusters]] = {"one": {}, "parts": {}, "gain": {}}
        for domain in dict.fromkeys(row["domain"] for row in rows):
            own = [[row for row in rows if (row["domain"], row["way"]) == (domain, way)] for way in WAYS]
            one, parts = ([row[metric] for row in side] for side in own)
            values = {"one": one, "parts": parts, "gain": [b - a for a, b in zip(one, parts, strict=True)]}
            meetings = [row["meeting"] for row in own[0]]
            for name, numbers in values.items():
                clusters[name][domain] = Clusters.of(meetings, numbers, [1] * len(meetings))
        sides = {way: round(mean_ratio(clusters[way]), 6) for way in WAYS}
        gain: dict[str, Any] = columns(interval_of(clusters["gain"], 10_000), "gain", "low", "high")
        found.append({"metric": metric} | sides | gain)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="fedselectkd", help="whose adapters summarize; its first seed")
    silence()
    rows = compared(parser.parse_args().run)
    write_table(TABLE, rows)
    write_table(MEANS, means(rows))


if __name__ == "__main__":
    main()

"""Replace speakers' names by roles, consistently in speakers, turns and summaries of a meeting.

Speakers become `Speaker 1`, `Speaker 2`, in the order in which they first speak. Full names and each part of them are
replaced where they are complete words in the same case. A part that two speakers share becomes `a speaker`. This is no
anonymization: names of people who do not speak stay, and so do misspelt ones. `missed` lists what a tagger takes for a
person, and speakers' names in another case. `Unknown` stays.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from pipeline.corpora.conversation import Turn
from pipeline.corpora.qmsum import Meeting
from pipeline.corpora.speakers import UNKNOWN
from pipeline.corpora.tagging import spacy_without

SHARED, SHORTEST = "a speaker", 3
"""The role of a part of two names; and the fewest letters of a part, so that words such as `De` are not replaced."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]{2}")
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese or Korean, in which words or particles touch a name."""


def roles_of(speakers: Iterable[str]) -> dict[str, str]:
    """Name, or part of one -> its role.

    A part that two names share becomes `a speaker`; a short one stays.

    >>> roles_of(["Ann Lee", "Li Lee"])
    {'Ann Lee': 'Speaker 1', 'Li Lee': 'Speaker 2', 'Ann': 'Speaker 1', 'Lee': 'a speaker'}
    """
    names = [name for name in dict.fromkeys(speakers) if name != UNKNOWN]
    found = {name: f"Speaker {number}" for number, name in enumerate(names, 1)}
    parts: dict[str, str] = {}
    for name in names:
        for part in re.findall(r"[^\W\d_][\w'’-]+", name):
            if len(part) >= SHORTEST and part not in found:
                known = parts.get(part)
                parts[part] = found[name] if known in (None, found[name]) else SHARED
    return found | parts


def with_roles(meeting: Meeting) -> tuple[Meeting, list[str]]:
    """(The meeting with roles instead of names, texts that may still be names)."""
    roles = roles_of(turn.speaker for turn in meeting.turns)
    pattern = _any_of(roles)

    def replaced(text: str) -> str:
        return pattern.sub(lambda match: roles[match.group(1)], text)

    turns = tuple(Turn(roles.get(turn.speaker, turn.speaker), replaced(turn.text)) for turn in meeting.turns)
    queries = tuple(
        one.model_copy(update={"query": replaced(one.query), "answer": replaced(one.answer)}) for one in meeting.queries
    )
    changed = replace(meeting, turns=turns, queries=queries)
    return changed, missed(changed, roles)


def missed(meeting: Meeting, names: Iterable[str]) -> list[str]:
    """Persons that a tagger finds in the turns and queries, and speakers' names in another case."""
    texts = [turn.text for turn in meeting.turns]
    texts += [part for one in meeting.queries for part in (one.query, one.answer)]
    tagger = spacy_without("parser", "tagger", "lemmatizer", "attribute_ruler")
    found = {one.text for text in texts for one in tagger(text).ents if one.label_ == "PERSON"}
    persons = {name for name in found if "Speaker" not in name and SHARED not in name}
    others = {match.group(1) for text in texts for match in _any_of(names, re.IGNORECASE).finditer(text)}
    return sorted(persons | others)


def _any_of(names: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    """Matches a name that is complete words; the longest first, so that `Ann Lee` is replaced before `Ann`."""
    longest = sorted(names, key=len, reverse=True)
    alone = (re.escape(name) if _UNSPACED.match(name) else rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest)
    return re.compile(f"({'|'.join(alone) or '(?!)'})", flags)  # of no names, one that matches nothing

"""Transcripts as text or Word documents -> what is said.

| the speaker is | as in |
|---|---|
| before a colon | `Ann Lee: words`, `[00:01] Ann: words` (Meet, whisperX) |
| on a line with a time, above the words | `Ann Lee   0:03` (Teams, Otter), `[Ann Lee] 10:15:02` (Zoom), `Ann 10:15 AM` |
| below a line of two times | `0:0:0.0 --> 0:0:3.40`, `Ann`, words (Teams, earlier) |

A line without a speaker continues the turn. Lines before the first speaker are the file's header, if they end no
sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pipeline.corpora.cues import is_cues, read_cues
from pipeline.corpora.said import Kind, Said
from pipeline.corpora.speakers import (
    LONGEST_NAME,
    STAMP,
    TIMES,
    UNKNOWN,
    Label,
    counted,
    heading_of,
    is_name,
    is_speaker,
    label_of,
    names_of,
    speaker_of,
    untimed,
)

_TIMES = re.compile(rf"{TIMES}|[-–—_=*#~]+")
"""A line of times, or a rule."""
_EVENT = re.compile(
    r"(?P<name>[^:：]{1,60}?) (?:(?:has )?(?:started|stopped|paused|resumed) (?:the )?(?:transcription|recording)"
    r"|hat die (?:Transkription|Aufzeichnung) (?:gestartet|beendet|angehalten)"
    r"|a (?:démarré|commencé|lancé|arrêté) (?:la transcription|l['’]enregistrement)"
    r"|(?:ha )?(?:inici|comenz|detuv|deten)\w{1,5} la (?:transcripción|grabación))\.?",
    re.IGNORECASE,
)
"""Teams: `Ann Lee started transcription`."""
_REMARK = re.compile(
    r"(?:The )?(?:meeting|transcription|transcript|recording) (?:started|stopped|ended)(?: (?:at|on|after|by) .{1,60})?"
    r"|This (?:editable )?transcript was (?:computer|automatically|AI)[ -]generated.{0,200}"
    r"|Transcribed (?:by|with) (?:https?://|Otter).{0,60}",
    re.IGNORECASE,
)
"""Meet's and Otter's remarks."""
_ENDS_SENTENCE = re.compile(r"[.?!…。？！][\"'”’»)]*$")
_TWO_TIMES = re.compile(rf"\[?{STAMP}\s*+-->\s*+{STAMP}\]?")


def read_paragraphs(lines: Sequence[str]) -> tuple[list[Said], dict[int, Kind]]:
    """(What is said, kinds of the lines without words)."""
    if is_cues(lines) and (found := read_cues(lines)):
        return found
    kinds = _without_words(lines)
    texts = {place: line.strip() for place, line in enumerate(lines) if place not in kinds}
    labels = {place: label for place, text in texts.items() if (label := label_of(text))}
    counts = counted(labels.values())
    names = names_of(counts)
    labels = {place: label for place, label in labels.items() if is_speaker(label, names, counts)}
    headings = _headings(texts, labels) | _below_times(lines, texts, labels)
    kinds |= dict.fromkeys(headings, "layout")
    first = min([*headings, *labels], default=-1)
    is_tool = first in labels and labels[first].numbered
    said: list[Said] = []
    speaker, new, is_each_named, is_headed = "", True, False, False
    for place, line in enumerate(map(str.strip, lines)):
        label = None if is_headed else labels.get(place)
        if place in headings:
            speaker, new, is_each_named, is_headed = headings[place], True, False, True
        elif _TWO_TIMES.fullmatch(line):
            speaker, new = UNKNOWN, True
        elif place in kinds:
            new |= speaker == UNKNOWN
        elif label:
            speaker, is_each_named = label.name, label.numbered
            said.append(Said(place, speaker, label.words, new=True))
            new = False
        elif not speaker and place < first and not is_tool and not _ENDS_SENTENCE.search(line[-9:]):
            kinds[place] = "header"
        else:
            if not speaker or is_each_named:
                speaker, new = UNKNOWN, True
            said.append(Said(place, speaker, untimed(line), new))
            new = speaker == UNKNOWN and bool(_ENDS_SENTENCE.search(line[-9:]))
    return said, kinds


def _without_words(lines: Sequence[str]) -> dict[int, Kind]:
    """Empty lines, times and rules, and remarks of tools."""
    kinds: dict[int, Kind] = {}
    for place, line in enumerate(map(str.strip, lines)):
        if not line or (len(line) <= 2 * LONGEST_NAME and _TIMES.fullmatch(line)):
            kinds[place] = "layout"
        elif event := _EVENT.fullmatch(line):
            if names_of({event["name"]: 1}) and event["name"] != "I":
                kinds[place] = "note"
        elif _REMARK.fullmatch(line):
            kinds[place] = "note"
    return kinds


def _headings(texts: Mapping[int, str], labels: Mapping[int, Label]) -> dict[int, str]:
    """Place -> speaker of the lines with a name and a time, if the file names speakers so.

    Times that are in brackets or after a gap are sure; without such, the commonest form counts, so that `Monday 12:30`
    within the words is none.
    """
    found = {place: heading for place, text in texts.items() if (heading := heading_of(text))}
    names = names_of(Counter(heading.name for heading in found.values()))
    found = {place: heading for place, heading in found.items() if heading.name in names}
    sure = {heading.name for heading in found.values() if heading.sure}
    forms = Counter(heading.form for heading in found.values())
    often = max(forms.values(), default=0)
    found = {place: one for place, one in found.items() if (one.name in sure if sure else forms[one.form] == often)}
    is_headed = len(found) >= len(labels) or (len(found) > 1 and min(found) < min(labels))
    return {place: one.name for place, one in found.items()} if is_headed else {}


def _below_times(lines: Sequence[str], texts: Mapping[int, str], labels: Mapping[int, Label]) -> dict[int, str]:
    """Place -> speaker of the lines between two times and words."""
    filled = [place for place, line in enumerate(lines) if line.strip()]
    found = {
        place: texts[place]
        for above, place, below in zip(filled, filled[1:], filled[2:], strict=False)
        if _TWO_TIMES.fullmatch(lines[above].strip()) and place in texts and below in texts
    }
    names = names_of(Counter(name for name in found.values() if is_name(name) and not label_of(name)))
    return {place: speaker_of(name) for place, name in found.items() if name in names}

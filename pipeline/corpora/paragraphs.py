"""Transcripts as text or Word documents -> words and speakers.

| the speaker is | as in |
|---|---|
| before a colon | `Ann Lee: words`, `[00:01] Ann: words` (Meet, whisperX) |
| on a line with a time, above the words | `Ann Lee   0:03` (Teams, Otter), `[Ann Lee] 10:15:02` (Zoom) |
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
    LONGEST_LINE,
    STAMP,
    TIMES,
    UNKNOWN,
    Label,
    heading_of,
    is_name,
    label_of,
    labels_of,
    may_be_name,
    names_of,
    speaker_of,
    untimed,
)

_TIMES = re.compile(rf"{TIMES}|[-–—_=*#~]*+")
"""An empty line, a line of times, or a rule."""
_TWO_TIMES = re.compile(rf"\[?{STAMP}\s*+-->\s*+{STAMP}\]?")
_EVENT = re.compile(
    r"([^:：]{1,60}?) (?:(?:has )?(?:started|stopped|paused|resumed) (?:the )?(?:transcription|recording)"
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
"""Of Meet and Otter."""
_ENDS_SENTENCE = re.compile(r"[.?!…。？！][\"'”’»)]*$")


def read_paragraphs(lines: Sequence[str]) -> tuple[list[Said], dict[int, Kind]]:
    """(Words with speakers, kinds of the lines without words)."""
    if is_cues(lines) and (found := read_cues(lines)):
        return found
    stripped = [line.strip() for line in lines]
    kinds = {place: kind for place, line in enumerate(stripped) if (kind := _kind_of(line))}
    texts = {place: line for place, line in enumerate(stripped) if place not in kinds}
    labels = labels_of(texts)
    headings = _headings(texts, labels) | _below_times(stripped, texts)
    first = min([*headings, *labels], default=-1)
    has_header = first not in labels or not labels[first].is_each_named
    said: list[Said] = []
    speaker, new, is_each_named, is_headed = "", True, False, False
    for place, line in enumerate(stripped):
        ends = bool(_ENDS_SENTENCE.search(line[-9:]))
        if place in headings:
            speaker, new, is_each_named, is_headed = headings[place], True, False, True
            kinds[place] = "layout"
        elif place in kinds:
            speaker = UNKNOWN if _TWO_TIMES.fullmatch(line) else speaker
            new |= speaker == UNKNOWN
        elif place in labels and not is_headed:
            speaker, words, _, is_each_named = labels[place]
            said.append(Said(place, speaker, words, new=True))
            new = False
        elif not speaker and place < first and has_header and not ends:
            kinds[place] = "header"
        else:
            if not speaker or is_each_named:
                speaker, new = UNKNOWN, True
            said.append(Said(place, speaker, untimed(line), new))
            new = speaker == UNKNOWN and ends
    return said, kinds


def _kind_of(line: str) -> Kind | None:
    """The kind of a line that has no words in any transcript."""
    if len(line) > LONGEST_LINE:
        return None
    event = _EVENT.fullmatch(line)
    is_event = event and event[1] != "I" and names_of({event[1]: 1})
    return "layout" if _TIMES.fullmatch(line) else "note" if is_event or _REMARK.fullmatch(line) else None


def _headings(texts: Mapping[int, str], labels: Mapping[int, Label]) -> dict[int, str]:
    """Place -> speaker of the lines with a name and a time, if the file names speakers so.

    Times that are in brackets or after a gap are sure; without such, the commonest form counts, so that `Monday 12:30`
    within the words is none.
    """
    found = {place: heading for place, text in texts.items() if (heading := heading_of(text))}
    names = names_of(Counter(name for name, _, _ in found.values()))
    names |= {name for name, _, is_sure in found.values() if is_sure and may_be_name(name)}
    sure = {name for name, _, is_sure in found.values() if is_sure and name in names}
    forms = Counter(form for name, form, _ in found.values() if name in names)
    often = max(forms.values(), default=0)
    headings = {
        place: name
        for place, (name, form, _) in found.items()
        if (name in sure if sure else name in names and forms[form] == often)
    }
    is_headed = len(headings) >= len(labels) or (len(headings) > 1 and min(headings) < min(labels))
    return headings if is_headed else {}


def _below_times(lines: Sequence[str], texts: Mapping[int, str]) -> dict[int, str]:
    """Place -> speaker of the lines between two times and words."""
    filled = [place for place, line in enumerate(lines) if line]
    found = {
        place: texts[place]
        for above, place, below in zip(filled, filled[1:], filled[2:], strict=False)
        if _TWO_TIMES.fullmatch(lines[above]) and place in texts and below in texts
    }
    names = names_of(Counter(name for name in found.values() if is_name(name) and not label_of(name)))
    return {place: speaker_of(name) for place, name in found.items() if name in names}

"""Subtitles -> what is said: WebVTT, SubRip, and YouTube's `.sbv`. A cue is a line of times, and lines of words.

All words below a line of times are its cue's, also after an empty line, and where they have an arrow: `webvtt-py`
drops both. The speaker is in a voice tag (Teams), before a colon (Zoom), or in the line above the times (Webex). A cue
that names none continues the turn, except where the tool names the speaker of every cue.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from pipeline.corpora.said import Kind, Said
from pipeline.corpora.speakers import LONGEST_NAME, STAMP, UNKNOWN, counted, is_speaker, label_of, names_of, speaker_of
from pipeline.corpora.text import visible

_TIMES = re.compile(rf"\s*+{STAMP}(?:\s*+-[ -]>\s*+|,){STAMP}(?:\s++[\w-]{{1,20}}:\S++)*+\s*+")
_DAMAGED = re.compile(rf"\s*+(?:{STAMP}\s*+-->\s*+(?:{STAMP}\s++)?\S{{0,16}}|\S{{0,16}}\s*+-->\s*+{STAMP})\s*+")
_NOTE = re.compile(r"NOTE(?:\s|$)|(?:STYLE|REGION)\s*+$")
_NAMING = re.compile(rf'(?:\d++\s++)?(?P<quote>"?)(?P<name>[^"]{{1,{LONGEST_NAME}}})(?P=quote)(?:\s*+\(\d++\))?')
"""Webex: `12 "Ann Lee" (2048)`."""
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?(?:\s++([^<>]*+))?>")
_TAG = re.compile(
    r"</?(?:c|i|b|u|s|v|ruby|rt|lang|font)(?:[.\s][^<>]*+)?>|<\d[\d:.]*+>|\{\\[^{}]*+\}|\[br\]", re.IGNORECASE
)
r"""A tag of WebVTT or SubRip, a time within a cue, `{\an8}`; other text between < and > is words."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,10});")


@dataclass
class _Cue:
    """A cue's lines, each with its place in the file, and the line above its times."""

    identifier: str
    lines: list[tuple[int, str]] = field(default_factory=list)


def is_cues(lines: Sequence[str]) -> bool:
    """Whether a text is subtitles, whatever its file's name: it begins as they do, or has numbers above times."""
    texts = [line for line in map(str.strip, lines) if line]
    numbered = (above.isdecimal() and _TIMES.fullmatch(line) for above, line in pairwise(texts))
    is_sbv = bool(texts) and "-" not in texts[0] and _TIMES.fullmatch(texts[0])
    return bool(texts) and (texts[0].startswith("WEBVTT") or bool(is_sbv) or any(numbered))


def read_cues(lines: Sequence[str]) -> tuple[list[Said], dict[int, Kind]] | None:
    """(What is said, kinds of the lines without words), or None if no line has a cue's times."""
    kinds: dict[int, Kind] = {}
    cues = _cues(lines, kinds)
    if not cues and not is_cues(lines):
        return None
    again = Counter(cue.identifier for cue in cues)
    names = {
        key: match["name"]
        for key in again
        if (match := _NAMING.fullmatch(key)) and match["name"].upper() != match["name"].lower()
    }
    names = {key: speaker_of(name) for key, name in names.items() if '"' in key or again[key] > 1}
    parts = [list(_parts(cue, names.get(cue.identifier), kinds)) for cue in cues]
    return _unrolled(_said(parts), kinds), kinds


def _cues(lines: Sequence[str], kinds: dict[int, Kind]) -> list[_Cue]:
    """The cues; the kinds of other lines are added to `kinds`."""
    cues: list[_Cue] = []
    times = [bool(_TIMES.fullmatch(line) or _DAMAGED.fullmatch(line)) for line in lines]
    identifier, in_note, after_empty = "", False, True
    for place, (line, is_above) in enumerate(zip(lines, [*times[1:], False], strict=False)):
        text = line.strip()
        if times[place]:
            cues.append(_Cue(identifier))
            kinds[place] = "layout" if _TIMES.fullmatch(line) else "unreadable"
            identifier, in_note = "", False
        elif not text:
            kinds[place] = "layout"
        elif is_above and (after_empty or text.isdecimal()):
            identifier = text
            kinds[place] = "layout"
        elif in_note or (after_empty and _NOTE.match(line)):
            in_note = True
            kinds[place] = "note"
        elif not cues:
            kinds[place] = "header"
        else:
            cues[-1].lines.append((place, line))
        after_empty = not text
    return cues


def _parts(cue: _Cue, voice: str | None, kinds: dict[int, Kind]) -> Iterator[tuple[int, str | None, str]]:
    """(Place, speaker if a tag or the identifier names one, words) of each voice of each line.

    A voice's words may follow its closing tag, as in `<v Reader></v>In the beginning`.
    """
    for place, line in cue.lines:
        texts = _VOICE.split(line)  # words, then a name and words for each voice
        for number, text in enumerate(texts):
            if number % 2:
                voice = speaker_of(_plain(text or ""))
            elif words := _plain(text):
                yield place, voice, words
        if not any(map(_plain, texts[::2])):
            kinds[place] = "layout"


def _plain(text: str) -> str:
    """Words without tags; `&amp;` is `&`."""
    return visible(_ENTITY.sub(lambda match: html.unescape(match.group()), _TAG.sub("", text))).strip()


def _said(cues: Sequence[Sequence[tuple[int, str | None, str]]]) -> list[list[Said]]:
    """What is said in each cue. Labels before words name speakers where no tag does."""
    labels = [[label_of(words) if voice is None else None for _, voice, words in cue] for cue in cues]
    found = counted(label for cue in labels for label in cue)
    names = names_of(found, {voice for cue in cues for _, voice, _ in cue if voice is not None})
    said: list[list[Said]] = []
    speaker, is_each_named = "", False
    for cue, cue_labels in zip(cues, labels, strict=True):
        said.append([])
        for (place, voice, words), label in zip(cue, cue_labels, strict=True):
            begins = not said[-1]
            if voice is not None:
                speaker, is_each_named = voice, True
            elif label is not None and is_speaker(label, names, found):
                speaker, words, is_each_named = label.name, label.words, label.numbered
            elif not speaker or (begins and is_each_named):
                speaker = UNKNOWN
            said[-1].append(Said(place, speaker, words, new=begins and speaker == UNKNOWN))
    return said


def _unrolled(cues: Sequence[Sequence[Said]], kinds: dict[int, Kind]) -> list[Said]:
    """What is said once, where cues roll: most begin with words with which the one before ends, and some go on."""
    spoken = [cue for cue in cues if cue]
    words = [[(one.speaker, word) for one in cue for word in one.words.split()] for cue in spoken]
    overlaps = [0, *(_overlap(before, after) for before, after in pairwise(words))]
    rolls = any(0 < overlap < len(cue) for overlap, cue in zip(overlaps, words, strict=True))
    if not rolls or 2 * sum(map(bool, overlaps)) < len(overlaps) - 1:
        return [one for cue in spoken for one in cue]
    said = []
    for cue, overlap in zip(spoken, overlaps, strict=True):
        left = overlap
        for one in cue:
            texts = one.words.split()
            if texts[left:] or not texts:
                said.append(Said(one.place, one.speaker, " ".join(texts[left:]), one.new or cue[0].new and left > 0))
            else:
                kinds.setdefault(one.place, "repeated")
            left = max(left - len(texts), 0)
    return said


def _overlap(before: Sequence[object], after: Sequence[object]) -> int:
    """The longest beginning of a list that ends the other one, in time that is linear in their lengths.

    >>> _overlap("abab", "abac"), _overlap("ab", "cd")
    (2, 0)
    """
    joined = [*after, None, *before[-len(after) :]]
    borders = [0] * len(joined)
    for place in range(1, len(joined)):
        border = borders[place - 1]
        while border and joined[place] != joined[border]:
            border = borders[border - 1]
        borders[place] = border + (joined[place] == joined[border])
    return borders[-1]

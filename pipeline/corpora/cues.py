"""Subtitles -> words and speakers: WebVTT, SubRip, and YouTube's `.sbv`. A cue is a line of times, and lines of words.

All words below a line of times are its cue's, also after an empty line, and where they have an arrow: `webvtt-py`
drops both. The speaker is in a voice tag (Teams), before a colon (Zoom), or in the line above the times (Webex). A cue
that names none continues the turn, except where the tool names the speaker of every cue.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pipeline.corpora.said import Kind, Said
from pipeline.corpora.speakers import LONGEST_NAME, STAMP, UNKNOWN, labels_of, speaker_of
from pipeline.corpora.text import visible

_TIMES = re.compile(rf"\s*+{STAMP}(?:\s*+-[ -]>\s*+|,){STAMP}(?:\s++[\w-]{{1,20}}:\S++)*+\s*+")
_DAMAGED = re.compile(rf"\s*+(?:{STAMP}\s*+-->\s*+(?:{STAMP}\s++)?\S{{0,16}}|\S{{0,16}}\s*+-->\s*+{STAMP})\s*+")
_NOTE = re.compile(r"NOTE(?:\s|$)|(?:STYLE|REGION)\s*+$")
_NAMING = re.compile(rf'(?:\d++\s++)?("?)(?P<name>[^"]{{1,{LONGEST_NAME}}})\1(?:\s*+\(\d++\))?')
"""Webex: `12 "Ann Lee" (2048)`."""
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?(?:\s++([^<>]*+))?>")
_TAG = re.compile(
    r"</?(?:c|i|b|u|s|v|ruby|rt|lang|font)(?:[.\s][^<>]*+)?>|<\d[\d:.]*+>|\{\\[^{}]*+\}|\[br\]", re.IGNORECASE
)
r"""A tag of WebVTT or SubRip, a time within a cue, `{\an8}`; other text between < and > is words."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,10});")
_LONGEST_OVERLAP = 200
Part = tuple[int, str | None, str]
"""(Place of the line, speaker if a tag or the line above the times names one, words)."""


def is_cues(lines: Sequence[str]) -> bool:
    """Whether a text is subtitles, also in a file of another name: it begins as they do, or has numbers above times."""
    texts = [line for line in map(str.strip, lines) if line]
    begins = texts[0] if texts else ""
    is_sbv = "-" not in begins and _TIMES.fullmatch(begins)
    numbered = (above.isdecimal() and _TIMES.fullmatch(line) for above, line in pairwise(texts))
    return begins.startswith("WEBVTT") or bool(is_sbv) or any(numbered)


def read_cues(lines: Sequence[str]) -> tuple[list[Said], dict[int, Kind]] | None:
    """(Words with speakers, kinds of the lines without words), or None if no line has a cue's times."""
    cues, kinds = _cues(lines)
    if not cues and not is_cues(lines):
        return None
    again = Counter(above for above, _ in cues)
    named = {
        above: speaker_of(match["name"])
        for above, count in again.items()
        if (match := _NAMING.fullmatch(above)) and ('"' in above or (count > 1 and not above.isdecimal()))
    }
    parts = [list(_parts(words, named.get(above))) for above, words in cues]
    with_words = {place for cue in parts for place, _, _ in cue}
    kinds |= {place: "layout" for _, words in cues for place, _ in words if place not in with_words}
    return _unrolled(_said(parts), kinds), kinds


def _cues(lines: Sequence[str]) -> tuple[list[tuple[str, list[tuple[int, str]]]], dict[int, Kind]]:
    """The cues, each as (line above its times, its lines with their places); and the kinds of other lines."""
    cues: list[tuple[str, list[tuple[int, str]]]] = []
    kinds: dict[int, Kind] = {}
    times = [bool(_TIMES.fullmatch(line) or _DAMAGED.fullmatch(line)) for line in lines]
    above, in_note, after_empty = "", False, True
    for place, (line, is_above) in enumerate(zip(lines, [*times[1:], False], strict=False)):
        text = line.strip()
        if times[place]:
            cues.append((above, []))
            kinds[place] = "layout" if _TIMES.fullmatch(line) else "unreadable"
            above, in_note = "", False
        elif not text or (is_above and (after_empty or text.isdecimal())):
            above, kinds[place] = text, "layout"
        elif in_note or (after_empty and _NOTE.match(line)):
            in_note, kinds[place] = True, "note"
        elif not cues:
            kinds[place] = "header"
        else:
            cues[-1][1].append((place, line))
        after_empty = not text
    return cues, kinds


def _parts(lines: Sequence[tuple[int, str]], voice: str | None) -> Iterator[Part]:
    """The voices of a cue. Words may follow a closing tag, as in `<v Reader></v>In the beginning`."""
    for place, line in lines:
        for number, text in enumerate(_VOICE.split(line)):  # words, then a name and words for each voice
            plain = visible(_ENTITY.sub(lambda match: html.unescape(match.group()), _TAG.sub("", text or ""))).strip()
            if number % 2:
                voice = speaker_of(plain)
            elif plain:
                yield place, voice, plain


def _said(cues: Sequence[Sequence[Part]]) -> list[list[Said]]:
    """The words of each cue with their speakers. Labels before words name speakers where no tag does."""
    parts = {(cue, number): part for cue, found in enumerate(cues) for number, part in enumerate(found)}
    known = {voice for _, voice, _ in parts.values() if voice}
    labels = labels_of({key: words for key, (_, voice, words) in parts.items() if voice is None}, known)
    said: list[list[Said]] = [[] for _ in cues]
    speaker, is_each_named = "", False
    for key, (place, voice, words) in parts.items():
        begins = key[1] == 0
        if voice is not None:
            speaker, is_each_named = voice, True
        elif key in labels:
            speaker, words, _, is_each_named = labels[key]
        elif not speaker or (begins and is_each_named):
            speaker = UNKNOWN
        said[key[0]].append(Said(place, speaker, words, new=begins and speaker == UNKNOWN))
    return said


def _unrolled(said: Sequence[Sequence[Said]], kinds: dict[int, Kind]) -> list[Said]:
    """The words of all cues; once, where most begin with the words with which the one before ends, and some go on."""
    cues = [cue for cue in said if cue]
    words = [[(one.speaker, word) for one in cue for word in one.words.split()] for cue in cues]
    overlaps = [0, *(_overlap(before, after) for before, after in pairwise(words))]
    goes_on = any(0 < overlap < len(cue) for overlap, cue in zip(overlaps, words, strict=False))
    if not goes_on or 2 * sum(map(bool, overlaps)) < len(cues) - 1:
        return [one for cue in cues for one in cue]
    once = []
    for cue, overlap in zip(cues, overlaps, strict=True):
        for one in cue:
            texts = one.words.split()
            if texts[overlap:]:
                once.append(Said(one.place, one.speaker, " ".join(texts[overlap:]), cue[0].new))
            else:
                kinds.setdefault(one.place, "repeated")
            overlap = max(overlap - len(texts), 0)
    return once


def _overlap(before: Sequence[object], after: Sequence[object]) -> int:
    """How many words at the beginning of a cue are those with which the one before ends.

    >>> _overlap("abab", "abac"), _overlap("ab", "cd")
    (2, 0)
    """
    longest = min(len(before), len(after), _LONGEST_OVERLAP)
    return next((count for count in range(longest, 0, -1) if before[-count:] == after[:count]), 0)

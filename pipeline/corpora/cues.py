"""Subtitles -> words and speakers: WebVTT, SubRip, and YouTube's `.sbv`. A cue is a line of times, and lines of words.

All words below a line of times are its cue's, also after an empty line, and where they have an arrow: `webvtt-py`
drops both. The speaker is in a voice tag (Teams), before a colon (Zoom), or in the line above the times (Webex). A cue
that names none continues the turn, except where the tool names the speaker of every cue.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, pairwise

from pipeline.corpora.said import Kind, Part, Transcript, transcript_of
from pipeline.corpora.speakers import LONGEST_NAME, STAMP, Label, is_titled, labels_of, speaker_of
from pipeline.corpora.text import visible

_TIMES = re.compile(rf"\s*+{STAMP}(?:\s*+-[ -]?>\s*+|,){STAMP}(?:\s++[\w-]{{1,20}}:\S++)*+\s*+")
_DAMAGED = re.compile(rf"\s*+(?:{STAMP}\s*+-->\s*+(?:{STAMP}\s++)?\S{{0,16}}|\S{{0,16}}\s*+-->\s*+{STAMP})\s*+")
_NOTE = re.compile(r"NOTE(?:\s|$)|(?:STYLE|REGION)\s*+$")
_NAME = rf'"(?P<quoted>.{{1,{LONGEST_NAME}}})"|(?P<name>[^"]{{1,{LONGEST_NAME}}}?)'
_NAMING = re.compile(rf"(?:\d++\s++)?(?:{_NAME})(?:\s*+\(\d++\))?")
"""Webex: `12 "Ann Lee" (2048)`, also without the quotes or the numbers."""
_VOICE = re.compile(r"<v(?:\.[^\s<>]*+)?(?:\s++([^<>]*+))?>")
_TAG = re.compile(r"</?(?:c|i|b|u|s|v|ruby|rt|lang|font)(?:[.\s][^<>]*+)?>|<\d[\d:.]*+>|\{\\[^{}]*+\}", re.IGNORECASE)
r"""A tag of WebVTT or SubRip, a time within a cue, `{\an8}`; other text between < and > is words."""
_BREAK = re.compile(r"\[br\]|<br\s*+/?>|\\N", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,10});")
_LONGEST_OVERLAP = 200
Cue = tuple[str, list[tuple[int, str]]]
"""(The line above the times, the lines below them with their places)."""


def is_cues(lines: Sequence[str]) -> bool:
    """Whether a text is subtitles, also in a file of another name: it begins as they do, or has numbers above times."""
    texts = ["", *(line for line in map(str.strip, lines) if line)]
    starts = (above.isdecimal() or (not above and "-" not in line) for above, line in pairwise(texts))
    timed = (_TIMES.fullmatch(line) for line in texts[1:])
    return _is_web(lines) or any(map(all, zip(starts, timed, strict=True)))


def _is_web(lines: Sequence[str]) -> bool:
    """Whether a text is WebVTT, by its first words."""
    return next(filter(None, map(str.strip, lines)), "").startswith("WEBVTT")


def read_cues(lines: Sequence[str]) -> Transcript:
    """The turns of subtitles, and the kinds of the lines."""
    cues, kinds = _cues(lines)
    matches = {above: _NAMING.fullmatch(above) for above, _ in cues if not above.isdecimal()}
    possible = {above: speaker_of(match["quoted"] or match["name"]) for above, match in matches.items() if match}
    again = Counter(possible.get(above) for above, _ in cues)
    sure = {name for above, name in possible.items() if above[-1] in '")' or again[name] > 1}
    named = {above: name for above, name in possible.items() if name in sure or (sure and is_titled(name))}
    parts = [list(_parts(words, named.get(above, ""))) for above, words in cues]
    flat = [part for cue in parts for part in cue]
    voices = {label.name for _, label in flat if label.name}
    labels = labels_of({key: one.words for key, (_, one) in enumerate(flat) if not one.name}, voices, in_cues=True)
    key = count()
    once = _once([[(place, labels.get(next(key), label)) for place, label in cue] for cue in parts])
    with_words, left = {place for place, _ in flat}, {place for place, *_ in once}
    for place in (place for _, words in cues for place, _ in words if place not in left):
        kinds[place] = "repeated" if place in with_words else "layout"
    return transcript_of(once, kinds, lines, labels_begin=False)


def _cues(lines: Sequence[str]) -> tuple[list[Cue], dict[int, Kind]]:
    """The cues, and the kinds of other lines. Notes are WebVTT's alone: elsewhere `NOTE` is a word."""
    cues: list[Cue] = []
    kinds: dict[int, Kind] = {}
    times = [bool(_TIMES.fullmatch(line) or _DAMAGED.fullmatch(line)) for line in lines]
    above, in_note, after_empty = "", False, True
    has_notes, first = _is_web(lines), times.index(True) if True in times else 0
    has_numbers = lines[first - 1 : first] and lines[first - 1].strip().isdecimal()
    for place, (line, is_above) in enumerate(zip(lines, [*times[1:], False], strict=False)):
        text = line.strip()
        if times[place]:
            cues.append((above, []))
            kinds[place] = "layout" if _TIMES.fullmatch(line) else "unreadable"
            above, in_note = "", False
        elif not text or (is_above and (after_empty or (has_numbers and text.isdecimal()))):
            above, kinds[place] = text, "layout"
        elif in_note or (has_notes and after_empty and _NOTE.match(line)):
            in_note, kinds[place] = True, "note"
        elif not cues:
            kinds[place] = "header"
        else:
            cues[-1][1].append((place, line))
        after_empty = not text
    return cues, kinds


def _parts(lines: Sequence[tuple[int, str]], voice: str) -> Iterator[tuple[int, Label]]:
    """The voices of a cue. Words may follow a closing tag, as in `<v Reader></v>In the beginning`."""
    for place, line in lines:
        for number, text in enumerate(_VOICE.split(line)):  # words, then a name and words for each voice
            untagged = _TAG.sub("", _BREAK.sub(" ", text or ""))
            plain = visible(_ENTITY.sub(lambda match: html.unescape(match.group()), untagged)).strip()
            if number % 2:
                voice = speaker_of(plain)
            elif plain:
                yield place, Label(voice, plain, names_all=True)


def _once(cues: Sequence[Sequence[tuple[int, Label]]]) -> list[Part]:
    """The words of all cues; once, where most begin with the words with which the one before ends.

    Most are half of the cues where some go on, and else three quarters, as whisperX writes that highlights each word.
    People repeat words: a single one counts if it is all of the cue before, and if there are more than two cues.
    """
    cues = list(filter(None, cues))
    words = [[(label.name, word) for _, label in cue for word in label.words.split()] for cue in cues]
    overlaps = [0]
    for before, after in pairwise(words):
        size = _overlap(before, after)
        overlaps.append(size if size > 1 or size == len(before) else 0)
    goes_on = any(0 < overlap < len(cue) for overlap, cue in zip(overlaps, words, strict=False))
    are_most = sum(map(bool, overlaps)) >= (len(cues) - 1) * (0.5 if goes_on else 0.75) > 0
    rolls = are_most and (len(cues) > 2 or max(overlaps) > 1)
    once = []
    for cue, overlap in zip(cues, overlaps, strict=False):
        begins = True
        for place, label in cue:
            texts = label.words.split()
            left = texts[overlap if rolls else 0 :]
            overlap = max(overlap - len(texts), 0)
            if left or not texts:
                once.append((place, label._replace(words=" ".join(left)), begins))
                begins = False
    return once


def _overlap(before: Sequence[object], after: Sequence[object]) -> int:
    """How many words at the beginning of a cue are those with which the one before ends.

    >>> _overlap("abab", "abac"), _overlap("ab", "cd")
    (2, 0)
    """
    longest = min(len(before), len(after), _LONGEST_OVERLAP)
    return next((size for size in range(longest, 0, -1) if before[-size:] == after[:size]), 0)

"""Who speaks in a transcript: labels before words, headings above them, and which of them are names.

`The first one is this: we wait` looks like `Ann Lee: we wait`. All labels of a file decide together: see `names_of`.
Patterns match texts of bounded length, or match a text in one way only: reading a line takes linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

UNKNOWN = "Unknown"
"""The speaker of words of whom the file does not say who spoke them."""
LONGEST_NAME, MOST_WORDS = 60, 4
STAMP = r"\d{1,3}:\d{1,2}(?::\d{1,2})?(?:[.,]\d{1,6})?"
_CLOCK = rf"(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}},?\s+)?{STAMP}(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_ONE = rf"(?:\[{_CLOCK}\]|\({_CLOCK}\)|{_CLOCK})"
TIMES = rf"(?:\[{STAMP}\s*+-->\s*+{STAMP}\]|{_ONE}(?:\s*+(?:-->|->|-|–)\s*+{_ONE})?)"
"""`0:03`, `[00:00:03]`, `10:15 AM`, `5/6/24, 10:15`, `0:03 - 0:09`."""
_TIMED = re.compile(rf"{TIMES}(?:(?<=[\])])\s*+|\s++)(?:[-–|]\s++)?")
_BRACKETED = re.compile(rf"[\[(](?P<name>[^\[\]()]{{1,{LONGEST_NAME}}})[\])]\s*+[:：]")
_NUMBERED = re.compile(r"[\[(](?P<name>(?:speaker|spk)[ _-]?(?:\d{1,3}|\?))[\])]\s*+[:：]?", re.IGNORECASE)
"""whisperX's `[SPEAKER_00]: words` and whisper.cpp's `(speaker 0) words`."""
_COLON = re.compile(
    rf"(?P<name>[^:：\[\]()]{{1,{LONGEST_NAME}}}(?:(?:\([^()]{{1,40}}\)|\[[^\[\]]{{1,40}}\])\s?){{0,2}})"
    r"(?P<colon>[:：])"
)
_TIME_AFTER = re.compile(rf"\s?[\[(]{TIMES}[\])]\s?$")
_FROM = re.compile(r"From\s+(.+?)(?:\s+to\s+.+)?")
"""Zoom's chat: `10:15:02 From Ann Lee to Everyone: words`."""
_HEADING = re.compile(rf"(?P<name>\S.{{0,70}}?)(?P<gap>\s*[|•·,–-]?\s+|(?<=\])\s*)(?P<time>{TIMES})")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_BRACKETS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)")
_NO_NAME = re.compile(r"[?!;<>|=\"“”…•]|://")
_WORDS = re.compile(r"[\u3040-\u309f\u4e00-\u9fff]|[^\s\u3040-\u309f\u4e00-\u9fff]+")
"""Words; in scripts without spaces, characters."""
_PARTICLES = set("von van der den de del della di da dos la le du bin al el ter zu and und et y of the".split())
_SMALL = set(
    "a an the this that these those it is are was were be we you he she they my our your his her their to for at in on "
    "of if so and but or not as with what which who how when where why there here then now just only about by from has "
    "have had do does did can says said one two three first second third next last more most all some any also well "
    "like because der die das ein eine ist sind war wir ihr er sie es ich und oder aber nicht mit für zu im wie wer wenn "
    "dann la les un une est sont nous vous il elle ils et ou mais pas pour dans que qui el los son y pero no por".split()
)
"""Little words, of which no name consists, and of which a name in small letters has none."""
_TITLES = set(
    "note notes remember reminder question answer example summary agenda topic option options decision action todo result "
    "problem reason warning step point title subject meeting attendees participants invited speakers keywords duration "
    "started ended recorded recording transcript transcription language location host organizer time yes no okay ok "
    "hinweis frage antwort beispiel thema teilnehmer dauer ergebnis réponse exemple sujet durée participantes tema".split()
)
"""What speakers and headers say before a colon: names only if they recur."""


@dataclass(frozen=True)
class Label:
    """A possible speaker before words.

    Attributes:
        sure: whether it can be nothing but a speaker.
        numbered: whether a tool wrote it that labels every line, so that a line without one has an unknown speaker.
    """

    name: str
    words: str
    sure: bool = False
    numbered: bool = False


@dataclass(frozen=True)
class Heading:
    """A possible speaker and time above words. `form`: how the time is written; `sure`: in brackets or after a gap."""

    name: str
    form: str
    sure: bool


def speaker_of(text: str) -> str:
    """A name as a tool wrote it -> the speaker; no name and `Speaker?` are `Unknown`."""
    name = " ".join(text.split()).strip('\u200c\u200d"“”')
    return UNKNOWN if not name or name.endswith("?") else name


def label_of(line: str) -> Label | None:
    """The label of a line; times before it go.

    >>> label_of("[00:01] Ann Lee [Acme]: so be it"), label_of("(speaker 0) Hello"), label_of("at 10:30")
    (Label(name='Ann Lee [Acme]', words='so be it', sure=False, numbered=False), \
Label(name='speaker 0', words='Hello', sure=True, numbered=True), None)
    """
    text = line.strip()
    marked = text.startswith(">>")
    text = text.lstrip("> ") if marked else text
    timed = _TIMED.match(text)
    text = text[timed.end() :] if timed else text
    if numbered := _NUMBERED.match(text):
        return Label(speaker_of(numbered["name"]), text[numbered.end() :].strip(), sure=True, numbered=True)
    bracketed = _BRACKETED.match(text)
    if bracketed and is_name(bracketed["name"]):
        return Label(speaker_of(bracketed["name"]), text[bracketed.end() :].strip(), sure=True)
    found = _COLON.match(text)
    if found and _ends_a_label(found, text[found.end() : found.end() + 1]):
        name = _TIME_AFTER.sub("", found["name"])
        sent = _FROM.fullmatch(name.strip()) if timed else None
        name = sent[1] if sent else name
        if is_name(name):
            return Label(speaker_of(name), text[found.end() :].strip(), sure=marked or name != found["name"])
    return Label(UNKNOWN, text, sure=True) if marked else None


def _ends_a_label(found: re.Match[str], after: str) -> bool:
    """Whether a colon may be one of a label: not that of a time, an address or a smiley."""
    if not after or after.isspace() or "：" in found["colon"]:
        return True
    last = found["name"][-1]
    is_time = after.isdigit() and last.isdigit()
    return not last.isspace() and not is_time and (after.isalnum() or after in "¿¡\"'“„«")


def heading_of(line: str) -> Heading | None:
    """The name and time that a line consists of, as `Ann Lee   0:03`, `[Ann Lee] 10:15:02` or `Ann 10:15 AM`."""
    found = _HEADING.fullmatch(line.strip()) if len(line) <= 2 * LONGEST_NAME else None
    if found is None:
        return None
    inner = re.fullmatch(r"\[([^\[\]]+)\]|\(([^()]+)\)", found["name"])
    name = speaker_of(inner[1] or inner[2] if inner else found["name"])
    if ":" in name or _YEAR.search(name) or not is_name(name):
        return None
    form = re.sub(r"\d+(?::\d+)*", "0", found["gap"] + found["time"]).lower().replace("p", "a")
    return Heading(name, form, bool(inner) or len(found["gap"]) > 1 or "\t" in found["gap"])


def untimed(line: str) -> str:
    """A line without a time in brackets before its words."""
    timed = _TIMED.match(line) if line[:1] in ("[", "(") else None
    return line[timed.end() :] if timed else line


def is_name(text: str) -> bool:
    """Whether a text has the form of a name."""
    core = _BRACKETS.sub("", text).strip()
    letters = any(map(str.isalpha, core)) or (core.startswith("+") and any(map(str.isdigit, core)))
    return 0 < len(text.strip()) <= LONGEST_NAME and letters and not _NO_NAME.search(text)


def names_of(found: Mapping[str, int], known: Collection[str] = ()) -> set[str]:
    """Which possible speakers of a file are names.

    A name is known, or has capitals and at most four words, or recurs; in small letters it has no little word, and
    recurs or is one of a file whose names are in small letters.

    Args:
        found: possible speaker -> how often the file has it.
        known: names that are sure.

    >>> sorted(names_of({"Ann Lee": 1, "The first one is this": 1, "product manager": 2, "Note": 1, "two options": 1}))
    ['Ann Lee', 'product manager']
    """
    titled = {name for name in found if _is_titled(name)}
    small = {name for name in found if name not in titled and not _SMALL & set(name.lower().split())}
    all_small = sum(found[name] for name in small) > sum(found[name] for name in titled)

    def is_one(name: str) -> bool:
        count, words = found[name], set(name.lower().split())
        few = len(_WORDS.findall(_BRACKETS.sub("", name))) <= MOST_WORDS
        if name in titled:
            needed = 3 if words <= _SMALL - {"a"} else 2 if words & _TITLES or not few else 1
            return count >= needed
        return few and name in small and (count > 1 or (all_small and len(words) <= 2))

    return {name for name in found if name in known or is_one(name)}


def _is_titled(name: str) -> bool:
    """Whether all words have a capital or are of a script without capitals, except for particles such as `van`."""
    words = [word for word in _BRACKETS.sub("", name).replace("-", " ").split() if any(map(str.isalnum, word))]
    small = [word for word in words if word.islower() and not word[0].isdigit()]
    return len(small) < len(words) and set(small) <= _PARTICLES


def counted(labels: Iterable[Label | None]) -> Counter[str]:
    """How often a file has each possible speaker."""
    return Counter(label.name for label in labels if label is not None)


def is_speaker(label: Label | None, names: Collection[str], found: Mapping[str, int]) -> bool:
    """Whether a label names a speaker. One without words, as a line `Ann:` above them, recurs."""
    return label is not None and (label.sure or (label.name in names and bool(label.words or found[label.name] > 1)))

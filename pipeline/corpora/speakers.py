"""Who speaks in a transcript: labels before words, headings above them, and which of them are names.

`The first one is this: we wait` looks like `Ann Lee: we wait`, so a file's labels decide together: see `_names_of`.
Every pattern matches a text of bounded length, or in one way only: reading takes time linear in a line's length.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import NamedTuple

UNKNOWN = "Unknown"  # the speaker of words of whom the file does not say who spoke them
LONGEST_NAME, LONGEST_CORE, LONGEST_LINE, MOST_WORDS = 160, 60, 300, 4
"""Letters of a name, and of one without what is in brackets; letters of a line that is no words; words of a name."""
STAMP = r"\d{1,3}:\d{1,2}(?::\d{1,2})?(?:[.,:;]\d{1,6})?"
_CLOCK = rf"(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}}(?:,?\s+|T))?{STAMP}(?:Z|\s?[AaPp]\.?[Mm]\b\.?|\sUhr\b)?"
_ONE = rf"(?:\[{_CLOCK}\]|\({_CLOCK}\)|<{_CLOCK}>|\{{{_CLOCK}\}}|{_CLOCK})"
_TO = r"\s*+(?:-->|->|-|–)\s*+"
_SECONDS = r"\d{1,6}(?:\.\d{1,3}s?|s)"
TIMES = rf"(?:\[{STAMP}{_TO}{STAMP}\]|\[{_SECONDS}{_TO}{_SECONDS}\]|\({STAMP}{_TO}{STAMP}\)|{_ONE}(?:{_TO}{_ONE})?)"
"""`0:03`, `[00:00:03]`, `<0:03>`, `{0:03}`, `10:15 AM`, `5/6/24, 10:15`, `0:03 - 0:09`, `[3.00s -> 9.00s]`."""
_TIMED = re.compile(rf"{TIMES}(?:(?<=[\])>}}])\s*+|\s++)(?:[-–|]\s++)?")
_BOLD = re.compile(r"^(\*\*?)([^*]{1,200})\1")
_ITEM = re.compile(r"^(?:[-*•]|\d{1,3}[.)])\s+")
_NUMBERED = re.compile(r"[\[(]((?:speaker|spk)[ _-]?(?:\d{1,3}|\?))[\])]\s*+[:：]?", re.IGNORECASE)
"""whisperX's `[SPEAKER_00]: words` and whisper.cpp's `(speaker 0) words`: of tools that label every line."""
_UNNAMED = re.compile(r"(?:unknown )?(?:speaker|spk)[ _-]?\?+", re.IGNORECASE)  # no other question: `Why?` is words
_BRACKETED = re.compile(rf"(?:\[([^\[\]]{{1,{LONGEST_NAME}}})\]|\(([^()]{{1,{LONGEST_NAME}}})\))\s*+(?:[:：]|$)")
_GROUP = (
    r"(?:\((?:[^()]|\([^()]{0,80}\)){1,120}\)|\[[^\[\]]{1,120}\]|\{[^{}]{1,120}\}|<[^<>]{1,120}>|（[^（）]{1,120}）)"
)
"""What a name may have in brackets, as `(Guest)`, `[Acme]` or `(Minister (Ottawa))`."""
_COLON = re.compile(
    rf"((?:{_GROUP}\s?)?[^:：\[\]()]{{1,{LONGEST_CORE}}}(?:{_GROUP}[^:：\[\]()]{{0,{LONGEST_CORE}}}){{0,2}})"
    r"(?:[:：](?=\s|$)|：|(?<!\s):(?=[\w¿¡\"'“„«])(?!(?<=\d:)\d))"  # no time, address or smiley
)
_NO_COLON = re.compile(rf"\s[-–—]\s+(?=\S)|\s?[\[(]{TIMES}[\])]\s+(?=\S)")
"""What follows the names of a file without colons: a dash, or a time in brackets."""
_CHAT = re.compile(r"(?:From|Von|De)\s+(\S.{0,60}?)(?:\s+(?:to|an|à|a|para)\s+[^:]{1,60}?\s*|\s+):(?:\s|$)", re.I)
"""Zoom's chat: `From Ann Lee to Everyone: words`, `From Ann Lee : words`."""
_TIME_AFTER = re.compile(rf"\s?[\[({{<]{TIMES}[\])}}>]\s?$")
_TWO_TIMES = re.compile(rf"\[?{STAMP}{_TO}{STAMP}\]?")
_TIME_FIRST = "0 …"  # the form of a heading that begins with its time
_HEADING = re.compile(rf"(?P<name>\S.{{0,{LONGEST_NAME}}}?)(?P<gap>\s*[|•·,–-]?\s+|(?<=\])\s*)(?P<time>{TIMES})")
_BRACKETS = re.compile(_GROUP)
_NUMBER = re.compile(r"(?!\d{4}-\d\d?-)[\d*][\d*() -]{5,}[\d*]")
_NO_NAME = re.compile(r"[:：?;<>=…]|,\s*$")
_RARE = re.compile(r"[!\"“”•]|\b(?:19|20)\d\d\b")
"""What names have only if they recur."""
_WORDS = re.compile(r"[\u3040-\u309f\u4e00-\u9fff]|[^\s\u3040-\u309f\u4e00-\u9fff]+")
"""Words; in scripts without spaces, characters."""
_SIGNS = re.compile(r"(?:(?![是的了我你您们这那就也很都可不])[\u3040-\u30ff\u4e00-\u9fff]){1,6}")
"""A name in Chinese or Japanese, of which no sign says that a sentence goes on."""
_PARTICLES = re.compile(
    r"von|van|de[rnl]?|della|di|d[aou]s?|l[ae]|al|el|ter|zu|and|und|et|y|of|the|ibn|bint?|بن|بنت|آل"
)
_SMALL = re.compile(
    r"an?|the|th(?:is|at|ese|ose|ey|ere|en)|it|is|are|was|were|be|we|you|s?he|my|our|your|his|her|their|to|for|at|in|on|"
    r"of|if|so|and|but|or|not|as|with|what|which|who|how|when|where|why|here|now|just|only|about|by|from|ha[sd]|have|"
    r"do|does|did|can|says?|said|one|two|three|first|second|third|next|last|more|most|all|some|any|also|well|like|because|"
    r"der|die|das|eine?|ist|sind|war|wir|ihr|er|sie|es|ich|und|oder|aber|nicht|mit|für|zu|im|wie|wer|wenn|dann|"
    r"la|les|une?|est|sont|nous|vous|ils?|elle|et|ou|mais|pas|pour|dans|que|qui|el|los|son|y|pero|no|por"
)
"""Little words, of which no name consists, and of which a name in small letters has none."""
_TITLES = re.compile(
    r"notes?|remember|reminder|question|answer|example|summary|agenda|topic|options?|decision|action|todo|result|problem|"
    r"reason|warning|step|point|title|subject|meeting|attendees|participants|invited|speakers|keywords|duration|started|"
    r"ended|record(?:ed|ing)|transcript(?:ion)?|language|location|host|organi[sz]er|time|yes|no|ok(?:ay)?|hinweis|frage|"
    r"antwort|beispiel|thema|teilnehmer|dauer|ergebnis|réponse|exemple|sujet|durée|participantes|tema|"
    r"plan|goal|budget|idea|proposal|important|firstly|secondly|finally|(?:erst|zweit|dritt|viert|letzt)ens|wichtig|gut|"
    r"vorschlag|ziel|plan|idee|fazit|kurz|premièrement|deuxièmement|primero|segundo|第[一二三四五]|比如|例如|首先|其次|最后|注意|"
    r"问题|结论|另外|总之|时间|地点|关键词|(?:会议)?主题|录制时间|参会人员?|مثلا|أولا|ثانيا|ثالثا"
)
"""What speakers and headers say before a colon: names with such a word only if they recur."""
_FIELDS = re.compile(
    r"date|created|present|chair|absent|apologies|attendance|minutes|project|client|status|file(?:name)?|url|link|source|"
    r"video|author|version|datum|ort|beginn|ende|(?:an|ab)wesend|lieu|fecha"
)
"""What headers alone say so, and others in names: `Chair (Lee)`."""


class Label(NamedTuple):
    """Words, with their speaker, or "", if none is named: surely, or by a tool that names all."""

    name: str
    words: str = ""
    sure: bool = False
    names_all: bool = False


def speaker_of(text: str) -> str:
    """A name as a tool wrote it -> the speaker; no name and `Speaker?` are `Unknown`."""
    name = " ".join(text.split()).strip('\u200c\u200d"“”')
    return UNKNOWN if not name or _UNNAMED.fullmatch(name) else name


def untimed(line: str) -> str:
    """A line without a time before its words in square brackets, or in others if there are no words."""
    timed = _TIMED.match(line)
    return line[timed.end() :] if timed and (line[0] == "[" or timed.end() == len(line)) else line


def label_of(line: str) -> Label | None:
    """The possible label of a line; times before it and after it go, and marks of bold text.

    >>> label_of("[00:01] Ann Lee [Acme]: so be it"), label_of("(speaker ?) Hello")[:2], label_of("at 10:30")
    (Label(name='Ann Lee [Acme]', words='so be it', sure=False, names_all=False), ('Unknown', 'Hello'), None)
    """
    text = line.strip()
    changes = text.startswith(">>")
    text = _BOLD.sub(r"\2", text.lstrip("> ") if changes else _ITEM.sub("", text))
    text = _BOLD.sub(r"\2", text[timed.end() :] if (timed := _TIMED.match(text)) else text)
    if (chat := _CHAT.match(text)) and (timed or "Everyone" in chat[0]):
        return Label(speaker_of(chat[1]), text[chat.end() :].strip(), sure=True)
    if found := _NUMBERED.match(text):
        return Label(speaker_of(found[1]), text[found.end() :].strip(), sure=True, names_all=True)
    bracketed = _BRACKETED.match(text)
    found = bracketed or _COLON.match(text)
    if found and _is_name(name := _TIME_AFTER.sub("", before := found[found.lastindex or 1])):
        if not text[: found.end()].endswith(("]", ")")):
            words = untimed(after := text[found.end() :].strip())
            return Label(speaker_of(name), words, changes or bool(bracketed) or (name, words) != (before, after))
        if " " in name and is_titled(name):  # Meet: the name alone, above the words; no `[Music]`
            return Label(name)
    return Label(UNKNOWN, text, sure=True) if changes else None


def labels_of(texts: Mapping[int, str], known: Collection[str] = (), *, in_cues: bool = False) -> dict[int, Label]:
    """The lines whose label is a speaker's; `known` are those that the tool named in another way.

    A single one without words, as `Agenda:` of a header, must have words elsewhere; cues have no header.
    """
    found = {place: label for place, text in texts.items() if (label := label_of(text))}
    if not any(label.name and label.words for label in found.values()):
        dashed = {place: one for place, text in texts.items() if (one := label_of(_NO_COLON.sub(": ", text, count=1)))}
        if 2 * len(dashed) > len(texts) and len({label.name for label in dashed.values()}) < len(dashed):
            found = dashed
    counts = Counter(label.name for label in found.values())
    names = _names_of(counts, len(texts))
    if known or 2 * sum(label.names_all for label in found.values()) > len(texts):  # others than the tool's must recur
        names = {name for name in names if counts[name] > 1}.union(known)
    named = {place: label for place, label in found.items() if label.sure or label.name in names}
    alone, speak = sum(not label.words for label in named.values()), {one.name for one in named.values() if one.words}
    above_words = in_cues or alone > 1
    return {place: one for place, one in named.items() if one.sure or one.words or above_words or one.name in speak}


def heading_of(line: str) -> tuple[str, str, bool] | None:
    """(Name, form of the time, whether a bracket or a gap makes it sure), of a line of a name and a time alone.

    >>> heading_of("Ann Lee   1:00:03"), heading_of("[Ann Lee] 10:15:02"), heading_of("0:03 we meet")
    (('Ann Lee', '   0', True), ('Ann Lee', ' 0', True), ('we meet', '0 …', False))
    """
    if len(line) > LONGEST_LINE:
        return None
    line = _BOLD.sub(r"\2", line)
    if timed := _TIMED.match(line):
        name, form, sure = line[timed.end() :], _TIME_FIRST, False
    elif found := _HEADING.fullmatch(line):
        name = re.sub(r"^\[((?:[^\[\]]|\[[^\[\]]*+\])+)\]$", r"\1", found["name"])
        form = re.sub(r"\d+(?::\d+)*", "0", found["gap"] + found["time"]).lower().replace("p", "a")
        sure = name != found["name"] or len(found["gap"]) > 1 or "\t" in found["gap"]
    else:
        return None
    return speaker_of(name), form, sure


def all_labels_of(lines: Sequence[str], texts: Mapping[int, str]) -> dict[int, Label]:
    """The lines that name speakers: before their words; or above words, where a colon then names none.

    A line of two times names none, if no name is below it.
    """
    labels = labels_of(texts)
    headings = _headings(lines, texts) or {place: label for place, label in labels.items() if not label.words}
    headings = headings or ({} if labels else _first_lines(lines, texts))
    inline, first = labels.keys() - headings, min(headings, default=0)
    if headings and (len(headings) >= len(inline) or (len(headings) > 1 and first < min(inline))):
        labels = {place: one for place, one in labels.items() if one.sure or place < first} | headings
    unnamed = {place: Label(UNKNOWN) for place, line in enumerate(lines) if _TWO_TIMES.fullmatch(line)}
    return unnamed | _without_times(labels)


def _without_times(labels: dict[int, Label]) -> dict[int, Label]:
    """Labels without the times that most of them have before their words, as `Ann Lee: 00:03 Hello.`; of three."""
    timed = {place: one.words[time.end() :] for place, one in labels.items() if (time := _TIMED.match(one.words))}
    if 2 * len(timed) <= max(5, sum(label.words != "" for label in labels.values())):
        return labels
    return labels | {place: labels[place]._replace(words=words) for place, words in timed.items()}


def _headings(lines: Sequence[str], texts: Mapping[int, str]) -> dict[int, Label]:
    """The lines with a name and a time, also on another line, if the file names speakers so.

    Times in brackets or after a gap are sure; else the commonest form counts, so that `Monday 12:30` within the words
    is none. With the time first, or on another line, most such lines must be names, and their names have words below.
    """
    found: dict[int, tuple[str, str, bool]] = {}
    alone = set()
    filled = [place for place, line in enumerate(lines) if line]
    around = list(zip([0, *filled], filled, [*filled[1:], 0], strict=False))
    with_times = _with_times(lines, around)
    for _, place, below in around:
        heading = heading_of(lines[place]) or heading_of(with_times[place])
        if heading and place in texts:
            found[place] = heading
            after = heading_of(texts[below]) if below in texts else None
            next_begins = after and after[1] == _TIME_FIRST and (is_titled(after[0]) or not is_titled(heading[0]))
            if heading[1] == _TIME_FIRST and (below not in texts or next_begins):
                alone.add(place)
    shapes = Counter(form for _, form, _ in found.values())
    names = _names_of(Counter(name for place, (name, _, _) in found.items() if place not in alone))
    surely = {name for name, _, sure in found.values() if sure and _is_name(name) and _may_be_name(name)}
    names |= {name for name in surely if not _RARE.search(name)}
    found = {place: heading for place, heading in found.items() if heading[0] in names}
    forms = Counter(form for _, form, _ in found.values())
    usual = [form for form, count in forms.items() if form[0] not in "\n0" or 2 * count > shapes[form]]
    best = max(usual, key=forms.__getitem__, default="")
    are_sure = 2 * sum(sure for _, _, sure in found.values()) >= len(found)
    found = {place: one for place, one in found.items() if (one[2] if are_sure else one[1] == best)}
    return {place: Label(name, sure=True) for place, (name, _, _) in found.items()}


def _with_times(lines: Sequence[str], around: Sequence[tuple[int, int, int]]) -> dict[int, str]:
    """Each line with the line below, where a time may be; or the two times above, or the time, if names follow times.

    Names recur, words do not: what has fewer different lines, above times or below, are the names.
    """
    times = [(lines[above], lines[below]) for above, place, below in around if re.fullmatch(TIMES, lines[place])]
    names_follow = len({below for _, below in times}) < len({above for above, _ in times})
    is_time = re.compile(TIMES) if names_follow else _TWO_TIMES
    joined = {}
    for above, place, _ in around:
        has_time_above = is_time.fullmatch(lines[above]) is not None
        last = place + 1 if has_time_above or names_follow else place + 2
        joined[place] = "\n".join([lines[above]] * has_time_above + [*lines[place:last]])
    return joined


def _first_lines(lines: Sequence[str], texts: Mapping[int, str]) -> dict[int, Label]:
    """The names above words of a file without colons and times: first lines of most paragraphs, of which some recur."""
    begins = [place for place in texts if place == 0 or not lines[place - 1]]
    firsts = {place: texts[place] for place in begins if place + 1 in texts}
    names = _names_of(Counter(firsts.values()))
    found = {place: Label(name) for place, name in firsts.items() if name in names}
    return found if 2 * len(found) > len(begins) and len({label.name for label in found.values()}) < len(found) else {}


def _is_name(text: str) -> bool:
    """Whether a text has the form of a name, or of a telephone number."""
    core = _BRACKETS.sub("", text).strip()
    letters = any(map(str.isalpha, core)) or core.startswith("+") or _NUMBER.fullmatch(text) is not None
    return len(core) <= LONGEST_CORE and len(text) <= LONGEST_NAME and letters and not _NO_NAME.search(text)


def _names_of(found: Mapping[str, int], lines: float = inf) -> set[str]:
    """Which possible speakers of a file are names.

    A name has capitals and at most four words, or recurs; in small letters it has no little word, and recurs or is one
    of a file whose names are in small letters, or where nearly all lines have labels.

    `found`: possible speaker -> how often the file has it. `lines`: of the file.

    >>> sorted(_names_of({"Ann Lee": 1, "The first one is this": 1, "product manager": 2, "Note": 1, "two options": 1}))
    ['Ann Lee', 'product manager']
    """
    titled = {name for name in found if is_titled(name)}
    again = sum(count for name, count in found.items() if count > 1 and name not in titled and _may_be_name(name))
    is_plain = again > sum(found[name] for name in titled) or sum(found.values()) >= 0.9 * lines

    def is_one(name: str) -> bool:
        words, parts = name.lower().split(), _WORDS.findall(_BRACKETS.sub("", name))
        parts = [part for part in parts if part[-1] != "." and not _PARTICLES.fullmatch(part)]
        few = len(parts) <= MOST_WORDS or _SIGNS.fullmatch(name) is not None
        if name not in titled:
            return few and _may_be_name(name) and (found[name] > 1 or (is_plain and len(words) <= 2))
        is_little = name not in ("A", "An", "Can", "You") and all(map(_SMALL.fullmatch, words))
        is_field = any(map(_TITLES.fullmatch, words)) or _FIELDS.fullmatch(name.lower())
        is_doubtful = not few or is_field or _RARE.search(name)
        return found[name] >= (3 if is_little else 2 if is_doubtful else 1)

    return {name for name in filter(is_one, found) if _is_name(name)}


def _may_be_name(name: str) -> bool:
    """Whether a text has capitals as a name, or at least no little word."""
    return is_titled(name) or not any(map(_SMALL.fullmatch, name.lower().split()))


def is_titled(name: str) -> bool:
    """Whether all words have a capital or are of a script without capitals, except for particles such as `van`."""
    words = [word for word in _BRACKETS.sub("", name).replace("-", " ").split() if any(map(str.isalnum, word))]
    small = [word for word in words if word.islower() and not word[0].isdigit()]
    return len(small) < len(words) and all(map(_PARTICLES.fullmatch, small))

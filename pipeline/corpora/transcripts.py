"""Transcripts as meeting software exports them -> turns: `.vtt`, `.srt`, `.sbv`, `.docx`, `.txt`, and QMSum's `.json`.

No line is lost in silence: `read` also returns what became of each. `docs/data.md` lists what is read of which tool.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipeline.corpora.cues import is_cues, read_cues
from pipeline.corpora.people_files import text_of
from pipeline.corpora.qmsum import Meeting, parse_meeting
from pipeline.corpora.said import Kind, Transcript, transcript_of
from pipeline.corpora.speakers import TIMES, UNKNOWN, Label, all_labels_of, heading_of, untimed
from pipeline.corpora.text import visible
from pipeline.errors import QuorumError
from pipeline.workspace.progress import say

READERS = (".vtt", ".srt", ".docx", ".txt", ".json", ".sbv")  # endings of the files that are read
_CUES = (".vtt", ".srt", ".sbv")
_LAYOUT = re.compile(rf"(?P<times>{TIMES})|[-–—_=*#~]*+")
"""Times, an empty line, or a rule."""
_NOTE = re.compile(
    r"(?!(?:I|you|he|she|we|they|who) )[^:：]{1,60}? (?:(?:has )?(?:started|stopped|paused|resumed) (?:the )?"
    r"(?:transcription|recording)|hat die (?:Transkription|Aufzeichnung) (?:gestartet|beendet|angehalten)"
    r"|a (?:démarré|commencé|lancé|arrêté) (?:la transcription|l['’]enregistrement)"
    r"|(?:ha )?(?:inici|comenz|detuv|deten)\w{1,5} la (?:transcripción|grabación))\.?"
    r"|(?:The )?(?:meeting|transcript(?:ion)?|recording) (?:started|stopped|ended)(?: (?:at|on|after|by) .{1,60})?"
    r"|This (?:editable )?transcript was (?:computer|automatically|AI)[ -]generated.{0,200}"
    r"|(?:Die )?(?:Transkription|Aufzeichnung) wurde .{1,60} (?:gestartet|beendet)"
    r"|Dieses (?:bearbeitbare )?Transkript wurde (?:automatisch|vom Computer) .{0,200}"
    r"|.{1,40} ?已?(?:开始|停止)(?:听录|转录|录制)"
    r"|Transcribed (?:by|with) (?:https?://|Otter).{0,60}",
    re.IGNORECASE,
)
"""Of Teams, as `Ann Lee started transcription`; of Meet and Otter."""
_BEGINS = re.compile(r"(?:📖\s*)?(?:Transcript(?:ion)?|Transkript|Transcripción)")
"""Of Meet: the line between notes and words."""
_COLUMN = re.compile(r"(?:speaker|name|who|time(?:stamp)?|start|end|text|words|transcript|sprecher|zeit|#|no)s?", re.I)
"""A title of a table's column."""
_LASTS = re.compile(r"(?:\d{1,3} ?(?:Std|Min|Sek)\.\s*+){1,3}")
"""How long a meeting lasts, in a German header: its full stop ends no sentence there."""
_ENDS_SENTENCE = re.compile(r"[.?!…。？！][\"'”’»)]*$")
_LEFT_OUT = {"pPr", "rPr", "del", "moveFrom", "Fallback"}
"""Parts of a Word document: formats, deleted and moved text, and copies for older programs."""
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def read(path: Path) -> Transcript:
    """The turns of a meeting, and what became of each line; see `read_meeting`."""
    return read_meeting(path)[1]


def read_meeting(path: Path) -> tuple[Meeting, Transcript]:
    """A meeting, with the queries that QMSum's schema alone has, and what became of each line.

    If there are lines that cannot be read, this is printed.

    Raises QuorumError if the file is missing, of another format or damaged, or holds no turn.
    """
    ending, remedy = path.suffix.lower(), f"export the meeting as {', '.join(READERS)}"
    if not path.is_file():
        raise QuorumError(f"{path}: no such file; {remedy}")
    if ending not in READERS:
        raise QuorumError(f"{path}: {path.suffix} is no format that is read; {remedy}")
    meeting = parse_meeting(path) if ending == ".json" else None
    if meeting is not None:  # each turn is a line
        turns = meeting.turns
        parts = [(place, Label(turn.speaker.strip() or UNKNOWN, turn.text), True) for place, turn in enumerate(turns)]
        found = transcript_of(parts, {}, [f"{turn.speaker}: {turn.text}" for turn in turns])
    else:
        lines = visible(_docx(path) if ending == ".docx" else text_of(path)).splitlines()
        found = (read_cues if ending in _CUES or is_cues(lines) else _read_paragraphs)(lines)
    if not found.turns:
        raise QuorumError(f"{path}: has no turn; give `Speaker: words` lines; in .vtt, .srt and .sbv, below times")
    if "unreadable" in found.kinds:
        say(f"{path}: {found}")
    return meeting or Meeting(path.stem, found.turns, ()), found


def _read_paragraphs(lines: Sequence[str]) -> Transcript:
    """The turns of a text, and the kinds of its lines.

    Lines before the first speaker or time are the file's header, if they end no sentence.
    """
    stripped = [line.strip() for line in lines]
    layout = {place: match for place, line in enumerate(stripped) if (match := _LAYOUT.fullmatch(line))}
    kinds: dict[int, Kind] = {place: "note" for place, line in enumerate(stripped) if _NOTE.fullmatch(line)}
    kinds |= dict.fromkeys(layout, "layout")
    texts = {place: line for place, line in enumerate(stripped) if place not in kinds}
    begins = next((place for place, line in enumerate(stripped) if _BEGINS.fullmatch(line)), -1)
    if any(place > begins for place in texts):
        kinds |= dict.fromkeys([place for place in texts if place <= begins], "header")
        texts = {place: line for place, line in texts.items() if place > begins}
    labels = all_labels_of(stripped, texts)
    for place in _only_words(stripped, kinds, {place for place, match in layout.items() if match["times"]}, labels):
        texts[place] = stripped[place]
        del kinds[place]
    first = min([*labels, *(place for place, match in layout.items() if match["times"])]) if labels else 0
    has_header = first not in labels or not labels[first].names_all
    parts, ended = [], True
    for place, line in enumerate(stripped):
        label, ends = labels.get(place, Label("", untimed(line) or line)), bool(_ENDS_SENTENCE.search(line[-9:]))
        if place not in labels and place < first and has_header and (not ends or _LASTS.fullmatch(line)):
            kinds.setdefault(place, "header")
        elif place in labels or place in texts:
            parts.append((place, label, ended))
            ended = ends or label.names_all
    return transcript_of(parts, kinds, lines)


def _only_words(
    lines: Sequence[str], kinds: Mapping[int, Kind], times: Set[int], labels: Mapping[int, Label]
) -> Iterator[int]:
    """The lines that look like a tool's and are all that a speaker says: below the name, and its time."""
    filled = [place for place, line in enumerate(lines) if line]
    after = {-1: -1, **dict(pairwise([*filled, -1]))}
    is_time_above = any(after[place] == min(labels.keys() - times, default=0) for place in times)
    for above in (place for place, label in labels.items() if not label.words):
        has_time = heading_of(lines[above]) is not None
        has_time_below = not has_time and not is_time_above and after[above] in times
        place = after[after[above]] if has_time_below else after[above]
        begins = after[place] < 0 or after[place] in labels
        if (place in times and begins) or (has_time and kinds.get(place) == "note"):
            yield place


def _docx(path: Path) -> str:
    from docx import Document

    try:
        return _words(Document(str(path)).element.body)
    except Exception as error:  # of zipfile, zlib, lxml or docx: a damaged document can raise any
        reason = " ".join(str(error).split())[:80]
        raise QuorumError(f"{path}: is no Word document ({reason}); export it again") from None


def _words(node: Any) -> str:
    """The text of a part of a Word document. Paragraphs are lines, also of text boxes; rows of tables: `Ann: words`."""
    name = node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""  # a comment's tag is a function
    if name in _LEFT_OUT or name == "t":
        return node.text or "" if name == "t" else ""
    if name == "tr":
        cells = [cell for cell in (" ".join(_words(cell).split()) for cell in node) if cell]
        names = [cell for cell in cells[:-1] if not re.fullmatch(rf"{TIMES}|\d{{1,4}}\.?", cell)]
        is_label = names and not all(map(_COLUMN.fullmatch, cells)) and not re.fullmatch(TIMES, cells[-1])
        return f"{' '.join(names)}: {cells[-1]}\n" if is_label else "   ".join(cells) + "\n"
    inner = _SIGNS.get(name, "") + "".join(map(_words, node))
    return f"\n{inner}\n" if name == "txbxContent" else f"{inner}\n" if name == "p" else inner

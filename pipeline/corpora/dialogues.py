"""Published conversations without queries -> dialogues, each with one summary.

SAMSum: Gliwa et al., "SAMSum Corpus: A Human-annotated Dialogue Dataset for Abstractive Summarization", 2019.

AMI (Carletta et al., 2005) and ICSI (Janin et al., 2003), from the files of HMNet: Zhu et al., "A Hierarchical Network
for Abstractive Meeting Summarization with Cross-Domain Pretraining", Findings of EMNLP 2020. QMSum's Product and
Academic meetings are the same recordings in other splits: `clients.manifest.check` refuses a manifest with a recording
in training and in a test.

ELITR: Nedoluzhko et al., "ELITR Minuting Corpus: A Novel Dataset for Automatic Minuting from Multi-Party Meetings in
English and Czech", LREC 2022.

MeetingBank: Hu et al., "MeetingBank: A Benchmark Dataset for Meeting Summarization", ACL 2023.
"""

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.corpora.conversation import Dialogue, Turn
from pipeline.corpora.example import FOLDERS, Split
from pipeline.corpora.text import clean, joined, turns_of
from pipeline.workspace.files import read_jsonl
from pipeline.workspace.record import Json

FILES: dict[Split, str] = {"train": "train", "val": "validation", "test": "test"}
LONGEST_NAME = 40  # letters before a colon, at most, that are a name in SAMSum
ROLES = {"PM": "Project Manager", "ME": "Marketing", "ID": "Industrial Designer", "UI": "User Interface"}
"""AMI's four roles, one person each, by the names that QMSum gives them; ICSI's are titles that several may share."""
REMEDY = "lay it into meetingbank/ of the mirror, and run `dvc repro`"
_UTTERANCE = re.compile(r"\(([^)]+)\)\s*+(.*)")
_TAG = re.compile(r"<[^<>]*>")
_BULLET = re.compile(r"^[\s*•–-]+")


def samsum(folder: Path) -> Iterator[Dialogue]:
    """The dialogues in a folder's `samsum.zip`; some are empty.

    `train.csv`, `validation.csv` and `test.csv`, columns id, dialogue, summary; a line of a dialogue is `Name: words`.
    """
    with zipfile.ZipFile(folder / "samsum.zip") as archive:
        paths = {Path(path).name: path for path in archive.namelist() if not path.startswith("__")}
        for split, name in FILES.items():
            with archive.open(paths[f"{name}.csv"]) as raw:
                for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8", newline=""), restval=""):
                    identity, lines = row["id"].strip(), map(_before_colon, row["dialogue"].splitlines())
                    turns = turns_of(lines, first="Someone")
                    yield Dialogue(identity, split, identity, turns, row["summary"].strip())


def _before_colon(line: str) -> tuple[str | None, str]:
    """(Speaker, words); the speaker is None where a line has no name before a colon."""
    name, colon, words = line.strip().partition(":")
    return (name.strip(), words.strip()) if colon and 0 < len(name) <= LONGEST_NAME else (None, line.strip())


def hmnet(folder: Path) -> Iterator[Dialogue]:
    """The meetings of AMI or ICSI in `train`, `dev` and `test` somewhere below a folder.

    Gzipped JSON lines, a meeting a line: `id`, `meeting` [{speaker, role, utt: {word: [...]}}], `summary` [sentence].
    """
    for split, name in FOLDERS.items():
        for path in sorted(folder.rglob(f"{name}/*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as stream:
                for line in stream:
                    yield _meeting(json.loads(line), split)


def _meeting(row: Json, split: Split) -> Dialogue:
    said = [(ROLES.get(t["role"]) or f"{t['role']} {t['speaker']}", joined(t["utt"]["word"])) for t in row["meeting"]]
    summary = " ".join(joined(sentence.split()) for sentence in row["summary"])
    turns = tuple(Turn(speaker, text) for speaker, text in said if text)
    return Dialogue(str(row["id"]), split, str(row["id"]), turns, clean(summary))


def elitr(folder: Path) -> Iterator[Dialogue]:
    """The meetings in `train`, `dev` and `test` somewhere below a folder; some have no minutes. `test2` is left out.

    A folder a meeting, in it one `transcript_MAN*.txt` with a line an utterance, `(SPEAKER) words` or just words of the
    speaker before, and `minutes_GENER_annot*.txt`, of which the first by name is the reference. Markers such as
    `<laugh>` go.
    """
    for split, name in FOLDERS.items():
        transcripts = {path.parent: path for path in sorted(folder.rglob(f"{name}/*/transcript*.txt"), reverse=True)}
        for meeting, transcript in sorted(transcripts.items()):
            minutes = sorted(meeting.glob("minutes_GENER*.txt"))[:1]
            turns = turns_of(map(_utterance, transcript.read_text(encoding="utf-8-sig").splitlines()), "SPEAKER")
            summary = _sentences("".join(path.read_text(encoding="utf-8-sig") for path in minutes))
            yield Dialogue(meeting.name, split, meeting.name, turns, summary)


def _utterance(line: str) -> tuple[str | None, str]:
    """(Speaker, words); the speaker is None where a line names none."""
    match = _UTTERANCE.match(line.strip())
    return (match.group(1), clean(_TAG.sub(" ", match.group(2)))) if match else (None, clean(_TAG.sub(" ", line)))


def _sentences(minutes: str) -> str:
    """Minutes are bullet points: their text, a sentence a point."""
    points = [_BULLET.sub("", line).strip() for line in minutes.splitlines()]
    return clean(" ".join(point if point[-1] in ".?!:" else f"{point}." for point in points if point))


def meetingbank(folder: Path) -> Iterator[Dialogue]:
    """The segments in three files, `.json` or `.jsonl`. A meeting's segments may be in several splits.

    JSON lines, a segment of a city council's meeting a line: `id`, `uid` (city, date and item:
    `SeattleCityCouncil_12142015_Res 31669`), `transcript` (running text, no speakers) and `summary`.
    """
    for split, name in FILES.items():
        for row in read_jsonl(min(folder.rglob(f"{name}.json*"), default=folder / f"{name}.json"), REMEDY):
            uid, transcript, summary = str(row["uid"]), clean(row["transcript"]), clean(row["summary"])
            # City and date are the meeting; what follows is the item of its agenda.
            meeting = "_".join(uid.split("_")[:2])
            yield Dialogue(uid, split, meeting, (Turn("Speaker", transcript),) if transcript else (), summary)


DIALOGUES: dict[str, tuple[str, Callable[[Path], Iterator[Dialogue]]]] = {
    "samsum": ("SAMSum", samsum),
    "ami": ("AMI", hmnet),
    "icsi": ("ICSI", hmnet),
    "elitr": ("ELITR", elitr),
    "meetingbank": ("MeetingBank", meetingbank),
}
"""Corpus -> its client in a federation by domain, and its reader."""
CLIENT_OF = {corpus: client for corpus, (client, _) in DIALOGUES.items()}

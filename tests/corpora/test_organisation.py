"""A folder of meetings as an organisation has it: summaries beside them, what is wrong and where, roles for names."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.__main__ import app
from pipeline.corpora.organisation import check, read_meeting, to_json
from pipeline.corpora.own import split_folder
from pipeline.corpora.qmsum import parse_meeting
from pipeline.corpora.roles import roles_of, with_roles
from pipeline.errors import QuorumError
from pipeline.workspace.words import WHOLE

TALK = "Ann Lee: Bob, how much is left?\nBob Ray: Ann, not much.\nAnn Lee: So we stop.\n"


def lay(folder: Path, **files: str) -> Path:
    """Files by name, whose dots are written `__`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content, encoding="utf-8")
    return folder


def test_a_summary_beside_a_meeting_is_of_the_whole(tmp_path: Path) -> None:
    lay(tmp_path, may__txt=TALK, may__summary__txt="Money is short.\nThey stop.\n")
    (query,) = read_meeting(tmp_path / "may.txt").queries
    assert (query.query, query.answer, query.spans) == (WHOLE, "Money is short. They stop.", ((0, 2),))


def test_a_table_has_a_summary_a_row(tmp_path: Path) -> None:
    """Turns are counted from 1; an empty cell is the whole meeting, an empty query asks for all of it."""
    table = "file,query,summary,turns\nmay.txt,How much is left?,Not much.,1-2\nmay.txt,,They stop.,\njune.txt,Q,S,\n"
    lay(tmp_path, may__txt=TALK, june__txt=TALK, all__csv=table)
    found = [(q.query, q.answer, q.spans) for q in read_meeting(tmp_path / "may.txt").queries]
    assert found == [("How much is left?", "Not much.", ((0, 1),)), (WHOLE, "They stop.", ((0, 2),))]


def test_what_is_written_is_qmsums_schema(tmp_path: Path) -> None:
    lay(tmp_path, may__txt=TALK, may__summary__txt="They stop.")
    meeting = read_meeting(tmp_path / "may.txt")
    (tmp_path / "may.json").write_text(json.dumps(to_json(meeting)), encoding="utf-8")
    assert parse_meeting(tmp_path / "may.json") == meeting


def test_every_file_has_its_row_and_its_fault(tmp_path: Path) -> None:
    table = "file,query,summary,turns\ngone.txt,Q,S,\n"
    lay(tmp_path, may__txt=TALK, june__txt="no speaker\n", july__txt=TALK, july__summary__txt="S", all__csv=table)
    rows = {row["file"]: row for row in (one.to_row() for one in check(tmp_path))}
    assert rows["july.txt"] == {
        "file": "july.txt",
        "format": "txt",
        "turns": 3,
        "speakers": "2: Ann Lee, Bob Ray",
        "words": 11,
        "queries": 1,
        "wrong": "",
    }
    assert rows["may.txt"]["wrong"] == "no summary, so it cannot train"
    assert rows["june.txt"]["wrong"] == "line 1: no speaker; begin lines with `Speaker: `"
    assert rows["all.csv"]["wrong"] == "line 2: 'gone.txt' is no meeting of this folder"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a__csv": "file,query\n"}, "a.csv: has no column 'summary'; it has 'file', 'query', and needs file"),
        ({"a__csv": "file,query,summary,turns\nmay.txt,Q,,\n"}, "line 2: summary is empty"),
        ({"a__csv": "file,query,summary,turns\nmay.txt,Q,S,2-9\n"}, "line 2: turns '2-9': give A-B with 1 <= A"),
        ({"a__csv": f"file,query,summary,turns\nmay.txt,Q,S,{'9' * 5000}-9\n"}, "line 2: turns '9999"),
        ({"a__csv": "file,query,summary\nmay.txt,Q,They stop, and go.\n"}, "line 2: 4 fields, and the header has 3"),
        ({"may__summary__txt": " \n"}, r"may.summary.txt: is empty"),
    ],
)
def test_a_wrong_summary_is_named(files: dict[str, str], message: str, tmp_path: Path) -> None:
    lay(tmp_path, may__txt=TALK, **files)
    with pytest.raises(QuorumError, match=message):
        read_meeting(tmp_path / "may.txt")


@pytest.mark.parametrize(
    ("files", "message"),
    [({}, "holds no meeting"), ({"may__txt": TALK, "may__vtt": "WEBVTT\n"}, r"may.vtt: may.txt has the same name")],
)
def test_a_folder_that_cannot_be_used_is_named(files: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match=message):
        check(lay(tmp_path / "f", **files))
    with pytest.raises(QuorumError, match="is no folder"):
        check(tmp_path / "gone")


def test_meetings_that_lie_in_folders_of_splits_are_checked_too(tmp_path: Path) -> None:
    lay(tmp_path / "train", may__txt=TALK, may__summary__txt="S")
    lay(tmp_path / "test", june__txt=TALK)
    assert [one.path.name for one in check(tmp_path)] == ["may.txt", "june.txt"]


def test_the_command_prints_the_table_and_ends_with_what_cannot_be_used(tmp_path: Path) -> None:
    lay(tmp_path, may__txt=TALK, may__summary__txt="S", june__txt="no speaker\n")
    done = CliRunner().invoke(app, ["meetings", "check", str(tmp_path)])
    assert "may.txt" in done.output
    assert "1 meetings can be read; 1 summaries" in done.output
    assert isinstance(done.exception, QuorumError)
    assert "1 files cannot be used: june.txt" in str(done.exception)


def test_a_fault_of_any_file_is_a_row_and_hides_no_other(tmp_path: Path) -> None:
    """Cut XML in a Word document, deep JSON, a wrong header; markup in a name, and a cell of 140,000 letters."""
    header = "file,query,summary,turns\n"
    rows = f"may.txt,Q,{'word ' * 28_000},\nmay.txt,Q,,\nmay.txt,Q,S,7-9\n[/x],Q,S,\n"
    lay(tmp_path, may__txt=TALK, deep__json="[" * 100_000, a__csv="file;summary\n", b__csv=header + rows)
    (tmp_path / "c.csv").mkdir()
    with zipfile.ZipFile(tmp_path / "cut.docx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types><Def")
    done = CliRunner().invoke(app, ["meetings", "check", str(tmp_path)], env={"COLUMNS": "300"})
    assert isinstance(done.exception, QuorumError)
    assert "5 files cannot be used: cut.docx, deep.json, a.csv, b.csv, c.csv" in str(done.exception)
    assert "1 meetings can be read; 1 summaries" in done.output
    for reason in ("is no Word document", "malformed JSON", "has no column 'file'", "'[/x]' is no meeting"):
        assert reason in done.output
    assert [one.wrong.partition(":")[0] for one in check(tmp_path) if one.path.name == "b.csv"] == [
        "line 3",
        "line 4",
        "line 5",
    ]


def test_own_meetings_of_all_formats_are_split_and_written_in_one(tmp_path: Path) -> None:
    for number in range(4):
        lay(tmp_path / "own", **{f"m{number}__txt": TALK, f"m{number}__summary__txt": "They stop."})
    split_folder(tmp_path / "own", tmp_path / "raw", roles=True)
    written = sorted((tmp_path / "raw").rglob("*.json"))
    assert [path.parent.name for path in written] == ["test", "train", "train", "val"]
    assert {turn.speaker for turn in parse_meeting(written[0]).turns} == {"Speaker 1", "Speaker 2"}


def test_names_become_roles_in_what_is_said_and_in_summaries(tmp_path: Path) -> None:
    lay(tmp_path, may__txt=TALK, may__summary__txt="Bob Ray tells Ann that money is short.")
    meeting, _ = with_roles(read_meeting(tmp_path / "may.txt"))
    assert [(turn.speaker, turn.text) for turn in meeting.turns] == [
        ("Speaker 1", "Speaker 2, how much is left?"),
        ("Speaker 2", "Speaker 1, not much."),
        ("Speaker 1", "So we stop."),
    ]
    assert meeting.queries[0].answer == "Speaker 2 tells Speaker 1 that money is short."


def test_a_name_that_two_share_is_nobodys() -> None:
    """Short parts stay: they are words, too."""
    assert roles_of(["Ann Lee", "Bob Lee", "Li Wu"]) == {
        "Ann Lee": "Speaker 1",
        "Bob Lee": "Speaker 2",
        "Li Wu": "Speaker 3",
        "Ann": "Speaker 1",
        "Lee": "a speaker",
        "Bob": "Speaker 2",
    }


def test_a_name_within_a_word_stays(tmp_path: Path) -> None:
    lay(tmp_path, may__txt="Ann: The Annex is Ann's.\nBob: Yes.\n")
    meeting, _ = with_roles(read_meeting(tmp_path / "may.txt"))
    assert meeting.turns[0].text == "The Annex is Speaker 1's."


def test_what_may_still_be_a_name_is_listed(tmp_path: Path) -> None:
    """One who is only spoken of, and a speaker in other letters."""
    lay(tmp_path, may__txt="Ann Lee: I told Carol Smith about it yesterday.\nBob: ANN LEE did.\n")
    _, missed = with_roles(read_meeting(tmp_path / "may.txt"))
    assert "Carol Smith" in missed
    assert "ANN LEE" in missed

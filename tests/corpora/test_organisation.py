"""A folder of meetings as an organisation has it: summaries beside them, what is wrong and where, roles for names."""

import unicodedata
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.__main__ import app
from pipeline.corpora.conversation import Turn
from pipeline.corpora.organisation import check, meetings_of, split_folder
from pipeline.corpora.published_files import content_of
from pipeline.corpora.qmsum import parse_meeting
from pipeline.corpora.roles import with_roles
from pipeline.errors import QuorumError
from pipeline.workspace.files import write_text
from pipeline.workspace.words import WHOLE

TALK = "Ann Lee: Bob, how much is left?\nBob Ray: Ann, not much.\nAnn Lee: So we stop.\n"
HEADER = "file,query,summary,turns\n"
LONG = "a ward round of the internal medicine department"
WRONG = [
    ({"june__summary__txt": "They stop."}, r"june.summary.txt: has no meeting of its name"),
    ({"a__csv": f"{HEADER}may.txt,Q,S,{'9' * 5000}-9\n"}, "line 2: turns '9999"),
    ({"may__summary__txt": " \n"}, r"may.summary.txt: summary is empty"),
]


def lay(folder: Path, **files: str) -> None:
    """Files by name, whose dots are written `__`."""
    for name, content in files.items():
        write_text(folder / name.replace("__", "."), content)


def test_a_meeting_has_its_summary_and_those_of_tables(tmp_path: Path) -> None:
    """Turns are counted from 1. An empty cell is the entire meeting, an empty query the default one."""
    table = f"{HEADER}may.txt,How much is left?,Not much.,1-2\nmay.txt,,They stop.,\njune.txt,Q,S,\n"
    lay(tmp_path, may__txt=TALK, may__summary__txt="Money is short.\nThey stop.\n", june__txt=TALK, all__csv=table)
    assert [(q.query, q.answer, q.spans) for q in meetings_of(tmp_path)[tmp_path / "may.txt"].queries] == [
        (WHOLE, "Money is short. They stop.", ((0, 2),)),
        ("How much is left?", "Not much.", ((0, 1),)),
        (WHOLE, "They stop.", ((0, 2),)),
    ]


@pytest.mark.parametrize(
    ("table", "encoding"),
    [
        ("file;query;summary;turns\nBüro.txt;Q;Short; so.;\n", "utf-8"),
        ("sep=;\nfile;query;summary;turns\nBüro.txt;Q;Short; so.;1\n", "utf-8"),
        ("File, Query, Summary\nBüro.txt,Q,Short; so.\n", "utf-8"),
        ("\n FILE ;Query;SUMMARY;;\nBüro.txt ;Q;Short; so.;\n;;;;\n", "cp1252"),
        ("file\tquery\tsummary\nBüro.txt\tQ\tShort; so.\n", "utf-16"),
    ],
    ids=["semicolons", "Excel's separator", "capitals and blanks", "Excel's empty cells and rows", "tabs"],
)
def test_a_table_is_as_excel_writes_it(table: str, encoding: str, tmp_path: Path) -> None:
    """A file's name may be decomposed, as on a Mac, where the table's is composed; so may that of its summary."""
    semicolons = table.replace("Short; so.", '"Short; so."')
    lay(tmp_path, **{f"{unicodedata.normalize('NFD', 'Büro')}__txt": TALK, "Büro__summary__txt": "All."})
    (tmp_path / "a.CSV").write_bytes(semicolons.encode(encoding))
    (meeting,) = meetings_of(tmp_path).values()
    assert [(one.query, one.answer) for one in meeting.queries] == [(WHOLE, "All."), ("Q", "Short; so.")]


@pytest.mark.parametrize(("files", "message"), WRONG)
def test_a_wrong_summary_or_folder_is_named(files: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="has no meeting"):
        meetings_of(tmp_path)
    lay(tmp_path, may__txt=TALK, **files)
    with pytest.raises(QuorumError, match=message):
        meetings_of(tmp_path)
    with pytest.raises(QuorumError, match="is not a folder"):
        check(tmp_path / "gone")


def test_a_meeting_of_one_name_in_two_splits_is_named(tmp_path: Path) -> None:
    """Its examples would have one id. The files of macOS and Word beside a meeting are none."""
    lay(tmp_path / "train", **{"may__txt": TALK, "._may__txt": "\1", "~$may__docx": ""})
    lay(tmp_path / "val", may__txt=TALK.replace("Ann", "Al"))
    with pytest.raises(QuorumError, match=r"val/may.txt: has the name of a meeting in another split; rename"):
        meetings_of(tmp_path)


def test_a_meeting_beside_the_folders_of_splits_is_named(tmp_path: Path) -> None:
    lay(tmp_path / "train", may__txt=TALK)
    lay(tmp_path, june__txt=TALK)
    with pytest.raises(QuorumError, match=r"june.txt: is beside train/; move it into a split's folder"):
        meetings_of(tmp_path)


def test_a_fault_of_any_file_is_a_row_and_hides_no_other(tmp_path: Path) -> None:
    """Of split folders, too; in full at 30 columns, without control characters. A cell has 140,000 letters."""
    rows = f"{HEADER}may.txt,Q,{'word ' * 28_000},\nmay.txt,Q,,\nmay.txt,Q,S,,5\nmay.txt,Q,S,7-9\n[/x],Q,S,\n"
    wrong = {"may__vtt": "", "deep__json": "[" * 100_000, "a__csv": "file;summary\n", "b__csv": rows}
    lay(tmp_path / "train", may__txt=TALK, **wrong)
    (tmp_path / "train" / "c.csv").mkdir()
    with zipfile.ZipFile(tmp_path / "train" / "cut.docx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types><Def")
    lay(tmp_path / "test", **{f"{LONG}__txt": TALK, "e\x1b[2Jf__vtt": "x", "zoom__zip": "x", "README__md": "x"})
    done = CliRunner().invoke(app, ["meetings", "check", str(tmp_path)], env={"COLUMNS": "30"})
    assert isinstance(done.exception, QuorumError)
    files = "cut.docx, deep.json, may.vtt, a.csv, b.csv, c.csv, e\x1b[2Jf.vtt"
    assert f"7 files cannot be used: {files}" in str(done.exception)
    expected = (
        "may.txt: 3 turns, 11 words, 1 summaries, speakers 2: Ann Lee, Bob Ray; 3 lines: 3 used (line 1: ",
        "cut.docx: is no Word document",
        "deep.json: line 1: malformed JSON",
        "may.vtt: may.txt has the same name",
        "a.csv: has no column 'query'; it has 'file', 'summary'",
        "b.csv: line 3: summary is empty",
        "b.csv: line 5: turns '7-9'",
        "b.csv: line 6: no meeting here is named '[/x]'",
        "b.csv: line 4: 5 fields, and the header has 4",
        "c.csv: could not be read",
        f"{LONG}.txt: 3 turns, 11 words, 0 summaries, speakers 2: Ann Lee, Bob Ray; no summary, so it cannot train",
        "e\\x1b[2Jf.vtt: has no turn",
        "zoom.zip: is not read",
        f"{tmp_path}/test/{LONG}.txt: has the words of {tmp_path}/train/may.txt; remove one of them",
        "2 meetings can be read; 1 summaries",
    )
    for line, begin in zip(done.output.splitlines(), expected, strict=True):
        assert line.startswith(begin)


@pytest.mark.parametrize("roles", [False, True])
def test_own_meetings_are_split_always_the_same_way_and_written_in_qmsums_schema(roles: bool, tmp_path: Path) -> None:
    """Of 20 meetings 16 train, 2 validate and 2 test."""
    for number in range(20):
        lay(tmp_path / "own", **{f"m{number}__txt": TALK, f"m{number}__summary__txt": "They stop."})
    for into in ("raw", "again"):
        split_folder(tmp_path / "own", tmp_path / into, roles=roles)
    written = sorted((tmp_path / "raw").rglob("*.json"))
    assert [path.parent.name for path in written] == ["test"] * 2 + ["train"] * 16 + ["val"] * 2
    assert content_of(tmp_path / "raw") == content_of(tmp_path / "again")
    meeting = meetings_of(tmp_path / "own")[tmp_path / "own" / f"{written[0].stem}.txt"]
    assert parse_meeting(written[0]) == (with_roles(meeting)[0] if roles else meeting)


def test_names_become_roles_in_what_is_said_and_in_summaries(tmp_path: Path) -> None:
    """A name within a word stays."""
    words = "Ann Lee: The Annex is Bob's.\nBob: Yes, Ann.\n"
    lay(tmp_path, may__txt=words, may__summary__txt="Bob agrees with Ann Lee.")
    meeting, _ = with_roles(*meetings_of(tmp_path).values())
    assert meeting.turns == (Turn("Speaker 1", "The Annex is Speaker 2's."), Turn("Speaker 2", "Yes, Speaker 1."))
    assert meeting.queries[0].answer == "Speaker 2 agrees with Speaker 1."


def test_an_unknown_speaker_has_no_role(tmp_path: Path) -> None:
    lay(tmp_path, may__txt="Unknown words.\n", june__txt="[SPEAKER_00]: Unknown to me.\nSo.\n")
    turns = [with_roles(meeting)[0].turns for meeting in meetings_of(tmp_path).values()]
    assert turns[0] == (Turn("Speaker 1", "Unknown to me."), Turn("Unknown", "So."))
    assert turns[1] == (Turn("Unknown", "Unknown words."),)


def test_what_may_still_be_a_name_is_listed(tmp_path: Path) -> None:
    """One who is only spoken of, and a speaker in other letters."""
    lay(tmp_path, may__txt="Ann Lee: I told Carol Smith about it yesterday.\nBob: ANN LEE did.\n")
    _, missed = with_roles(*meetings_of(tmp_path).values())
    assert "Carol Smith" in missed
    assert "ANN LEE" in missed


def test_names_are_replaced_in_languages_whose_words_touch_them(tmp_path: Path) -> None:
    """Chinese, and Korean with a particle; `Bo` in `Bote` is no name."""
    words = "张伟: 김철수가 说张伟来。\n김철수: 好。\nBo: Der Bote.\n" * 2
    lay(tmp_path, may__txt=words, may__summary__txt="张伟同意。")
    meeting, _ = with_roles(*meetings_of(tmp_path).values())
    assert [turn.text for turn in meeting.turns] == ["Speaker 2가 说Speaker 1来。", "好。", "Der Bote."] * 2
    assert meeting.queries[0].answer == "Speaker 1同意。"

"""Corpora: cleaning, spans, sources and Table II."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from conftest import MIRROR, needs_mirror

from pipeline.corpora import published_files, sources
from pipeline.corpora.catalog import SOURCES
from pipeline.corpora.conversation import Conversation, Notes, Turn
from pipeline.corpora.organisation import split_folder
from pipeline.corpora.published_files import Listed
from pipeline.corpora.qmsum import DOMAINS, SpanEnd, examples_of, parse_meeting, read_domains, span_turns
from pipeline.corpora.statistics import COLUMNS, PAPER, compared, equal_texts, reference, with_lost_letters
from pipeline.corpora.text import clean
from pipeline.errors import QuorumError
from pipeline.workspace.files import sha256_file, write_bytes, write_json
from pipeline.workspace.layout import source_record

TURNS = tuple(Turn("A", str(i)) for i in range(10))


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("{vocalsound} Okay {disfmarker} so {gap}", "Okay so"),
        ("the L_C_D_ on a T_V_", "the LCD on a TV"),
        ("two T_V_s", "two TVs"),
        ("R_ and D_", "R and D"),
        ("a  b\n c", "a b c"),
        ("snake_case stays", "snake_case stays"),
        ("{ pause } yes", "yes"),
    ],
)
def test_markers_go_and_letters_join(raw: str, cleaned: str) -> None:
    assert clean(raw) == cleaned


def test_spans_are_inclusive_unless_the_paper_reads_them() -> None:
    assert [t.text for t in span_turns(TURNS, ((1, 2), (5, 5)), "inclusive")] == ["1", "2", "5"]
    assert [t.text for t in span_turns(TURNS, ((1, 2), (5, 5)), "exclusive")] == ["1"]


def write_meeting(path: Path, **changes: Any) -> Path:
    meeting: dict[str, Any] = {
        "meeting_transcripts": [{"speaker": "A", "content": "hello"}, {"speaker": "B", "content": "bye"}],
        "specific_query_list": [{"query": "What?", "answer": "Greetings.", "relevant_text_span": [["0", "1"]]}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(meeting | changes), encoding="utf-8")
    return path


def test_what_is_mended_is_counted(tmp_path: Path) -> None:
    queries = [
        {"query": "q", "answer": "kept", "relevant_text_span": [["1", "9"]]},
        {"query": "q", "answer": " ", "relevant_text_span": [["0", "1"]]},
        {"query": "q", "answer": "no turns", "relevant_text_span": []},
    ]
    meeting = parse_meeting(write_meeting(tmp_path / "m.json", specific_query_list=queries))
    notes = Notes()
    examples = examples_of(meeting, "d", "train", "inclusive", notes)
    assert [len(e.turns) for e in examples] == [1, 0]
    assert (notes.spans_past_end, notes.dropped_empty_target, notes.kept_without_turns) == (1, ["d/d/m/1"], ["d/d/m/2"])


def test_meetings_that_cannot_be_split_or_read_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(QuorumError, match="is not a folder"):
        split_folder(tmp_path / "none", tmp_path / "a")
    broken = write_meeting(tmp_path / "train" / "m1.json")
    with pytest.raises(QuorumError, match="needs at least three"):
        split_folder(tmp_path / "train", tmp_path / "a")
    with pytest.raises(QuorumError, match="val: holds no meeting"):
        read_domains({"d": tmp_path}, "inclusive")
    broken.write_text('{"meeting_transcripts": [', encoding="utf-8")
    with pytest.raises(QuorumError, match=r"train/m1\.json: line 1: malformed JSON"):
        split_folder(tmp_path / "train", tmp_path / "a")


def test_own_meetings_of_one_name_are_two_meetings(tmp_path: Path) -> None:
    """Else one of them in training and the other in test would look like a leak."""
    meeting = parse_meeting(write_meeting(tmp_path / "monday.json"))
    clients = ("Clinic", "Hospital", "Product")
    of = [examples_of(meeting, client, "train", "inclusive", Notes())[0].meeting for client in clients]
    assert of == ["Clinic/monday", "Hospital/monday", "monday"]


NAMES = ("data/Academic/train/a.json", "data/Academic/test/b.json")


@pytest.fixture
def small_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror of two files, and their checksums."""
    for name in NAMES:
        write_json(tmp_path / "qmsum" / name, name)
    lines = [f"{sha256_file(tmp_path / 'qmsum' / name)}  {name}\n" for name in NAMES]
    (tmp_path / "qmsum.sha256").write_text("".join(lines))
    monkeypatch.setattr(published_files, "CHECKSUMS", tmp_path)
    monkeypatch.setenv("QUORUM_MIRROR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("source", "mirror", "content", "message"),
    [
        ("mirror", ".", b"x", r"qmsum/data/Academic/test/b\.json.*truncated or altered"),
        ("mirror", ".", None, r"qmsum/data/Academic/test/b\.json.*is missing from the mirror"),
        ("mirror", "", b"", "set QUORUM_MIRROR"),
        ("mirror", "gone", b"", "gone: is not a folder"),
        ("upstream", ".", b"", r"http://127.0.0.1:9/data/Academic/t.*json: could not be fetched"),
    ],
    ids=["damaged", "missing", "no mirror", "no folder", "out of reach"],
)
def test_a_source_that_cannot_be_used_is_one_line(
    small_mirror: Path, monkeypatch: pytest.MonkeyPatch, source: Any, mirror: str, content: bytes | None, message: str
) -> None:
    monkeypatch.setitem(SOURCES, "qmsum", Listed("qmsum", "qmsum", "c0", "http://127.0.0.1:9/"))
    monkeypatch.setenv("QUORUM_MIRROR", mirror and str(small_mirror / mirror))
    monkeypatch.setenv("DVC_ROOT", str(small_mirror))
    path = small_mirror / "qmsum" / NAMES[1]
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuorumError, match=message):
        sources.fetch("qmsum", source, small_mirror / "out")


def test_upstream_serves_the_mirrors_bytes_and_resumes(
    small_mirror: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`file://` instead of the network; a file that was downloaded before is not downloaded again."""
    upstream = (small_mirror / "qmsum").as_uri() + "/"
    monkeypatch.setitem(SOURCES, "qmsum", Listed("qmsum", "qmsum", "c0", upstream))
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "home"))
    sources.fetch("qmsum", "mirror", tmp_path / "copied")
    sources.fetch("qmsum", "upstream", tmp_path / "out")
    (small_mirror / "qmsum" / NAMES[1]).unlink()
    sources.fetch("qmsum", "upstream", tmp_path / "again")
    for into in ("copied", "out", "again"):
        assert {path.read_text() for path in (tmp_path / into).rglob("*.json")} == {f'"{name}"\n' for name in NAMES}


def test_the_best_source_that_answers_is_taken_and_a_better_one_than_was_used_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files of a mirror are those of a pinned commit; who wants the sample has it."""
    monkeypatch.chdir(tmp_path)
    within = {"sample"}
    monkeypatch.setattr(sources, "reachable", lambda corpus, source: source in within)
    assert sources.choose("qmsum", "auto") == "sample"
    assert "SAMPLE" in capsys.readouterr().err
    assert not sources.is_outdated("qmsum", "auto"), "nothing was used yet"
    write_json(source_record("qmsum"), {"source": "sample"})
    assert not sources.is_outdated("qmsum", "auto")
    within.add("mirror")
    assert [sources.choose("qmsum", wanted) for wanted in ("auto", "upstream")] == ["mirror", "upstream"]
    assert [sources.is_outdated("qmsum", wanted) for wanted in ("auto", "sample")] == [True, False]
    write_json(source_record("qmsum"), {"source": "mirror"})
    assert not sources.is_outdated("qmsum", "auto")


def test_changed_files_without_a_pinned_commit_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUORUM_MIRROR", str(tmp_path / "mirror"))
    minutes = tmp_path / "mirror" / "elitr" / "test" / "minutes.txt"
    write_bytes(minutes, b"as it was fetched")
    sources.fetch("elitr", "mirror", source_record("elitr").parent)
    write_json(source_record("elitr"), {"source": "mirror"})
    assert not sources.is_outdated("elitr", "auto")
    minutes.write_text("as it is corrected")
    assert sources.is_outdated("elitr", "auto")
    assert sources.is_outdated("elitr", "mirror")


@needs_mirror
def test_table_two_comes_out_of_the_real_files() -> None:
    """Counts under both readings; turns and speakers exactly, all nine of each, under the exclusive one.

    Bmr023, a test meeting, and Bed010, one for validation, share an answer.
    """
    folders = {domain: MIRROR / "qmsum/data" / domain for domain in DOMAINS}
    inclusive, exclusive = (read_domains(folders, end)[0] for end in get_args(SpanEnd))
    assert equal_texts(inclusive, reference) == {"val_in_train": 0, "test_in_train": 0, "test_in_val": 1}
    rows = compared(inclusive, exclusive)
    assert len(rows) == 9
    for row in rows:
        paper = dict(zip(COLUMNS, PAPER[str(row["domain"]), str(row["split"])], strict=True))
        assert row["inclusive_pairs"] == row["exclusive_pairs"] == paper["pairs"]
        assert row["exclusive_turns"] == pytest.approx(paper["turns"], abs=0.0051)
        assert row["exclusive_speakers"] == pytest.approx(paper["speakers"], abs=0.0051)
        assert row["exclusive_summary_words"] == pytest.approx(paper["summary_words"], abs=0.13)
    assert sum(int(row["exclusive_without_turns"]) for row in rows) == 36
    assert sum(int(row["inclusive_without_turns"]) for row in rows) == 0


def test_letters_that_latin_rouge_loses_are_counted_by_corpus() -> None:
    """Two of five in one of Klinik's references; Council's one of fifty is no more than 2%."""
    references = [("Klinik", "Größe"), ("Klinik", "x" * 45), ("Council", "é" + "x" * 49)]
    examples = [Conversation("i", corpus, "d", "test", "m", "q?", (), text) for corpus, text in references]
    (line,) = with_lost_letters("qmsum", examples)
    assert line.startswith("Klinik: ROUGE by latin words loses over 2% of the letters in 1 of 2 references")

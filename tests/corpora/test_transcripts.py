"""Transcripts as Zoom, Teams, Meet and Webex export them, on short made-up meetings."""

from pathlib import Path
from time import process_time

import pytest

from pipeline.corpora.transcripts import read
from pipeline.errors import QuorumError

TIMES = "00:00:01.000 --> 00:00:03.000"


def cues(*parts: str) -> str:
    """Cues, each with its identifier and its words."""
    return "\n".join(f"{name}\n{TIMES}\n{words}\n" for name, words in zip(parts[::2], parts[1::2], strict=True))


N = 200_000
SIGNS = ("<", "<v ", "1", "{ ", "word ", ":", "[a](", "&#1", '"', "0:00 --> ", '!"', "a:b ")


@pytest.mark.parametrize("ending", ["txt", "vtt", "srt"])
@pytest.mark.parametrize(
    "line",
    [" " * 2_000 + "a b", " " * N + "a b", "a" + " " * N + "b", *(sign * (N // len(sign)) for sign in SIGNS)],
    ids=lambda line: f"{len(line)} of {line[:5]!r}",
)
def test_a_line_of_any_length_is_read_in_little_time(line: str, ending: str, tmp_path: Path) -> None:
    """Milliseconds of processor; in time that grows with the square of the length each would take hours."""
    path = tmp_path / f"a.{ending}"
    words = f"Ann: x\n{line}"
    path.write_text({"txt": words, "vtt": f"WEBVTT\n\n{cues('1', words)}", "srt": cues("1", words)}[ending])
    began = process_time()
    (turn,) = read(path).turns
    assert process_time() - began < 5
    assert turn.speaker == "Ann"


REVERSED = b"""{"meeting_transcripts": [{"speaker": "A", "content": "a"}],
 "specific_query_list": [{"query": "q", "answer": "a", "relevant_text_span": [["3", "1"]]}]}"""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"Ann: a\0b\n", "is no text in any known encoding"),
        ("a.json", b'{"meeting_transcripts": [{"speaker": "A", "content": "\\ud800"}]}', "half of a surrogate pair"),
        ("a.json", b"[" * 100_000, "malformed JSON"),
        ("a.json", b"1" * 5_000, "malformed JSON"),
        ("a.vtt", b"WEBVTT\n", "has no turn"),
        ("a.sbv", b"Ann: not a subtitle\n", "has no turn"),
        ("a.txt", b"\n\n", "has no turn"),
        ("a.vtt", b"Ann: not a vtt\n", "has no turn"),
        ("a.srt", b"Ann: not an srt\n", "has no turn"),
        ("a.docx", b"PK no document", "is no Word document"),
        ("a.pdf", b"%PDF", ".pdf is no format that is read; export the meeting as .vtt, .srt, .docx, .txt, .json"),
        ("a.json", b"{}", "not a QMSum meeting: meeting_transcripts: is missing"),
        ("a.json", b'{"meeting_transcripts": []}', "meeting_transcripts: List should have at least 1 item"),
        ("a.json", b'{"meeting_transcripts": [{"speaker": "A"}]}', "meeting_transcripts.0.content: is missing"),
        ("a.json", REVERSED, "specific_query_list.0.relevant_text_span: [3, 1] runs backwards"),
        ("gone.vtt", None, "gone.vtt: no such file"),
    ],
)
def test_a_file_that_is_none_is_one_line(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(QuorumError) as caught:
        read(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

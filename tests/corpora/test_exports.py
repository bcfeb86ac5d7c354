"""Exports of meetings, in other encodings, damaged, endless: every word has its speaker, or `Unknown`."""

import html
import json
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import pytest
import webvtt
from docx import Document
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.corpora.conversation import Turn
from pipeline.corpora.encodings import decode
from pipeline.corpora.transcripts import READERS, read
from pipeline.errors import QuorumError

TIMES = "00:00:01.000 --> 00:00:03.000"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
"""An emoji of three, with zero-width joiners."""
TEAMS = "Weekly sync-Meeting Transcript\n\nMay 6, 2024, 10:02AM\n\n31m 5s\n\nAnn started transcription\n\n"
TEAMS += "Ann   0:03\nHello.\n\nBob   0:05\nwe have\nlunch, roughly at 12:30\n\nAnn stopped transcription"
OLDER = "0:0:0.0 --> 0:0:3.40\nAnn\nHello.\n\n0:0:4.0 --> 0:0:5.0\nBob Ray\nHi: you.\n\n0:0:6.0 --> 0:0:7.0\nMe."
OTTER = "Weekly sync\nMon, May 6, 2024 10:02AM • 31:05\n\nSUMMARY KEYWORDS\nbudget, time\n\nSPEAKERS\nAnn Lee, Bob\n\n"
OTTER += "Ann Lee  00:00\nTwo options: a or b.\nNote: we wait.\n\nUnknown Speaker  00:12\nHi.\n\n"
OTTER += "Transcribed by https://otter.ai\n"
MEET = "Weekly sync (2024-05-06 10:02 GMT+2) - Transcript\nAttendees\nAnn, Bob\nTranscript\n\n00:00:00\n\n"
MEET += "Ann: Hello.\nBob: Hi.\nMeeting ended after 00:31:05\n"
TIMED = "00:00:01 Ann Lee\nWhen?\n\n00:00:05 Bob Ray\n{}\n\n00:00:09 Ann Lee\nOk.\n"
ANSWERED = "Ann Lee: When? | Bob Ray: {} | Ann Lee: Ok."
TWO_LINES = "Ann Lee\n0:03\nWhen?\nBob\n0:05\n10:30\nAnn Lee\n0:09\nOk."
TITLED = "Prof. Dr. Ann Mae van Lee: Hi. | محمد بن سلمان آل سعود: نعم."
HEADED = "Ann Lee: He said: no. Two: b. | Bob: Note: so."
ROLLING = (" \nhello<00:00:01.500><c> there</c>", "hello there\n ", "hello there\nhow<00:00:02.500><c> are you</c>")
NAMES = ["Ann Lee", "Jörg Müller", "张伟", "Speaker 1", "Dr. O'Neil", "van Dijk, Els", "+1 555", "Chair (Rota (West))"]
WORDS = st.lists(st.text("abzÄéж会0<&-'.,!?🙂", min_size=1, max_size=6), max_size=5)
MEETINGS = st.lists(st.tuples(st.sampled_from(NAMES), WORDS), min_size=1, max_size=6)
Spoken = Sequence[tuple[str, str]]
N = 200_000
SIGNS = ("<", "<v ", "1", "{ ", "word ", ":", "[a](", "&#1", '"', "0:00 --> ", '!"', "a:b ")
REVERSED = b"""{"meeting_transcripts": [{"speaker": "A", "content": "a"}],
 "specific_query_list": [{"query": "q", "answer": "a", "relevant_text_span": [["3", "1"]]}]}"""


def vtt(*cues: str) -> str:
    return "WEBVTT\n\n" + "\n".join(f"{TIMES}\n{words}\n" for words in cues)


def srt(*cues: str) -> str:
    return "\n".join(f"{number}\n{TIMES.replace('.', ',')}\n{words}\n" for number, words in enumerate(cues, 1))


def sbv(*cues: str) -> str:
    return "\n".join(f"0:00:01.000,0:00:03.000\n{words}\n" for words in cues)


def turns_in(folder: Path, name: str, content: str | bytes) -> list[tuple[str, str]]:
    path = folder / name
    if path.suffix == ".docx":
        document = Document()
        for paragraph in str(content).split("\n\n"):
            document.add_paragraph(paragraph)
        document.save(str(path))
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [(turn.speaker, turn.text) for turn in read(path).turns]


@pytest.mark.parametrize(
    ("name", "content", "turns"),
    [
        ("a.srt", srt("[SPEAKER_00]: Shall we?", "[SPEAKER_01]: No."), "SPEAKER_00: Shall we? | SPEAKER_01: No."),
        ("a.vtt", vtt("Bob: Yes.", "[SPEAKER_01]: No.", "So."), "Bob: Yes. | SPEAKER_01: No. | Unknown: So."),
        ("a.txt", "[SPEAKER_00]: Shall we?\nSo.\n", "SPEAKER_00: Shall we? | Unknown: So."),
        ("a.txt", "[SPK_0]: Hi.\n[SPK_1]: Two.\nErst: das.", "SPK_0: Hi. | SPK_1: Two. | Unknown: Erst: das."),
        ("a.vtt", vtt("<v Ann>Hi.</v>", "Erst: das.", "<v Bob>So.</v>"), "Ann: Hi. | Unknown: Erst: das. | Bob: So."),
        ("a.txt", "[0:01] Ann: Hi.\n[0:02] What now?\n[0:03] Really?", "Ann: Hi. What now? Really?"),
        ("a.txt", "<0:01> Ann: Hi.\n{0:02} Bob: Ho.\nAl {0:03}: Ok.", "Ann: Hi. | Bob: Ho. | Al: Ok."),
        (
            "a.txt",
            "Ann Lee - Well - no.\nBob Ray – Hi.\nAnn Lee - Ok.",
            "Ann Lee: Well - no. | Bob Ray: Hi. | Ann Lee: Ok.",
        ),
        (
            "a.txt",
            "It rained - and rained.\nWe went - and came.",
            "Unknown: It rained - and rained. | Unknown: We went - and came.",
        ),
        ("a.txt", "Ann Lee [0:03] Hi.\nBob [0:05] Ho.\nAnn Lee [0:09] Ok.", "Ann Lee: Hi. | Bob: Ho. | Ann Lee: Ok."),
        ("a.txt", "Ann Lee\nHi.\n\nBob Ray\nHo.\n\nAnn Lee\nOk.", "Ann Lee: Hi. | Bob Ray: Ho. | Ann Lee: Ok."),
        (
            "a.txt",
            "Sync\n0:03\nAnn Lee\nHi.\n0:05\nBob\nHo.\n0:09\nAnn Lee\nOk.",
            "Ann Lee: Hi. | Bob: Ho. | Ann Lee: Ok.",
        ),
        ("a.txt", "[0.00s -> 2.5s] Ann: Hi.\n[2s - 3.0] So.", "Ann: Hi. So."),
        ("a.txt", "Ann Lee, 10:15 Uhr\nHallo.\nBob, 10:16 Uhr\nHi.", "Ann Lee: Hallo. | Bob: Hi."),
        ("a.txt", "You: Hi.\nCan: So.\nYou: Ok.", "You: Hi. | Can: So. | You: Ok."),
        (
            "a.vtt",
            vtt("長谷川健太郎: はい。", "张伟（市场部）: 好。", "第一：预算。"),
            "長谷川健太郎: はい。 | 张伟（市场部）: 好。 第一：预算。",
        ),
        ("a.vtt", vtt("Prof. Dr. Ann Mae van Lee: Hi.", "محمد بن سلمان آل سعود: نعم."), TITLED),
        ("a.srt", srt("Ann: Hi.", "NOTE this well."), "Ann: Hi. NOTE this well."),
        ("a.txt", "(speaker 0) Hi: you.\n(speaker ?) Me.", "speaker 0: Hi: you. | Unknown: Me."),
        ("a.txt", "[00:00.000 --> 00:02.000]   (speaker 0) Hi.\n", "speaker 0: Hi."),
        ("a.txt", "[00:00.000 --> 00:02.000]   And so\n[00:02.000 --> 00:03.000]   on.", "Unknown: And so on."),
        ("a.vtt", vtt("<v Speaker0> Hi.", "<v Speaker?> Me."), "Speaker0: Hi. | Unknown: Me."),
        ("a.vtt", vtt("Bob: Yes.", "Ann Lee [Acme]: Hello."), "Bob: Yes. | Ann Lee [Acme]: Hello."),
        ("a.docx", TEAMS, "Ann: Hello. | Bob: we have lunch, roughly at 12:30"),
        ("a.docx", TEAMS.replace("0:03\n", "0:03\n\n"), "Ann: Hello. | Bob: we have lunch, roughly at 12:30"),
        ("a.docx", OLDER.partition("\n\n")[0], "Ann: Hello."),
        ("a.txt", OLDER, "Ann: Hello. | Bob Ray: Hi: you. | Unknown: Me."),
        ("a.vtt", vtt("Ann: Two.", "The first one is this: we wait."), "Ann: Two. The first one is this: we wait."),
        ("a.txt", "Ann: The why is: a.\nThe why is: b.\nNote: c.", "Ann: The why is: a. The why is: b. Note: c."),
        ("a.txt", "ann: hi\nbob: ho\nann: the thing is: no", "ann: hi | bob: ho | ann: the thing is: no"),
        ("a.txt", "A B C D E: hi\nAnn: ho\nA B C D E: ok", "A B C D E: hi | Ann: ho | A B C D E: ok"),
        ("a.vtt", vtt("Ann: We meet\ntomorrow at 10:30", "Bob: ok"), "Ann: We meet tomorrow at 10:30 | Bob: ok"),
        ("a.txt", "Ann: we have\nlunch, roughly at 12:30\nBob: ok", "Ann: we have lunch, roughly at 12:30 | Bob: ok"),
        ("a.txt", "Ann   0:03\nwe meet\nMonday 12:30\nBob   0:09\nok", "Ann: we meet Monday 12:30 | Bob: ok"),
        ("a.txt", TIMED.format("Let's meet at 10:30 AM."), ANSWERED.format("Let's meet at 10:30 AM.")),
        ("a.txt", TIMED.format("10:30 works for me."), ANSWERED.format("10:30 works for me.")),
        ("a.txt", "Ann   0:03\nWhen?\nBob   0:05\n10:30\nAnn   0:09\nOk.", "Ann: When? | Bob: 10:30 | Ann: Ok."),
        ("a.txt", "Al   0:03\nBob started the recording.\nBob   0:05\nNo", "Al: Bob started the recording. | Bob: No"),
        ("a.txt", TWO_LINES, "Ann Lee: When? | Bob: 10:30 | Ann Lee: Ok."),
        ("a.txt", OLDER.replace("Me.", "Ann\n10:30"), "Ann: Hello. | Bob Ray: Hi: you. | Ann: 10:30"),
        ("a.txt", "0:01 okay\n0:03 okay\n0:05 okay\n", "Unknown: 0:01 okay 0:03 okay 0:05 okay"),
        ("a.txt", "Ann: Wie lange?\nBob: Also\n10 Min.\nAnn: Gut.", "Ann: Wie lange? | Bob: Also 10 Min. | Ann: Gut."),
        ("a.txt", "31 Min. 5 Sek.\nAnn   0:03\nHallo.", "Ann: Hallo."),
        ("a.txt", "Date: May 6\nChair: Ann\n\nAnn: Good.\nBob: Hi.\nAnn: So.", "Ann: Good. | Bob: Hi. | Ann: So."),
        ("a.vtt", vtt("Ann Lee: ok", "12125550100: hi"), "Ann Lee: ok | 12125550100: hi"),
        ("a.txt", "2024-05-06: we met", "Unknown: 2024-05-06: we met"),
        ("a.vtt", vtt("Ann Lee: ok", "(Ext) José (Pepe) Ruiz: hi"), "Ann Lee: ok | (Ext) José (Pepe) Ruiz: hi"),
        ("a.txt", "[Ext] Ann Lee  0:03\nGood.", "[Ext] Ann Lee: Good."),
        ("a.vtt", vtt("Ann: ok", "Tina!: hi", "Ann: so", "Tina!: no"), "Ann: ok | Tina!: hi | Ann: so | Tina!: no"),
        ("a.vtt", vtt("Ann: ok", "In 2012: no"), "Ann: ok In 2012: no"),
        ("a.txt", "📝 Notes\nAnn spoke.\n📖 Transcript\nAnn: Hi.\nBob: Ho.", "Ann: Hi. | Bob: Ho."),
        ("a.txt", "Ann: Good.\nBob:\nHi.\nAnn: ok\nBob: so", "Ann: Good. | Bob: Hi. | Ann: ok | Bob: so"),
        ("a.json", '{"segments": [{"text": "Hi", "speaker": null}]}', "Unknown: Hi"),
        ("a.json", '[{"sentence": "Hi", "speaker_name": "Ann"}]', "Ann: Hi"),
        ("a.json", '{"transcription": [{"text": " Hi", "offsets": {}}]}', "Unknown: Hi"),
        ("a.sbv", "0:00:01.000,0:00:02.000\nAnn: we[br]are\\Nhere", "Ann: we are here"),
        ("a.txt", "Ann: 0:03 So.\nBob: 0:05 No.\nAnn: 0:09 Ok.", "Ann: So. | Bob: No. | Ann: Ok."),
        ("a.vtt", vtt("<v Ann>Yeah.</v>", "<v Ann>Yeah.</v>"), "Ann: Yeah. Yeah."),
        ("a.txt", "**Ann Lee** 00:03\nGood.", "Ann Lee: Good."),
        ("a.txt", "1. Ann Lee: Good.\n* *Bob Ray:* Hi.", "Ann Lee: Good. | Bob Ray: Hi."),
        ("a.vtt", f"WEBVTT\n\n1 Ann Lee (7)\n{TIMES}\nHi.\n\nBob Ray\n{TIMES}\nHo.\n", "Ann Lee: Hi. | Bob Ray: Ho."),
        ("a.vtt", f"WEBVTT\n\n{TIMES}\nBob: In\n2024\n{TIMES}\nAnn: Ok.\n", "Bob: In 2024 | Ann: Ok."),
        ("a.srt", srt("Ann Lee: Who?", "Bob Ray:\nMe.", "Ann Lee: Ok."), "Ann Lee: Who? | Bob Ray: Me. | Ann Lee: Ok."),
        ("a.vtt", f'WEBVTT\n\n2 "Robert "Bob" Ray" (2)\n{TIMES}\nHi.\n', 'Robert "Bob" Ray: Hi.'),
        ("a.txt", "2024-05-06T10:15:02Z Ann Lee: Hi.\nBob Ray (00:03 - 00:09): Ho.", "Ann Lee: Hi. | Bob Ray: Ho."),
        ("a.vtt", vtt("<v Reader></v>In the beginning"), "Reader: In the beginning"),
        ("a.vtt", vtt("<v.first Ann Lee>Shall\nwe?</v> <v Bob>Yes.</v>"), "Ann Lee: Shall we? | Bob: Yes."),
        ("a.vtt", f"WEBVTT\n\naaa-0\n{TIMES}\n<v Ann>Hi.</v>\n", "Ann: Hi."),
        ("a.txt", "Ann: At 10:30.\nhttps://x.org is it", "Ann: At 10:30. https://x.org is it"),
        ("a.txt", "Date: May\nAnn Lee   0:03\nHe said: no.\n\nTwo: b.\n[Bob] 10:15:02\nNote: so.\n", HEADED),
        ("a.vtt", vtt("<v Ann O&#39;Neil>R&amp;D</v>"), "Ann O'Neil: R&D"),
        ("a.vtt", vtt("<v Bob>budget < 5 and > 3 <b>ok</b> <unk></v>"), "Bob: budget < 5 and > 3 ok <unk>"),
        ("a.vtt", vtt("<v Ann>Hi.</v>", "Who?", "<v>Me.</v>"), "Ann: Hi. | Unknown: Who? | Unknown: Me."),
        ("a.srt", srt("Ann: hello", "Ann: hello", "Ann: hello\nhow are you"), "Ann: hello how are you"),
        ("a.vtt", vtt("Ann: he", "Ann: he said", "Ann: he said so"), "Ann: he said so"),
        ("a.vtt", vtt(*ROLLING), "Unknown: hello there | Unknown: how are you"),
        ("a.vtt", vtt("Ann: No.", "Ann: No.", "Bob: Yes."), "Ann: No. No. | Bob: Yes."),
        ("a.txt", "Ann:Hello :)\nThanks :)\nBob:https://x.org", "Ann: Hello :) Thanks :) | Bob: https://x.org"),
        ("a.txt", "张伟：开始\n第一个是这样：我们等。\n李娜：好", "张伟: 开始 第一个是这样：我们等。 | 李娜: 好"),
        ("a.vtt", vtt("(Ann Lee)\nSo.", "[Music]", "(Ann Lee)\nYes."), "Ann Lee: So. [Music] Yes."),
        ("a.txt", MEET, "Ann: Hello. | Bob: Hi."),
        ("a.txt", "Weekly\nAnn   10:15 AM\nHello.\nBob   1:16 PM\nHi.", "Ann: Hello. | Bob: Hi."),
        ("a.txt", "Ana de la Cruz y Vega\t0:03\nHo.\njsmith\t0:05\nHi.", "Ana de la Cruz y Vega: Ho. | jsmith: Hi."),
        ("a.txt", OTTER, "Ann Lee: Two options: a or b. Note: we wait. | Unknown Speaker: Hi."),
        ("a.txt", "Ann (00:03):\nOne.\n\nBob (0:07): Two.\nAnn (00:10):\nOk.", "Ann: One. | Bob: Two. | Ann: Ok."),
        ("a.sbv", sbv("Ann: Hello.", "there", ">> BOB: Hi.", ">> Me."), "Ann: Hello. there | BOB: Hi. | Unknown: Me."),
        ("a.txt", srt("Ann: Hello.", "Bob: Hi."), "Ann: Hello. | Bob: Hi."),
        ("a.vtt", f"WEBVTT\n\n{TIMES}\n\nAnn: so --> then\n\nand on\n", "Ann: so --> then and on"),
        ("a.vtt", f"WEBVTT\n\n{TIMES}\nAnn: one\n00:0x --> 00:03.000\nBob: two\n", "Ann: one | Bob: two"),
        ("a.vtt", f'WEBVTT\n\n1 "Ann" (1)\n{TIMES}\nSo: hi\n\n2 "" (0)\n{TIMES}\nho\n', "Ann: So: hi | Unknown: ho"),
        ("a.txt", f"\u202eAnn\u200b: he\u202ello {FAMILY}\n", f"Ann: hello {FAMILY}"),
        ("a.txt", "0:03 Ann Lee\nTwo: a or b.\n\n10:07 Bob\nHi.\n", "Ann Lee: Two: a or b. | Bob: Hi."),
        ("a.txt", "[00:03] - Ann Lee\nMeet\n10:30 Monday\n[00:07] Bob\nHi.", "Ann Lee: Meet 10:30 Monday | Bob: Hi."),
        ("a.txt", "[00:03] Hello\n[00:07] Next Week\n[00:09] we go", "Unknown: Hello Next Week we go"),
        ("a.txt", "Ann Lee\n0:03\nHello.\nBob\n0:07\nHi.\n", "Ann Lee: Hello. | Bob: Hi."),
        ("a.txt", "0:00\nwelcome to the\n0:03\nshow: today\n", "Unknown: welcome to the show: today"),
        ("a.txt", "Ann (00:03):\nOne.\n\nMr. T. 2 (00:07):\nTwo: b.\n", "Ann: One. | Mr. T. 2: Two: b."),
        ("a.txt", "Ann: \t(00:00)\nHi.\nBob: [00:05] So: x", "Ann: Hi. | Bob: So: x"),
        ("a.txt", "[00:00:00] **Ann Lee:** Hi.\n**Bob**: **So**", "Ann Lee: Hi. | Bob: **So**"),
        ("a.txt", "10:15:02\t From Ann Lee to Everyone:\n\tHi: you.\n", "Ann Lee: Hi: you."),
        ("a.txt", "10:15:02\t From Ann Lee : Hi\n10:15:09 From Bob to Al(Privately) : no\n", "Ann Lee: Hi | Bob: no"),
        ("a.txt", "10:15 From Ann Lee To Hosts and panelists: Hi\n10:16 Von Bob an Alle : so", "Ann Lee: Hi | Bob: so"),
        ("a.txt", "0:01 Ann:\nHi.\n0:05 Bob:\nSo: x\n", "Ann: Hi. | Bob: So: x"),
        ("a.txt", "Ann: (10:30) is fine\nBob: ok", "Ann: (10:30) is fine | Bob: ok"),
        ("a.txt", "ann: hello\nBob: hi\nCarl: yes\n", "ann: hello | Bob: hi | Carl: yes"),
        ("a.txt", "Anne\xa0: Oui\xa0: b.\r\nDr. É. d'Or (X)\xa0: Non.\r\n", "Anne: Oui : b. | Dr. É. d'Or (X): Non."),
        ("a.srt", srt("- Ann: one\n- Bob: two"), "Ann: one | Bob: two"),
        ("a.srt", srt(*("[S]: <u>a</u> b c", "[S]: a <u>b</u> c", "[S]: a b <u>c</u>", "[S]: a b c")), "S: a b c"),
        ("a.json", '{"segments": [{"text": " Hi.", "speaker": "S_0"}, {"text": "So."}]}', "S_0: Hi. | Unknown: So."),
        ("a.json", '{"segments": [{"text": "Grüße", "speaker": "Jörg"}]}'.encode("utf-16"), "Jörg: Grüße"),
        ("a.json", '{"segments": [{"text": "Grüße", "speaker": "Jörg"}]}'.encode("cp1252"), "Jörg: Grüße"),
        ("a.txt", "no speaker here\nat all.\n\nNone", "Unknown: no speaker here at all. | Unknown: None"),
        ("a.vtt", vtt("no speaker"), "Unknown: no speaker"),
        ("a.txt", b"Ann: " + b"word " * 200_000, "Ann: " + "word " * 200_000),
        ("a.srt", srt("Jörg: Grüße.").encode("cp1252"), "Jörg: Grüße."),
        ("a.txt", "Ann: Grüße, José".encode()[:-1], "Ann: Grüße, Jos"),
    ],
)
def test_every_word_has_its_speaker(name: str, content: str | bytes, turns: str, tmp_path: Path) -> None:
    """`A: x | B: y` are the turns that are expected."""
    expected = [tuple(turn.strip().split(": ", 1)) for turn in turns.split(" | ")]
    assert turns_in(tmp_path, name, content) == expected
    lines = read(tmp_path / name)
    assert len(lines.kinds) == len(lines.lines)


def test_it_says_what_became_of_each_line(tmp_path: Path) -> None:
    """Times and empty lines are layout, 00:0x is no time; the words below it are a turn."""
    text = f"WEBVTT\n\nNOTE by a tool\nof two lines\n\n{TIMES}\nAnn: one\ntwo\n\n{TIMES}\nBob: three\n\n"
    turns_in(tmp_path, "a.vtt", f"{text}00:0x --> 00:04\nAnn: four {'and ' * 9}".encode("utf-16"))
    assert str(read(tmp_path / "a.vtt")) == (
        "14 lines: 3 used (line 7: Ann: one), 1 merged (line 8: two), 6 layout (line 2: empty), "
        "1 header (line 1: WEBVTT), 2 note (line 3: NOTE by a tool), 1 unreadable (line 13: 00:0x --> 00:04)"
    )


def test_a_table_and_tracked_changes_of_a_document_are_read(tmp_path: Path) -> None:
    """Rows of number, time, name and words below a row of titles. An insertion is text; a deletion is none."""
    document = Document()
    table = document.add_table(rows=0, cols=4)
    for texts in (("No", "Time", "Speaker", "Text"), ("1", "0:03", "Ann", "Hello."), ("2", "0:05", "Bob", "Hi.")):
        for cell, text in zip(table.add_row().cells, texts, strict=True):
            cell.text = text
    change = "<w:ins><w:r><w:t>Ann: new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    document.element.body.insert(1, parse_xml(f"<w:p {nsdecls('w')}>{change}</w:p>"))
    document.save(str(tmp_path / "a.docx"))
    assert read(tmp_path / "a.docx").turns == (Turn("Ann", "Hello."), Turn("Bob", "Hi."), Turn("Ann", "new"))


def webex(turns: Spoken) -> str:
    return "WEBVTT\n\n" + "\n".join(f'1 "{name}" (7)\n{TIMES}\n{html.escape(words)}\n' for name, words in turns)


def colons(join: Callable[..., str], form: str = "{}: {}") -> Callable[[Spoken], str]:
    return lambda turns: join(*(form.format(*turn) for turn in turns))


def lines(*texts: str) -> str:
    return "\n".join(texts)


WRITERS: dict[str, Callable[[Spoken], str]] = {
    "teams.vtt": lambda turns: vtt(*(f"<v {html.escape(name)}>{html.escape(words)}</v>" for name, words in turns)),
    "webex.vtt": webex,
    "zoom.vtt": lambda turns: vtt(*(html.escape(f"{name}: {words}", quote=False) for name, words in turns)),
    "any.srt": colons(srt),
    "any.sbv": colons(sbv),
    "whisperx.txt": colons(lines, "[{}]: {}"),
    "meet.txt": colons(lines),
    "timed.txt": colons(lines, "[00:00:01] {}: {}"),
    "otter.txt": colons(lines, "{}  0:03\n{}\n"),
    "zoom.txt": colons(lines, "[{}] 10:15:02\n{}\n"),
    "teams.txt": colons(lines, "0:0:0.0 --> 0:0:3.40\n{}\n{}\n"),
    "any.json": lambda turns: json.dumps({"meeting_transcripts": [{"speaker": a, "content": b} for a, b in turns]}),
}
LONG_LINES = [" " * 2_000 + "a b", " " * N + "a b", "a" + " " * N + "b", *(sign * (N // len(sign)) for sign in SIGNS)]
NO_EXPORTS = [
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
]
ENCODINGS = [
    ("Ann: café crème — déjà", "cp1252", "cp1252"),
    ("Ann: It costs £5, José.", "cp1252", "cp1252"),
    ("Ann: café", "cp1252", "cp1252"),
    ("Łukasz: Cześć, jak się masz?", "cp1250", "cp1250"),
    ("Čeněk: Dobrý den, přišel čas na řešení.", "cp1250", "cp1250"),
    ("Ayşe: Günaydın, çalışıyoruz.", "cp1254", "cp1254"),
    ("Иван: Привет, как дела?", "cp1251", "cp1251"),
    ("Иван: Привет, как дела?", "koi8_r", "koi8_r"),
    ("Γιώργος: Καλημέρα σε όλους.", "cp1253", "cp1253"),
    ("Jörg: Grüße, Müller", "mac_roman", "mac_roman"),
    ("Jörg: Grüße, Müller", "cp850", "cp850"),
    ("Language: zh\n张伟：开始", "gb18030", "gb18030"),
    ("דוד: שלום לכולם", "cp1255", "cp1255"),
    ("田中：今日の会議を始めます。よろしくお願いします。", "cp932", "cp932"),
    ("Ann: hi 你好 there, is it ok?", "utf-16-be", "UTF-16-BE"),
    ("Ann: hi 你好", "utf-16", "UTF-16-LE"),
    ("Zoë: Über die Kosten.", "utf-16-le", "UTF-16-LE"),
    ("Zoë: Über die Kosten.", "utf-8-sig", "UTF-8"),
]


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=40)
@given(meeting=MEETINGS)
@example(meeting=[("Ann Lee", []), ("Ann Lee", ["?"]), ("Ann Lee", ["?"])])
def test_what_is_written_is_read(name: str, meeting: list[tuple[str, list[str]]]) -> None:
    """The same speakers and words. Turns of one speaker after another may be joined, as cues are."""
    spoken = [(who, " ".join([f"t{number}", *words])) for number, (who, words) in enumerate(meeting)]
    with TemporaryDirectory() as folder:
        found = turns_in(Path(folder), name, WRITERS[name](spoken))

    def joined(turns: Spoken) -> list[tuple[str, list[str]]]:
        groups = groupby(turns, key=lambda turn: turn[0])
        return [(who, [word for _, words in group for word in words.split()]) for who, group in groups]

    assert joined(found) == joined(spoken)


@pytest.mark.parametrize("ending", READERS)
@given(content=st.binary() | st.text('WEBVTAn:\n 0123456789.,->[]<v/&;#x1"()', max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_line(ending: str, content: bytes) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / f"a{ending}").write_bytes(content)
        try:
            refusal = "" if read(Path(folder) / f"a{ending}").turns else "no turns\n"
        except QuorumError as error:
            refusal = str(error)
    assert "\n" not in refusal


@settings(max_examples=40)
@given(cues=st.lists(st.lists(st.text("abc :<&;-.>é", min_size=1).map(str.strip).filter(bool), min_size=1), min_size=1))
def test_no_cue_has_less_text_than_another_parser_finds(cues: list[list[str]]) -> None:
    """Compared with webvtt-py, which drops a text after an empty line, and one with an arrow: all of it is read."""
    text = vtt(*(f"<v Ann>t{number} " + html.escape("\n".join(cue), quote=False) for number, cue in enumerate(cues)))
    theirs = [word for caption in webvtt.from_string(text) for word in html.unescape(caption.text).split()]
    with TemporaryDirectory() as folder:
        ((_, ours),) = turns_in(Path(folder), "a.vtt", text)
    assert ours.split() == theirs


@pytest.mark.parametrize("ending", ["txt", "vtt", "srt"])
@pytest.mark.parametrize("line", LONG_LINES, ids=lambda line: f"{len(line)} of {line[:5]!r}")
def test_a_line_of_any_length_is_read_in_little_time(line: str, ending: str, tmp_path: Path) -> None:
    """Milliseconds of processor; in time that grows with the square of the length each would take hours."""
    path = tmp_path / f"a.{ending}"
    words = f"Ann: x\n{line}"
    path.write_text({"txt": words, "vtt": vtt(words), "srt": srt(words)}[ending])
    began = process_time()
    (turn,) = read(path).turns
    assert process_time() - began < 5
    assert turn.speaker == "Ann"


@pytest.mark.parametrize(("name", "content", "message"), NO_EXPORTS)
def test_a_file_that_is_none_is_one_line(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(QuorumError) as caught:
        read(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "encoding", "named"), ENCODINGS)
def test_an_encoding_is_known_by_its_letters(text: str, encoding: str, named: str) -> None:
    assert decode(text.encode(encoding)) == (text, named)


def test_a_few_damaged_letters_leave_the_others() -> None:
    """One letter of cp1252 among eleven of UTF-8."""
    assert decode("é".encode() * 11 + b"\xe9 x") == ("é" * 11 + "\ufffd x", "UTF-8 with damaged letters")

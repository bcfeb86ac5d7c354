"""A Word document -> its lines: paragraphs, text boxes, and rows of tables as `Ann: words`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pipeline.corpora.speakers import TIMES
from pipeline.errors import QuorumError

_LEFT_OUT = {"pPr", "rPr", "del", "moveFrom", "Fallback"}
"""Formats, deleted and moved text, and copies for older programs."""
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


def text_of_document(path: Path) -> str:
    """The text of a document, a line a paragraph, break or row.

    Raises:
        QuorumError: it is no Word document.
    """
    from docx import Document

    try:
        return _text(Document(str(path)).element.body)
    except Exception as error:  # of zipfile, zlib, lxml or docx: a damaged document can raise any
        reason = " ".join(str(error).split())[:80]
        raise QuorumError(f"{path}: is no Word document ({reason}); export it again") from None


def _text(node: Any) -> str:
    name = node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""  # a comment's tag is a function
    if name in _LEFT_OUT or not name:
        return ""
    if name == "t":
        return node.text or ""
    if name == "tr":
        return f"{_row([' '.join(_text(cell).split()) for cell in node])}\n"
    inner = _SIGNS.get(name, "") + "".join(map(_text, node))
    return f"{inner}\n" if name == "p" else f"\n{inner}" if name == "txbxContent" else inner


def _row(cells: list[str]) -> str:
    """
    >>> _row(["0:03", "Ann Lee", "Hello."]), _row(["Ann Lee", "0:03"]), _row(["Hello."])
    ('Ann Lee: Hello.', 'Ann Lee   0:03', 'Hello.')
    """
    *others, last = [cell for cell in cells if cell] or [""]
    names = [cell for cell in others if not re.fullmatch(TIMES, cell)]
    if re.fullmatch(TIMES, last):
        return "   ".join([*others, last])
    return f"{' '.join(names)}: {last}" if names else last

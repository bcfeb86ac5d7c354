"""Bytes that people wrote -> text, and the encoding that was taken.

UTF-8 and UTF-16 are recognised by their form, also where the end is cut off or a few letters are damaged. Of other
encodings that one is taken in which most letters are those of one language, by `LANGUAGES`; a language that the file
declares (`Language: de`) comes first. What fits no language of the table is left to `charset-normalizer`.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter

UTF8 = "UTF-8"
_WEST, _CENTRAL = ("cp1252", "mac_roman", "cp850"), ("cp1250", "iso8859_2", "cp852")
LANGUAGES: dict[str, tuple[tuple[str, ...], str]] = {
    "en": (_WEST, "£éèêëïôöüñç"),
    "de": (_WEST, "äöüßéàè"),
    "fr": (_WEST, "éèêëàâçîïôûùüœæÿ"),
    "es": (_WEST, "áéíóúñü¿¡ªº"),
    "pt": (_WEST, "áâãàçéêíóôõúüªº"),
    "it": (_WEST, "àèéìíîòóùú"),
    "nl": (_WEST, "éëïóöüèç"),
    "sv": (_WEST, "åäöéüà"),
    "da": (_WEST, "åæøéöäü"),
    "is": (_WEST, "áðéíóúýþæö"),
    "": (_WEST, "£äöüßéèêëàâçîïôûùœæÿáíóúñ¿¡ªºãõìòåøðýþ"),
    "pl": (_CENTRAL, "ąćęłńóśźż"),
    "cs": (_CENTRAL, "áčďéěíňóřšťúůýž"),
    "sk": (_CENTRAL, "áäčďéíĺľňóôŕšťúýž"),
    "hu": (_CENTRAL, "áéíóöőúüű"),
    "hr": (_CENTRAL, "čćđšž"),
    "ro": (_CENTRAL, "ăâîşţ"),
    "tr": (("cp1254",), "çğıİöşüâî"),
    "ru": (("cp1251", "koi8_r", "cp866"), "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"),
    "uk": (("cp1251", "koi8_u"), "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя"),
    "el": (("cp1253",), "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ"),
    "he": (("cp1255",), "אבגדהוזחטיכךלמםנןסעפףצץקרשת"),
    "ar": (("cp1256",), "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي"),
    "ja": (("cp932", "euc_jp"), ""),
    "zh": (("gb18030", "big5"), ""),
    "ko": (("cp949",), ""),
}
"""Language -> its encodings, the likeliest first, and its letters beyond ASCII. Without letters: only if declared."""
NEUTRAL = set("–—‘’“”„…«»‹›€°·•§©®™\xa0")
"""Of no language."""
FITS, ANY, DECLARED, SAMPLE = 0.8, 0.95, 0.2, 20_000
"""The least share of letters that fit; what a mixture of languages counts; what a declaration adds; bytes looked at."""
_DECLARES = re.compile(
    rb"^\W*(?:language|lang|sprache|langue|idioma)\s*+[:=]\s*+([a-z]{2})", re.IGNORECASE | re.MULTILINE
)
_BOMS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def decode(content: bytes) -> tuple[str, str] | None:
    """(Text, encoding), or None of what is no text.

    >>> decode("Jörg: Grüße.".encode("cp1252")), decode("Łódź".encode("cp1250")), decode("déjà".encode()[:-1])
    (('Jörg: Grüße.', 'cp1252'), ('Łódź', 'cp1250'), ('déj', 'UTF-8, cut off at its end'))
    """
    found = _unicode(content)
    if found is None and content.count(0) == 0:
        found = _by_language(content) or _by_library(content)
    return None if found is None or "\0" in found[0] else found


def _unicode(content: bytes) -> tuple[str, str] | None:
    for mark, name in _BOMS.items():
        if content.startswith(mark):
            return content.decode(name, "ignore"), name
    if content.count(0) * 3 >= len(content) > 0:  # UTF-16 without a mark: every Latin letter has a NUL
        name = "UTF-16-LE" if content[1::2].count(0) >= content[::2].count(0) else "UTF-16-BE"
        return content.decode(name, "ignore"), name
    try:
        return content.decode("utf-8-sig"), UTF8
    except UnicodeDecodeError as error:
        tail, before = content[error.start :], content[: error.start]
        if error.reason == "unexpected end of data" and (len(tail) > 1 or not before.isascii() or tail in _LEADS):
            return before.decode("utf-8-sig"), f"{UTF8}, cut off at its end"
    text = content.decode("utf-8-sig", "replace")
    if text.count("\ufffd") * 10 <= sum(map(len, _BEYOND.findall(text))):
        return text, f"{UTF8} with damaged letters"
    return None


_LEADS = {b"\xc2", b"\xc3", b"\xc4", b"\xc5", b"\xe2", b"\xf0"}
"""With which UTF-8 begins common letters; in cp1252 they are capitals and signs that end no text."""
_BEYOND = re.compile(r"[^\0-\x7f]+")


def _by_language(content: bytes) -> tuple[str, str] | None:
    declared = _DECLARES.search(content[:2000])
    language = declared.group(1).decode().lower() if declared else ""
    sample = b"\n".join(line for line in content.splitlines() if not line.isascii())[:SAMPLE]
    best, chosen = FITS, None
    for name, (encodings, letters) in LANGUAGES.items():
        for encoding in encodings if letters or name == language else ():
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                continue
            score = _fit(sample.decode(encoding), letters) * (1 if name else ANY) if letters else 1.0
            score += DECLARED * (name == language != "")
            if score > best:
                best, chosen = score, (text, encoding)
    return chosen


def _fit(text: str, letters: str) -> float:
    """The share of a text's characters beyond ASCII that may be where they are: in a word of one script, and no capital
    after a small letter."""
    latin = not letters or letters[-1] < "\u0250"
    own = set(letters)
    places = Counter(zip(f" {text}", text, f"{text[1:]} ", strict=False))
    found = {place: count for place, count in places.items() if place[1] > "\x7f"}
    fitting = 0
    for (before, letter, after), count in found.items():
        fits = letter in own or (letter.lower() in own and not before.islower())
        mixed = not latin and any(c.isascii() and c.isalpha() for c in (before, after))
        fitting += count * (letter in NEUTRAL or (fits and not mixed))
    return fitting / max(sum(found.values()), 1)


def _by_library(content: bytes) -> tuple[str, str] | None:
    from charset_normalizer import from_bytes

    best = from_bytes(content).best()
    return (str(best), best.encoding) if best else None

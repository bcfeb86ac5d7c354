"""Bytes that people wrote -> text, and the encoding that was taken.

UTF-8 and UTF-16 are recognised by their form, also where the end is cut off or a few letters are damaged. Else that
encoding is taken in which most letters beyond ASCII are those of one language; one that the file declares
(`Language: de`) is preferred. `charset-normalizer` decides where no language fits.
"""

import re
from contextlib import suppress

UTF8 = "UTF-8"
_WEST, _CENTRAL = ("cp1252", "mac_roman", "cp850"), ("cp1250", "iso8859_2", "cp852")
LANGUAGES: dict[str, tuple[tuple[str, ...], str]] = {
    "en": (_WEST, "£éèêëïôöüñç"),
    "de": (_WEST, "äöüßéàè"),
    "fr": (_WEST, "éèêëàâçîïôûùüœæÿ"),
    "es": (_WEST, "áéíóúñü¿¡ªº"),
    "pt": (_WEST, "áâãàçéêíóôõúüªº"),
    "it": (_WEST, "àèéìíîòóùú"),
    "sv": (_WEST, "åäöæøéüà"),
    "": (_WEST, "£äöüßéèêëàâçîïôûùœæÿáíóúñ¿¡ªºãõìòåøðýþ"),
    "pl": (_CENTRAL, "ąćęłńóśźż"),
    "cs": (_CENTRAL, "áčďéěíňóřšťúůýžäĺľôŕ"),
    "hu": (_CENTRAL, "áéíóöőúüű"),
    "hr": (_CENTRAL, "čćđšž"),
    "ro": (_CENTRAL, "ăâîşţ"),
    "tr": (("cp1254",), "çğıİöşüâî"),
    "he": (("cp1255",), "א-ת"),
    "ru": (("cp1251", "koi8_r", "cp866"), "а-яё"),
    "uk": (("cp1251", "koi8_u"), "а-щґєіїьюя"),
    "el": (("cp1253",), "ά-ώΐ"),
    "ar": (("cp1256",), "ء-غف-ي"),
    "ja": (("cp932", "euc_jp"), ""),
    "zh": (("gb18030", "big5"), ""),
    "ko": (("cp949",), ""),
}
"""Language (any western one: empty) -> its encodings and letters beyond ASCII; without letters, only if declared."""
NEUTRAL = "–—‘’“”„…«»‹›€°·•§©®™\xa0"
FITS, MIXED, DECLARED, SAMPLE = 0.8, 0.95, 0.2, 20_000
"""The least share of letters that fit; what a mixture of languages counts; what a declaration adds; bytes looked at."""
_DECLARES = re.compile(rb"^\W*(?:language|lang|sprache|langue)\s*+[:=]\s*+([a-z]{2})", re.IGNORECASE | re.MULTILINE)
_LEADS = (b"\xc2", b"\xc3", b"\xc4", b"\xc5", b"\xe2", b"\xf0")
"""With which UTF-8 begins common letters; in cp1252 they are capitals and signs that end no text."""


def decode(content: bytes) -> tuple[str, str] | None:
    """(Text, encoding), or None of what is no text.

    >>> decode("Jörg: Grüße.".encode("cp1252")), decode("Łódź".encode("cp1250")), decode("déjà".encode()[:-1])
    (('Jörg: Grüße.', 'cp1252'), ('Łódź', 'cp1250'), ('déj', 'UTF-8, cut off at its end'))
    """
    found = _by_form(content) or _by_language(content)
    if found is None:
        from charset_normalizer import from_bytes

        best = from_bytes(content).best()
        found = (str(best), best.encoding) if best else None
    return None if found is None or "\0" in found[0] else found


def _by_form(content: bytes) -> tuple[str, str] | None:
    """UTF-16 with a mark, or with a NUL in every third byte or more (Latin letters have one each); UTF-8."""
    utf16 = {b"\xff\xfe": "UTF-16-LE", b"\xfe\xff": "UTF-16-BE"}.get(content[:2])
    if utf16 is None and content.count(0) * 3 >= len(content) > 0:
        utf16 = "UTF-16-LE" if content[1::2].count(0) >= content[::2].count(0) else "UTF-16-BE"
    if utf16:
        return content.decode(utf16, "ignore").removeprefix("\ufeff"), utf16
    try:
        return content.decode("utf-8-sig"), UTF8
    except UnicodeDecodeError as error:
        tail, before = content[error.start :], content[: error.start]
        if error.reason == "unexpected end of data" and (len(tail) > 1 or not before.isascii() or tail in _LEADS):
            return before.decode("utf-8-sig"), f"{UTF8}, cut off at its end"
    text = content.decode("utf-8-sig", "replace")
    return (text, f"{UTF8} with damaged letters") if text.count("\ufffd") * 10 <= _beyond_ascii(text) else None


def _by_language(content: bytes) -> tuple[str, str] | None:
    declared = _DECLARES.search(content[:2000])
    language = declared[1].decode().lower() if declared else None
    sample = b"\n".join(line for line in content.splitlines() if not line.isascii())[:SAMPLE]
    best, chosen = FITS, None
    for name, (encodings, letters) in LANGUAGES.items():
        for encoding in encodings if letters or name == language else ():
            with suppress(UnicodeDecodeError):
                text, fit = content.decode(encoding), _fit(sample.decode(encoding, "ignore"), letters)
                score = fit * (1 if name else MIXED) + DECLARED * (name == language)
                best, chosen = (score, (text, encoding)) if score > best else (best, chosen)
    return chosen


def _fit(text: str, letters: str) -> float:
    """The share of characters beyond ASCII that fit: in a word of one script, no capital after a small letter."""
    fits = rf"[{letters}{NEUTRAL}]|(?<![a-z{letters}])(?i:[{letters}])" if letters else "."
    if letters[-1:] > "\u0250":
        fits = rf"(?<![A-Za-z])(?:{fits})(?![A-Za-z])"
    return len(re.findall(rf"(?![\0-\x7f])(?:{fits})", text)) / (_beyond_ascii(text) or 1)


def _beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))

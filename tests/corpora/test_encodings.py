"""Texts of people, in whatever encoding they were saved."""

import pytest

from pipeline.corpora.encodings import decode


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
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
    ],
)
def test_an_encoding_is_known_by_its_letters(text: str, encoding: str, named: str) -> None:
    assert decode(text.encode(encoding)) == (text, named)


def test_a_few_damaged_letters_leave_the_others() -> None:
    """One letter of cp1252 among eleven of UTF-8."""
    assert decode("é".encode() * 11 + b"\xe9 x") == ("é" * 11 + "\ufffd x", "UTF-8 with damaged letters")

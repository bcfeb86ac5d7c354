"""Words and what was distilled: the paper's example by hand."""

import torch

from pipeline.corpora.tagging import nouns_and_verbs, words_of
from pipeline.evaluation.words import Tally, example_tallies, grouped, pos_rows, shares_of, tally

PIECES = ["project", " manager", " dec", "ides", " to", " use", " lcd"]


def test_the_papers_example_is_25_percent() -> None:
    """`project manager decides to use lcd`, two rounds: manager once, decides twice: 3/(2·6) = 25%."""
    words = words_of(PIECES)
    assert [w.text for w in words] == ["project", "manager", "decides", "to", "use", "lcd"]
    manager, decides = words[1].tokens[0], words[2].tokens[0]
    mask = torch.zeros(2, len(PIECES), dtype=torch.bool)
    mask[0, manager] = mask[0, decides] = mask[1, decides] = True
    counts = tally(words, mask)
    assert (sum(counts.distilled.values()), sum(counts.seen.values())) == (3, 12)
    assert pos_rows("A", counts)[-1]["distilled_given_pos"] == 0.25
    counts = tally(words, torch.arange(len(PIECES))[None] == words[2].tokens[1])
    assert (sum(counts.distilled.values()), counts.all_subwords, counts.fraction) == (0, 0, 0.5)


def test_the_lens_shows_every_token_once() -> None:
    """spaCy reads `don't` as `do` and `n't`: here they share no token; `a.b`'s last token belongs to its first word."""
    for pieces in (PIECES, ["I", " don", "'t", " know", "."], ["", " Yes", ",", " sir"]):
        shown = [token for tokens, _ in grouped(pieces) for token in tokens]
        assert shown == [i for i, piece in enumerate(pieces) if piece]
    assert grouped(["They", " dec", "ide", "."]) == [((0,), True), ((1, 2), True), ((3,), False)]


def test_every_subword_of_a_noun_a_name_or_a_main_verb_is_marked() -> None:
    """Hard distillation's choice: all but `to`, the second piece of `decides` too."""
    assert nouns_and_verbs(PIECES) == [True, True, True, True, False, True, True]


def test_auxiliaries_are_no_verbs_and_punctuation_is_no_word() -> None:
    words = words_of(["They have agreed; it does not work. They had a plan and were tired."])
    assert [word.text for word in words if word.pos == "VERB"] == ["agreed", "work", "had"]
    assert not {";", "."} & {word.text for word in words}


def test_base_rates_conditionals_and_lift_by_hand() -> None:
    """Four words, NOUN twice (both distilled), DET twice (one distilled): P(d) = 3/4, lift of NOUN 1/(3/4) = 4/3."""
    rows = {row["pos"]: row for row in pos_rows("A", Tally({"NOUN": 2, "DET": 2}, {"NOUN": 2, "DET": 1}, 3, 3.0))}
    noun, det = rows["NOUN"], rows["DET"]
    assert (noun["base_rate"], noun["distilled_given_pos"], noun["lift"]) == (0.5, 1.0, 1.3333)
    assert (noun["pos_given_distilled"], det["pos_given_distilled"]) == (0.6667, 0.3333)
    assert (noun["pos_given_not_distilled"], det["pos_given_not_distilled"]) == (0.0, 1.0)


def test_each_examples_words_are_counted_over_the_passes() -> None:
    """In two passes `We` is distilled once, `agree` never, and the other example's only word twice."""
    passes, texts = torch.tensor([[True, False, True], [False, False, True]]), ["We", " agree", "Yes"]
    found = example_tallies(passes, [[0, 1], [2]], lambda ids: [texts[i] for i in ids])
    assert [own.words() for own in found] == [(4, 1), (2, 2)]


def test_shares_of_words_come_with_intervals_over_meetings() -> None:
    """Two meetings: 2 of 4 nouns and 1 of 2 determiners distilled in one, all of 4 and 2 in the other."""
    seen = {"NOUN": 4, "DET": 2}
    meetings = {"first": Tally(seen, {"NOUN": 2, "DET": 1}, 0, 0.0), "second": Tally(seen, seen, 0, 0.0)}
    rows = {row["share"]: row for row in shares_of("run", "A", meetings, 200)}
    # Distilled: 9 of 12. Nouns among the distilled: 6 of 9; determiners among the 3 others: 1.
    values = {"distilled": 0.75, "content": 0.6667, "content_given_distilled": 0.6667}
    values["closed_given_not_distilled"] = 0.3333
    assert {name: row["value"] for name, row in rows.items()} == values
    assert rows["distilled"]["low"] is None, "two meetings are too few for an interval"
    assert len(shares_of("run", "A", {"m": Tally({"NOUN": 1}, {"NOUN": 1}, 1, 1.0)}, 10)) == 3, "no word is left out"
    many = {f"{name}{i}": own for name, own in meetings.items() for i in range(4)}
    wide = next(row for row in shares_of("run", "A", many, 200) if row["share"] == "distilled")
    assert wide["low"] < 0.75 < wide["high"]

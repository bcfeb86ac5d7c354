"""Batched greedy and beam search from stored prefixes, with the semantics of `transformers.generate`.

One difference is intended: the no-repeat n-gram rule looks at generated tokens alone, not at the source, whose phrases
a summary may use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pipeline.model.backbone import Backbone, Prefix, Row, without_gaps
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.lora import is_lora

DROP_BELOW = 0.9
"""Finished rows are dropped once at most this share of the batch is active: dropping copies other rows' caches."""

NORMED = 8  # rows of logits whose normalizers are computed at once: so few fit into the processor's cache


Texts = list[list[int]]  # each row's tokens


def generate(backbone: Backbone, prefixes: Sequence[Prefix], rows: Sequence[Row], rule: DecodingRule) -> Texts:
    """New tokens for each row, without the end token; rows may share prefixes and adapters."""
    search = _greedy if rule.beams == 1 else _beam_search
    # All rows are one batch; of LoRA, whose changes are in the model, one batch an adapter.
    groups: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(id(row.adapter) if is_lora(row.adapter) else 0, []).append(i)
    written: dict[int, list[int]] = {}
    for group in groups.values():
        found = search(backbone, prefixes, [rows[i] for i in group], rule)
        written |= dict(zip(group, found, strict=True))
    return [_without_end(written[i], backbone.end_token) for i in range(len(rows))]


def _without_end(tokens: list[int], end: int) -> list[int]:
    """A row's tokens before its end; a finished row is fed until it is dropped, and writes on."""
    return tokens[: tokens.index(end)] if end in tokens else tokens


def _forced(backbone: Backbone, step: int, rule: DecodingRule) -> int | None:
    """The token that the model forces at a step, or None."""
    return {0: backbone.start_token_forced, rule.max_tokens - 1: backbone.end_token_forced}.get(step)


def _allowed(backbone: Backbone, scores: Tensor, histories: Sequence[Sequence[int]], rule: DecodingRule) -> Tensor:
    """Set the logits (rows, vocabulary) of tokens that the rule forbids to −inf, in place."""
    step = len(histories[0])
    forced = _forced(backbone, step, rule)
    if forced is not None:
        scores.fill_(-torch.inf)[:, forced] = 0.0
        return scores
    if step < rule.min_tokens:
        scores[:, backbone.end_token] = -torch.inf
    if rule.no_repeat_ngram:
        for row, history in enumerate(histories):
            banned = banned_tokens([*backbone.decoder_start, *history], rule.no_repeat_ngram)
            if banned:
                scores[row, list(banned)] = -torch.inf
    return scores


def banned_tokens(history: Sequence[int], n: int) -> set[int]:
    """The tokens that would complete an n-gram that is already in `history`."""
    if len(history) < n:
        return set()
    start = tuple(history[len(history) - n + 1 :])
    return {history[i + n - 1] for i in range(len(history) - n + 1) if tuple(history[i : i + n - 1]) == start}


def _greedy(backbone: Backbone, prefixes: Sequence[Prefix], wanted: Sequence[Row], rule: DecodingRule) -> Texts:
    """Each row's tokens, the most probable at every step."""
    state, tokens = backbone.decoding(prefixes, wanted, rule.max_tokens)
    written: list[list[int]] = [[] for _ in wanted]
    rows = list(range(len(wanted)))
    finished: set[int] = set()
    for _ in range(rule.max_tokens):
        logits = _allowed(backbone, state.step(tokens), [written[row] for row in rows], rule)
        tokens = logits.argmax(dim=-1)
        for row, token in zip(rows, tokens.tolist(), strict=True):
            written[row].append(token)
            if token == backbone.end_token:
                finished.add(row)
        active = [i for i, row in enumerate(rows) if row not in finished]
        if not active:
            break
        if len(active) <= DROP_BELOW * len(rows):
            places = without_gaps(active)
            selected = torch.tensor(places, device=tokens.device)
            state.select(selected)
            tokens, rows = tokens[selected], [rows[i] for i in places]
    return written


@dataclass
class _Hypotheses:
    """The beams of one example: `running` ones can grow, `finished` are the best complete ones, best first."""

    beams: int
    running: list[list[int]]
    scores: list[float]
    finished: list[tuple[float, list[int]]] = field(default_factory=list)

    def add(self, score: float, tokens: list[int]) -> None:
        """Add a complete beam; the worst one is dropped where there are more than `beams`."""
        self.finished = sorted([*self.finished, (score, tokens)], key=lambda one: -one[0])[: self.beams]

    def can_improve(self, length: int, penalty: float) -> bool:
        """Whether the best running beam, ended at this length, would be among the finished ones."""
        if len(self.finished) < self.beams:
            return True
        return bool(self.scores[0] / length**penalty > self.finished[-1][0])


def _beam_search(backbone: Backbone, prefixes: Sequence[Prefix], wanted: Sequence[Row], rule: DecodingRule) -> Texts:
    """Each row's best finished beam by log-probability / length^penalty."""
    beams = rule.beams
    state, tokens = backbone.decoding(prefixes, [row for row in wanted for _ in range(beams)], rule.max_tokens)
    # All beams begin alike, so only the first counts at first.
    examples = [_Hypotheses(beams, [[] for _ in range(beams)], [0.0] + [-1e9] * (beams - 1)) for _ in wanted]
    open_ = list(examples)
    for length in range(1, rule.max_tokens + 1):
        best, where = _best(backbone, state.step(tokens), open_, rule)
        origins: list[int] = []
        grown: list[int] = []
        still_open: list[_Hypotheses] = []
        candidates = zip(open_, best.tolist(), where, strict=True)
        for position, (item, item_best, item_where) in enumerate(candidates):
            parents, new = _extend(item, item_best, item_where, length, rule, backbone.end_token)
            if length < rule.max_tokens and item.can_improve(length, rule.length_penalty):
                still_open.append(item)
                origins += [position * beams + parent for parent in parents]
                grown += new
        if not still_open:
            break
        open_ = still_open
        state.select(torch.tensor(origins, device=tokens.device))
        tokens = torch.tensor(grown, device=tokens.device)
    return [item.finished[0][1] for item in examples]


def _best(
    backbone: Backbone, logits: Tensor, open_: Sequence[_Hypotheses], rule: DecodingRule
) -> tuple[Tensor, list[list[tuple[int, int]]]]:
    """The 2K best continuations of each example's K beams: (examples, 2K) log-probabilities, and (beam, token) of each.

    Each beam's own 2K best tokens are found first: only these need log-probabilities.
    """
    histories = [row for item in open_ for row in item.running]
    forced = _forced(backbone, len(histories[0]), rule) is not None
    norms = torch.zeros_like(logits[:, :1]) if forced else _norms(logits)
    logits, words = _allowed(backbone, logits, histories, rule).topk(min(2 * rule.beams, logits.shape[1]))
    so_far = torch.tensor([score for item in open_ for score in item.scores], device=logits.device)
    totals = (logits - norms + so_far[:, None]).view(len(open_), -1)
    best, where = totals.topk(2 * rule.beams)
    tokens = words.view(len(open_), -1).gather(1, where).tolist()
    beams = (where // words.shape[1]).tolist()
    return best, [list(zip(*pair, strict=True)) for pair in zip(beams, tokens, strict=True)]


def _norms(logits: Tensor) -> Tensor:
    """log Σ exp of each row of logits (rows, vocabulary): (rows, 1)."""
    return torch.cat([rows.logsumexp(-1, keepdim=True) for rows in torch.split(logits, NORMED)])


def _extend(
    item: _Hypotheses, best: list[float], where: list[tuple[int, int]], length: int, rule: DecodingRule, end: int
) -> tuple[list[int], list[int]]:
    """Extend one example's beams by its 2K best continuations; the parents and new tokens of those that go on.

    A continuation that ends counts only among the K best; the second K are for beams that go on.
    """
    parents: list[int] = []
    new: list[int] = []
    running: list[list[int]] = []
    scores: list[float] = []
    for rank, (score, (parent, token)) in enumerate(zip(best, where, strict=True)):
        grown = [*item.running[parent], token]
        if token == end or length == rule.max_tokens:
            if rank < rule.beams:
                item.add(score / length**rule.length_penalty, grown)
        elif len(running) < rule.beams:
            parents.append(parent)
            new.append(token)
            running.append(grown)
            scores.append(score)
    item.running, item.scores = running, scores
    return parents, new

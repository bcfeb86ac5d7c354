"""A meeting that is longer than a model reads, in parts that it reads one by one."""

import textwrap
from collections.abc import Sequence
from itertools import accumulate

from pipeline.corpora.conversation import Turn


def divided(sizes: Sequence[int], room: int, *, overlap: bool = True) -> list[range]:
    """The fewest parts of at most `room` tokens, of these the most even ones: the least sum of squared sizes.

    A turn that does not fit is a part. With `overlap` a part begins with the last turn of the part before, unless the
    two turns at the boundary do not fit together. `sizes`: tokens of each turn.

    >>> divided([4, 4, 4, 4], 12), divided([4, 4, 4, 4], 12, overlap=False)
    ([range(0, 2), range(1, 4)], [range(0, 2), range(2, 4)])
    """
    ends = [0, *accumulate(sizes)]
    # Of the first n turns: parts, their squared sizes, the last part's first new turn, and its first turn.
    best = [(0, 0, 0, 0)]
    for end in range(1, len(sizes) + 1):
        options = []
        for new in range(end - 1, -1, -1):
            first = new - (overlap and new > 0 and sizes[new - 1] + sizes[new] <= room)
            size = ends[end] - ends[first]
            if size > room and new < end - 1:
                break
            options.append((best[new][0] + 1, best[new][1] + size**2, new, first))
        best.append(min(options))
    parts, end = [], len(sizes)
    while end:
        parts.append(range(best[end][3], end))
        end = best[end][2]
    return parts[::-1]


def pieces(turn: Turn, size: int, room: int) -> list[Turn]:
    """A turn of `size` tokens, in pieces of about half of `room` if it does not fit; they are its speaker's turns."""
    if size <= room:
        return [turn]
    width = max(1, len(turn.text) * room // (2 * size))
    return [Turn(turn.speaker, text) for text in textwrap.wrap(turn.text, width, break_on_hyphens=False)]

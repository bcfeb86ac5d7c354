"""Numbers drawn by name: the same name, the same numbers, on every machine and in every order of clients."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Randomness:
    """Names what is drawn. Batch order depends on these and the epoch, never on the method or on who took part."""

    seed: int
    client: str
    round: int

    def generator(self, purpose: object) -> torch.Generator:
        """One of this client's in this round, another for another purpose."""
        return generator(f"{self.seed}/{self.client}/{self.round}/{purpose}")

    def number(self, purpose: object) -> int:
        return _number(f"{self.seed}/{self.client}/{self.round}/{purpose}")


def generator(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(_number(name))


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")


def batch_order(rng: Randomness, epoch: int, count: int) -> list[int]:
    """A permutation of the examples that depends on (seed, client, round, epoch) alone."""
    return torch.randperm(count, generator=rng.generator(epoch)).tolist()

"""Random numbers by name: equal names give equal numbers, on every machine and in any order of clients."""

import hashlib
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Randomness:
    """Names the random numbers of a client in a round, so that they do not depend on the method or on other clients."""

    seed: int
    client: str
    round: int

    def generator(self, purpose: object) -> torch.Generator:
        """A random generator for this client, round and purpose."""
        return torch.Generator().manual_seed(self.number(purpose))

    def number(self, purpose: object) -> int:
        """A random integer below 2⁵⁶ for this client, round and purpose."""
        name = f"{self.seed}/{self.client}/{self.round}/{purpose}"
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")


def batch_order(rng: Randomness, epoch: int, count: int) -> list[int]:
    """A permutation of `count` examples, which depends on (seed, client, round, epoch) alone."""
    return torch.randperm(count, generator=rng.generator(epoch)).tolist()

"""Clients whose model is one number, for tests of engines and rounds.

Training goes halfway to the client's optimum; the validation loss is the distance from it. All clients begin at 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from federations import begin
from torch import Tensor

from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import Algorithm, ClientState, Fit, Pull, Sent, Trace
from pipeline.federated.callbacks import Stopping
from pipeline.federated.engine import Arrival, Assignment, Engine
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import Objective
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT, Tolerance
from pipeline.model.adapter import Adapter


def one(*values: float) -> Adapter:
    return {"w": torch.tensor(values)}


def number(adapter: Adapter) -> float:
    return adapter["w"].item()


@dataclass
class Halfway:
    """A client with its optimum; notes its trainings: (start, teacher, first pull).

    The loss of a training is its start. `slope` is the gradient, `summaries` are of its examples.
    """

    optimum: float = 0.0
    examples: int = 1
    slope: float = 0.0
    steps: int = 1
    seconds: float = 0.0
    summaries: Sequence[Sequence[str]] = ()
    scored: int = 0
    trainings: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    rngs: list[Randomness] = field(default_factory=list)
    teachers: list[Adapter] = field(default_factory=list)

    def fit(
        self, start: Adapter, rng: Randomness, objective: Objective = CROSS_ENTROPY, *, pull: Pull | None = None,
        moments: Adapter | None = None,
    ) -> Fit:  # fmt: skip
        self.rngs.append(rng)
        taught = None if objective.teacher is None else number(objective.teacher)
        self.trainings.append((number(start), taught, None if pull is None else number(pull(start))))
        mask = torch.tensor([[rng.round % 2 == 1, False]])
        trace = Trace(loss=number(start), steps=self.steps, seconds=self.seconds, masks={"odd": mask})
        return Fit(one((number(start) + self.optimum) / 2), trace, {} if moments is None else {"m": torch.ones(1)})

    def gradient(self, _adapter: Adapter) -> Adapter:
        return one(self.slope)

    def validation_loss(self, adapter: Adapter) -> float:
        self.scored += 1
        return abs(number(adapter) - self.optimum)

    def entropies(self, adapter: Adapter) -> Tensor:
        """1, 2 and 3; notes the teacher."""
        self.teachers.append(adapter)
        return torch.tensor([1.0, 2.0, 3.0])

    def pieces(self, example: int) -> Sequence[str]:
        return self.summaries[example]

    def items(self, examples: Sequence[int]) -> int:
        return sum(len(self.summaries[example]) for example in examples)


Clients = dict[str, Halfway]


def engine(
    algorithm: Algorithm, kind: type[InProcess] = InProcess, *, seed: int = 1, clients: Clients | None = None,
    evaluated: Clients | None = None, **optima: float,
) -> InProcess:  # fmt: skip
    """Clients by name, as given or by their optima; they are evaluated if no others are given."""
    clients = clients or {name: Halfway(value) for name, value in optima.items()}
    private = begin({name: ClientState(one(0.0)) for name in clients})
    return kind(algorithm, clients, clients if evaluated is None else evaluated, private, seed=seed)


def answers(made: InProcess, name: str, *sent: float, version: int = 1) -> Iterator[Arrival]:
    """The answers of one client that is assigned these numbers in consecutive rounds."""
    for i, value in enumerate(sent):
        made.submit(Assignment(name, Sent(one(value)), version + i))
    yield from made.arrivals()


def run(
    algorithm: Algorithm, made: Engine, rounds: int = 1, rules: Tolerance = STRICT, who: Participation | None = None,
    *, initial: Adapter | None = None,
) -> Progress:  # fmt: skip
    """Train for so many rounds."""
    begun = initial_progress(algorithm, one(0.0) if initial is None else initial, made)
    return run_rounds(algorithm, made, begun, who or Participation(), [Stopping(rounds, 99)], seed=1, rules=rules)

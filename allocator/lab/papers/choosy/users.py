"""Users of Choosy's simulations, and what is kept of a run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Task:
    """A task that runs; `due` is NaN once it was paused or cancelled."""

    user: "User"
    type: int
    due: float


@dataclass(slots=True, eq=False)
class User:
    """Who wants machines.

    types: those that it can use.
    waiting: durations of the tasks that have not begun; it may never end.
    left: so many of them there are; a very large number stands for no end.
    paused: what paused tasks still take.
    running: by type, in the order in which they began.
    held: machines.
    can, on: types that it can use, and on which it runs something: a bit each.
    """

    name: int
    types: tuple[int, ...]
    waiting: Iterator[float]
    left: int
    running: list[dict[Task, None]]
    came: float = 0.0
    gone: float | None = None
    held: int = 0
    paused: list[float] = field(default_factory=list)
    can: int = 0
    on: int = 0

    @property
    def wants(self) -> bool:
        """Whether it has a task to run."""
        return bool(self.paused) or self.left > 0


@dataclass(frozen=True, slots=True)
class Coming:
    """A user to be.

    count: of the durations.
    leaves: when it gives up all that it has.
    """

    at: float
    types: tuple[int, ...]
    durations: Iterable[float]
    count: int
    leaves: float | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What a run was like.

    stay (U,): from coming to going of each user; NaN: it was there at the end.
    held (S, U): machines of each user at each moment that was asked for.
    there (S, U)
    """

    stay: NDArray[np.float64]
    held: Ints
    there: NDArray[np.bool_]

"""The parts of a checkpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class CheckpointError(ValueError):
    """A value cannot be saved, or a checkpoint is invalid in this version."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one type, in the order of what holds them.

    `kind`: what they are, see `to_columns`.
    `texts`: the different texts; of objects the class, then its fields.
    `arrays`: numbers, lengths, or which text or part a value is; of arrays, themselves.
    `parts`: what the values hold.
    """

    kind: str
    count: int
    texts: Sequence[str] = ()
    arrays: Sequence[Array] = ()
    parts: Sequence["Column"] = ()

"""The data structure of a checkpoint: columns of values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class CheckpointError(ValueError):
    """A value cannot be saved, or a checkpoint is invalid in this version."""


@dataclass(frozen=True, slots=True)
class Column:
    """A sequence of values of one type.

    `kind`: their type, see `to_columns`.
    `texts`: distinct texts; for objects: the class, then its fields.
    `arrays`: numbers, lengths, or the index of each value's text or part; for arrays: the values.
    `parts`: columns of the values that these values contain.
    """

    kind: str
    count: int
    texts: Sequence[str] = ()
    arrays: Sequence[Array] = ()
    parts: Sequence["Column"] = ()

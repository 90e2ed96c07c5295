"""Declares arrays that belong together, so that they grow and are cleared together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.array_structures import FEWEST, grow, grow_by_kind
from allocator.core.numba.bit_tables import grown_table

_Arrays = TypeVar("_Arrays")


@dataclass(frozen=True)
class Column:
    """The declaration of one array or list.

    `by`: name of its row dimension.
    `across`: name of its column dimension; empty: it has one dimension.
    `in_blocks`: it is a table of bits, see `bit_tables`; `across` is its number of words.
    `by_kind`: its first dimension is the kind of resources, and the rows are the second one, so
        that kinds with few amounts take little memory.
    `fill`: value of new rows.
    `make`: for a list, makes the value of a new row; None: it is an array.
    """

    dtype: type[np.generic] = np.int64
    by: str = "row"
    across: str = ""
    in_blocks: bool = False
    by_kind: bool = False
    fill: int = 0
    make: Callable[[], object] | None = None

    def new(self, rows: int = 0) -> Any:  # noqa: ANN401 - an array or a list
        """Make an array or list with `rows` rows and no columns."""
        if self.make is not None:
            return [self.make() for _ in range(rows)]
        if self.by_kind:
            return np.zeros((0, rows), self.dtype)
        if self.in_blocks:
            return np.zeros((1, rows, 0), self.dtype)
        return np.full((rows, 0) if self.across else rows, self.fill, self.dtype)

    def grown(self, array: NDArray[Any], sizes: Mapping[str, int]) -> NDArray[Any]:
        """Enlarge an array to the sizes of its dimensions; returns it unchanged if it suffices."""
        if self.by_kind:
            return grow_by_kind(array, sizes.get("kind", 0), sizes.get(self.by, 0))
        if self.in_blocks:
            return grown_table(array, sizes.get(self.by, 0), sizes.get(self.across, 0))
        columns = sizes.get(self.across, 0) if self.across else None
        larger = grow(array, sizes.get(self.by, 0), columns)
        if self.fill and len(larger) > len(array):
            larger[len(array) :] = self.fill
        return larger


def new_arrays(kind: type[_Arrays], columns: Mapping[str, Column]) -> _Arrays:
    """Make a named tuple of arrays without rows."""
    return kind(**{name: column.new() for name, column in columns.items()})


def grown(arrays: _Arrays, columns: Mapping[str, Column], **sizes: int) -> _Arrays:
    """Enlarge the arrays of a named tuple; `sizes`: new sizes by name of the dimension."""
    changed = {}
    for name, column in columns.items():
        if column.by in sizes:
            array = getattr(arrays, name)
            larger = column.grown(array, sizes)
            if larger is not array:
                changed[name] = larger
    return arrays._replace(**changed) if changed else arrays  # type: ignore[attr-defined]


def column(dtype: type[np.generic] = np.int64, *, wide: bool = False) -> Any:  # noqa: ANN401
    """Declare an array of a `Table`; a wide one has two dimensions."""
    return Column(dtype, across="width" if wide else "")


def listed(make: Callable[[], object]) -> Any:  # noqa: ANN401
    """Declare a list of a `Table`; `make` makes the value of a free row."""
    return Column(make=make)


class Table:
    """A table of columns, each declared in the class as ``name: Ints = column()``.

    Row 0 stands for "none".

    `COLUMNS`: the declared columns in order; the first one is an array.
    """

    COLUMNS: ClassVar[dict[str, Column]]
    _FIRST: ClassVar[str]
    _WIDE: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Move the declarations to `COLUMNS`, so that only instances have these attributes."""
        cls.COLUMNS = {name: each for name, each in vars(cls).items() if isinstance(each, Column)}
        for name in cls.COLUMNS:
            delattr(cls, name)
        cls._FIRST = next(iter(cls.COLUMNS))
        cls._WIDE = next((name for name, each in cls.COLUMNS.items() if each.across), "")

    def __init__(self) -> None:
        for name, each in self.COLUMNS.items():
            setattr(self, name, each.new(FEWEST))

    def reserve(self, rows: int, width: int = 0) -> None:
        # Called often. All columns have the same length, and all wide ones the same width.
        wide = getattr(self, self._WIDE).shape[1] if self._WIDE else width
        if rows <= len(getattr(self, self._FIRST)) and width <= wide:
            return
        sizes = {"row": rows, "width": width}
        size = 0
        for name, each in self.COLUMNS.items():
            values = getattr(self, name)
            if each.make is None:
                larger = each.grown(values, sizes)
                if larger is not values:
                    setattr(self, name, larger)
                size = len(larger)
            else:
                values.extend(each.new(size - len(values)))

    def clear(self, row: int) -> None:
        for name, each in self.COLUMNS.items():
            getattr(self, name)[row] = each.fill if each.make is None else each.make()

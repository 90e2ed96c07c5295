"""Conversion of the core's state to columns and back: journal files begin with these.

A *checkpoint* is made in two steps. `Detached` copies what may change; it is all that the core
waits for. `to_columns` turns the copy into columns: the values of one field of many objects stand
side by side, so that fifty thousand agents cost a few loops over lists, and arrays stay as they
are. `restore` recreates the objects. It accepts only classes of the core, and calls none of their
code.

The attributes of objects are found at run time: a new array of a table needs no line here. A value
of a type that is not known here raises a `CheckpointError`. A class lists in `DERIVED` the
attributes that are computed from the others: they are left out, and ignored if an older checkpoint
has them. `LATER` lists arrays that older checkpoints lack: these become zeros.
"""

from allocator.core.checkpoint.columns import Array, CheckpointError, Column
from allocator.core.checkpoint.detaching import Copied, Detached, nbytes_of
from allocator.core.checkpoint.flattening import to_columns
from allocator.core.checkpoint.restoring import restore
from allocator.core.numba.wide_tables import untouched

__all__ = [
    "Array",
    "CheckpointError",
    "Column",
    "Copied",
    "Detached",
    "nbytes_of",
    "restore",
    "to_columns",
    "untouched",
]

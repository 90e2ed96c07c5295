"""Everything the core knows as columns, and back: what a journal's file begins with.

A *checkpoint* is made in two steps. `Detached` copies what may change; it is all that the core
waits for. `to_columns` turns the copy into columns: the values of one field of many objects stand
side by side, so that fifty thousand agents cost a few loops over lists, and arrays stay as they
are. `restore` makes the objects again. It takes classes of the core only, and calls none of their
code.

What the tables hold is found out by looking, so a table may get a new array without a word here.
Whatever is of none of the types that are known here is a `CheckpointError`. A class may name
attributes that are worked out from the others in `DERIVED`; they are left out. In `LATER` it names
arrays that it has got meanwhile: where an older checkpoint lacks one, it is all zeros.
"""

from allocator.core.checkpoint.columns import Array, CheckpointError, Column
from allocator.core.checkpoint.detaching import Copied, Detached, nbytes_of
from allocator.core.checkpoint.flattening import to_columns
from allocator.core.checkpoint.restoring import restore

__all__ = [
    "Array",
    "CheckpointError",
    "Column",
    "Copied",
    "Detached",
    "nbytes_of",
    "restore",
    "to_columns",
]

"""Converts the state of the core to columns and back; journal files begin with such a checkpoint.

A *checkpoint* is made in two steps. `Detached` copies all that may change; the core waits only for
this step. `to_columns` then converts the copy: one column has the values of one field of many
objects, so that fifty thousand agents cost only a few loops over lists. `restore` recreates the
objects. It accepts only classes of the core, and calls none of their code.

The attributes of objects are found at run time, so a new array of a table needs no change here. A
value of an unsupported type raises a `CheckpointError`. A class lists in `DERIVED` the attributes
that are computed from others, which are not saved.
"""

from allocator.core.checkpoint.columns import Array as Array
from allocator.core.checkpoint.columns import CheckpointError as CheckpointError
from allocator.core.checkpoint.columns import Column as Column
from allocator.core.checkpoint.detaching import Detached as Detached
from allocator.core.checkpoint.detaching import nbytes_of as nbytes_of
from allocator.core.checkpoint.flattening import to_columns as to_columns
from allocator.core.checkpoint.restoring import restore as restore
from allocator.core.numba.wide_tables import fill as fill
from allocator.core.numba.wide_tables import untouched as untouched

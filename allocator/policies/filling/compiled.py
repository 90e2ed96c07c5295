"""How loops are compiled, and what keeps a cached one in step with its sources."""

import inspect
import zlib
from types import ModuleType

import numba

compiled = numba.njit(  # type: ignore[call-overload]  # (its stubs leave `_nrt` out)
    error_model="numpy", forceinline=True, _nrt=False
)
"""Compile a part of a loop: into the loop, so it needs no cache of its own.

Such a part makes no arrays, and so counts no references to those it is given: with dozens of arrays
that would take ten times as long as the work itself. ``1 / 0`` is infinite, as in numpy.
"""

allocating = numba.njit(error_model="numpy")
"""Compile a part that makes arrays."""


def fingerprint(*modules: ModuleType) -> int:
    """Return a number that changes whenever one of the sources does.

    Numba's cache looks only at the file that a loop stands in, and at the values that the loop
    captures: so a loop that captures the fingerprint of the modules it calls is compiled again when
    they change.
    """
    return zlib.crc32("".join(map(inspect.getsource, modules)).encode())

"""How loops are compiled, and what keeps a cached one in step with its sources."""

import inspect
import zlib
from types import ModuleType

import numba

compiled = numba.njit(error_model="numpy")  # 1 / 0 is infinite, and costs no branch
"""Compile a part of a loop: into the loop, so it needs no cache of its own."""


def fingerprint(*modules: ModuleType) -> int:
    """Return a number that changes whenever one of the sources does.

    Numba's cache looks only at the file that a loop stands in, and at the values that the loop
    captures: so a loop that captures the fingerprint of the modules it calls is compiled again when
    they change.
    """
    return zlib.crc32("".join(map(inspect.getsource, modules)).encode())

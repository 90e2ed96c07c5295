"""Decorators for compiled parts of loops, and fingerprints that keep the cache up to date."""

import inspect
import zlib
from types import ModuleType

from allocator.core.numba.compiled import part

compiled = part(error_model="numpy", _nrt=False)
"""Compiles a part of a loop; it has no cache of its own.

The part must not create arrays, so it needs no reference counting, which would take ten times as
long as the work itself. ``1 / 0`` is infinite, as in numpy.
"""

hot = part(error_model="numpy", _nrt=False, forceinline=True)
"""Compiles a part inline into its callers: for parts that are short, and run for each grant."""

allocating = part(error_model="numpy")
"""Compiles a part that creates arrays."""


def fingerprint(*modules: ModuleType) -> int:
    """Return a number that changes whenever the source of one of the modules does.

    Numba's cache key covers only the loop's own file and the values that it captures. A loop that
    captures the fingerprint of the modules it calls is recompiled when these change.
    """
    return zlib.crc32("".join(map(inspect.getsource, modules)).encode())

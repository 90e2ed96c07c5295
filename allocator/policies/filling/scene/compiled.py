"""How loops are compiled, and how their cache is kept in step with the sources."""

import inspect
import zlib
from types import ModuleType

from allocator.core.numba.compiled import part

compiled = part(error_model="numpy", _nrt=False)
"""Compile a part of a loop, without a cache of its own.

It must not create arrays, and so skips reference counting, which with dozens of arrays would take
ten times as long as the work itself. ``1 / 0`` is infinite, as in numpy.
"""

hot = part(error_model="numpy", _nrt=False, forceinline=True)
"""Compile a part of every grant's path inline into its callers.

Rarely used parts, and parts that are long relative to a call, stay functions of their own.
"""

allocating = part(error_model="numpy")
"""Compile a part that creates arrays."""


def fingerprint(*modules: ModuleType) -> int:
    """Return a number that changes whenever one of the sources does.

    Numba's cache key covers only the loop's own file and the values that it captures. A loop that
    captures the fingerprint of the modules it calls is recompiled when they change.
    """
    return zlib.crc32("".join(map(inspect.getsource, modules)).encode())

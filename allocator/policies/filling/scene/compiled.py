"""How loops are compiled, and what keeps a cached one in step with its sources."""

import inspect
import zlib
from types import ModuleType

from allocator.core.numba.compiled import part

compiled = part(error_model="numpy", _nrt=False)
"""Compile a part of a loop, which needs no cache of its own.

Such a part makes no arrays, and so counts no references to those it is given: with dozens of arrays
that would take ten times as long as the work itself. ``1 / 0`` is infinite, as in numpy.
"""

hot = part(error_model="numpy", _nrt=False, forceinline=True)
"""Compile a part of what each grant passes through into all its callers.

What few grants need, or what is long beside the call, stays a function of its own.
"""

allocating = part(error_model="numpy")
"""Compile a part that makes arrays."""


def fingerprint(*modules: ModuleType) -> int:
    """Return a number that changes whenever one of the sources does.

    Numba's cache looks only at the file that a loop stands in, and at the values that the loop
    captures: so a loop that captures the fingerprint of the modules it calls is compiled again when
    they change.
    """
    return zlib.crc32("".join(map(inspect.getsource, modules)).encode())

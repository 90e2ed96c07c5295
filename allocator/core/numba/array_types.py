"""Short names for array types."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BitWords = NDArray[np.uint64]
BitTable = NDArray[np.uint64]
"""A bit for each pair of an agent and a client, see `bit_tables`."""
Indices = NDArray[np.int32]

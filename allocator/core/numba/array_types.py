"""Short names for array types."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BitWords = NDArray[np.uint64]
Indices = NDArray[np.int32]

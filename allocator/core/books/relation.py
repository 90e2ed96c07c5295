"""Relations between agents and clients, a bit for each pair."""

import numpy as np

from allocator.core.snapshot import Bools, Ints, Words


def bits(words: Words, row: Ints, client: Ints) -> Bools:
    """Look the bits of pairs up in a relation (A, W)."""
    word = words[row, client // 64]
    return ((word >> (client % 64).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)

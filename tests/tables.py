"""Tables of bits in plain form, for tests that compare them."""

from allocator.core.numba.array_types import BitTable
from allocator.core.numba.shared_bits import SharedBits


def dense(table: SharedBits) -> BitTable:
    """The words of each agent, (B, A, V)."""
    return table.bits[table.row]

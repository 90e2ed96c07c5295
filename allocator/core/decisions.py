"""What the allocator says: the decisions of one cycle."""

from dataclasses import dataclass

from allocator.core.snapshot import Ints


@dataclass(frozen=True, slots=True)
class Decisions:
    """Offers to make, one row for each (framework, role, agent).

    Attributes
    ----------
    cycle : int
        Number of the cycle, from 1; 0 where none was run.
    first_decision : int
        Row i is decision ``first_decision + i``.
    framework, role, agent : (N,) int64
    kind : (K,) int64
    amount : (N, K) int64, thousandths
    """

    cycle: int
    first_decision: int
    framework: Ints
    role: Ints
    agent: Ints
    kind: Ints
    amount: Ints

    def __len__(self) -> int:
        return len(self.framework)

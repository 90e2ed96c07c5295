"""Mathematics only: arrays in, a solution and its certificate out.

A solver is a module with one `solve`. It never returns an answer that its own certificate does not
accept: it raises `NotOptimal` instead. One that may take long can be told how much it may do, and
raises `GivenUp` beyond that. Work is counted and not timed: so it ends at the same place anywhere.

Begin with the `__init__` of a room: `flow`, `fluid` or `max_min`.
"""


class NotOptimal(RuntimeError):  # noqa: N818  (it is a verdict on an answer, not a fault)
    """The solver's answer misses its certificate.

    `residual`: how far the best answer found is from satisfying the optimality conditions.
    `tolerance`: how far it may be.
    """

    def __init__(self, problem: str, residual: float, tolerance: float) -> None:
        super().__init__(f"{problem}: residual {residual:.3g} exceeds {tolerance:.3g}")
        self.residual = residual
        self.tolerance = tolerance


WORK_MAX = 2e11
"""Operations that a plan may take: a minute or two of a slow processor."""


class GivenUp(RuntimeError):  # noqa: N818  (it is a verdict on a problem, not a fault)
    """The solver would have to do more than it may."""

    def __init__(self, problem: str, most: float) -> None:
        super().__init__(
            f"{problem}: given up, for it takes more than {most:.0e} operations; there are too many"
            " frameworks of different needs, or agents that differ"
        )


class Work:
    """What a solver has done, and may do.

    `problem`: what is told where it is too much.
    `most`: operations.
    """

    def __init__(self, problem: str, most: float) -> None:
        self._problem, self._most, self._done = problem, most, 0.0

    def spend(self, operations: float) -> None:
        """Count what is about to be done.

        Raises GivenUp where it would be too much.
        """
        self._done += operations
        if self._done > self._most:
            raise GivenUp(self._problem, self._most)

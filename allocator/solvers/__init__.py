"""Solvers: functions from arrays to a solution and its certificate of optimality.

A solver is a module with one `solve`. If its own certificate rejects the result, it raises
`NotOptimal`. A solver that may take long accepts a limit of work and raises `GivenUp` beyond it.
Work is counted in operations, not in time, so that the outcome does not depend on the machine.

Start with the `__init__` of a package: `flow`, `fluid` or `max_min`.
"""


class NotOptimal(RuntimeError):  # noqa: N818  (it is a verdict on an answer, not a fault)
    """The solver's result fails its certificate.

    `residual`: how far the best result is from satisfying the optimality conditions.
    `tolerance`: the largest residual allowed.
    """

    def __init__(self, problem: str, residual: float, tolerance: float) -> None:
        super().__init__(f"{problem}: residual {residual:.3g} exceeds {tolerance:.3g}")
        self.residual = residual
        self.tolerance = tolerance


WORK_MAX = 2e11
"""Maximum number of operations for one plan: a minute or two on a slow processor."""


class GivenUp(RuntimeError):  # noqa: N818  (it is a verdict on a problem, not a fault)
    """The solver would exceed its limit of work."""

    def __init__(self, problem: str, most: float) -> None:
        super().__init__(
            f"{problem}: given up: it takes more than {most:.0e} operations; there are too many"
            " frameworks with different demands, or too many different agents"
        )


class Work:
    """Counts the work of a solver against a limit of `most` operations.

    `problem`: named in the error.
    """

    def __init__(self, problem: str, most: float) -> None:
        self._problem, self._most, self._done = problem, most, 0.0

    def spend(self, operations: float) -> None:
        """Count operations about to be done. Raises GivenUp if they would exceed the limit."""
        self._done += operations
        if self._done > self._most:
            raise GivenUp(self._problem, self._most)

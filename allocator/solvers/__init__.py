"""Mathematics only: arrays in, a solution and its certificate out.

A solver is a module with one `solve`. It never returns an answer that its own certificate does not
accept: it raises `NotOptimal` instead.

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

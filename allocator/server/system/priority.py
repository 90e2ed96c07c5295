"""Lowers the scheduling priority of work that others should not wait for."""

import os
from contextlib import suppress


def give_way(niceness: int) -> None:
    """Lower the priority of this thread, and of those that it starts."""
    with suppress(OSError):  # a sandbox may forbid it
        os.nice(niceness)

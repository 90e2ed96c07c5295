"""The work of a Spark job: stages of tasks, each of which begins when the one before is done."""

from collections.abc import Sequence


class Stages:
    """Tasks that wait, and how many run.

    waiting: durations in ms of the tasks of this stage that nobody took yet, the next one last.
    done: all tasks of all stages are.
    """

    def __init__(self, stages_ms: Sequence[Sequence[int]]) -> None:
        self._later = [list(reversed(stage)) for stage in reversed(stages_ms) if stage]
        self.waiting: list[int] = []
        self.running = 0
        self.done = False
        self._next()

    @property
    def left(self) -> int:
        """Tasks of this stage that wait or run."""
        return len(self.waiting) + self.running

    def take(self) -> int:
        """Begin the next task that waits; gives its duration in ms."""
        self.running += 1
        return self.waiting.pop()

    def finish(self) -> bool:
        """A task is done; True where that ends its stage."""
        self.running -= 1
        return self._next()

    def lose(self, durations_ms: Sequence[int]) -> None:
        """Tasks are gone with what ran them, and wait again."""
        self.running -= len(durations_ms)
        self.waiting += durations_ms

    def _next(self) -> bool:
        if self.left:
            return False
        if self._later:
            self.waiting = self._later.pop()
        else:
            self.done = True
        return True

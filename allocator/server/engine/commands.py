"""What waits for the core's thread: commands in the order they came, and questions between them."""

import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeVar

from allocator.server.engine.questions import Questions
from allocator.server.engine.rpc_futures import fulfil

_T = TypeVar("_T")

Command = Callable[[], None]


class Commands:
    """The queue: any thread may put, one thread takes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin empty; `clock` gives the seconds that questions are measured in."""
        self._questions = Questions(clock)
        self._queue: queue.SimpleQueue[Command | None] = queue.SimpleQueue()

    @property
    def depth(self) -> int:
        """How many wait."""
        return self._queue.qsize()

    @property
    def questions_s(self) -> float:
        """How long questions took so far."""
        return self._questions.taken_s

    def put(self, command: Command | None) -> None:
        """Put a command; None: it is the last."""
        self._queue.put(command)

    def call(self, work: Callable[[], _T]) -> Future[_T]:
        """Put some work; its result or exception comes with the future."""
        future: Future[_T] = Future()
        self._queue.put(partial(fulfil, future, work))
        return future

    def ask(self, work: Callable[[], _T]) -> Future[_T]:
        """The same for what changes nothing, of which a fifth of the time is enough."""
        future: Future[_T] = Future()
        self._queue.put(partial(self._questions.add, future, work))
        return future

    def taken(self) -> Iterator[Command]:
        """Give what is to be done next, until the last; then the questions that still wait."""
        while True:
            if (rest_s := self._questions.rest_s()) == 0:
                yield self._questions.answer
                continue
            with suppress(queue.Empty):
                if (command := self._queue.get(timeout=rest_s)) is None:
                    break
                yield command
        yield self._questions.answer_all

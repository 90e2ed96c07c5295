"""What waits for the core's thread, and how others wait for its answers.

Commands are done in the order in which they came, and questions between them. Questions may take a
fifth of the core's time. Answers are worked out on the threads of those who asked, one at a time:
the core's thread would wait for Python's global lock behind each thread that runs.
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple, NoReturn, Protocol, TypeVar, cast

import grpc

ANSWER_S = 30.0
"""How long the core may take for whoever set no deadline."""

ON_THE_WAY_S = 0.25
"""An answer is given so long before the caller's deadline: later it would find nobody who hears."""

TOLD_MAX = 600
"""Characters of a refusal: gRPC takes 8 KiB for it, and each may become twelve bytes."""

_T = TypeVar("_T")


class Ask(Protocol):
    """Has the core's thread do some work, and gives the result; raises where it comes too late."""

    def __call__(self, work: Callable[[], _T], /) -> _T:
        """Wait for it."""


def left_s(context: grpc.ServicerContext) -> float:
    """How long an answer may take, so that it still arrives."""
    left = cast("float | None", context.time_remaining())  # None without a deadline
    if left is None:
        return ANSWER_S
    return max(min(left - min(ON_THE_WAY_S, left / 4), ANSWER_S), 0.0)


def wait(context: grpc.ServicerContext, future: "Future[_T]") -> _T:
    """Wait for the core; when the time is up, work that it has not begun is cancelled."""
    try:
        return future.result(left_s(context))
    except TimeoutError:
        future.cancel()
        context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the core is busy; ask again")


def settled(future: "Future[_T]", within_s: float) -> _T:
    """Wait for a change: its true outcome, or it has not begun in time and never will.

    One that has begun is waited for, however long it takes.

    Raises TimeoutError: then nothing has changed, and nothing will.
    """
    try:
        return future.result(within_s)
    except TimeoutError:
        if future.cancel():
            raise
        return future.result()


def reject(context: grpc.ServicerContext, message: str) -> NoReturn:
    """Say that a request is wrong; of a very long text the beginning and the end."""
    if len(message) > TOLD_MAX:
        message = f"{message[: TOLD_MAX * 2 // 3]}...{message[-TOLD_MAX // 3 :]}"
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, message)


def fulfil(future: "Future[_T]", work: Callable[[], _T]) -> None:
    """Do some work for whoever waits for it."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = work()
    except BaseException as error:  # noqa: BLE001 - whoever asked is told; the thread lives on.
        future.set_exception(error)
    else:
        future.set_result(found)


PART = 0.2
"""Part of the core's time that questions may take."""

SAVED_S = 0.5
"""What they took less is theirs later, up to this: one who asks now and then waits for nobody."""


class AnswerLock:
    """Lets one answer at a time be worked out, whoever asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Wait so long for the lock, and hold it as long as the context. Raises TimeoutError."""
        if not self._lock.acquire(timeout=max(seconds, 0.0)):
            raise TimeoutError
        try:
            yield
        finally:
            self._lock.release()


class Questions:
    """Questions that wait for the core's thread, which alone may touch them.

    Anybody who may ask can ask without end, and decisions wait while a question is answered. So
    after a question of t seconds the next one waits for 4 t. Time that questions did not use is
    saved for later ones, up to `SAVED_S`.

    `taken_s`: time that questions took so far.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with all that can be saved; `clock` gives seconds."""
        self.taken_s = 0.0
        self._clock = clock
        self._waiting: deque[tuple[Future[object], Callable[[], None]]] = deque()
        self._saved_s = SAVED_S
        self._seen_s = clock()

    def add(self, future: "Future[_T]", work: Callable[[], _T]) -> None:
        """Take a question; those that nobody waits for any more are forgotten."""
        self._waiting = deque(each for each in self._waiting if not each[0].cancelled())
        self._waiting.append((future, partial(fulfil, future, work)))  # type: ignore[arg-type]

    def rest_s(self) -> float | None:
        """How long until the next one may begin; None where none waits."""
        if not self._waiting:
            return None
        self._save()
        return max(-self._saved_s / PART, 0.0)

    def answer(self) -> None:
        """Answer the one that waits for longest."""
        _, answer = self._waiting.popleft()
        self._save()
        begun_s = self._clock()
        answer()
        took_s = self._clock() - begun_s
        self.taken_s += took_s
        self._saved_s -= took_s

    def answer_all(self) -> None:
        """Answer whoever waits, when there are no decisions to wait for any more."""
        while self._waiting:
            self.answer()

    def _save(self) -> None:
        now_s = self._clock()
        self._saved_s = min(self._saved_s + PART * (now_s - self._seen_s), SAVED_S)
        self._seen_s = now_s


class Command(NamedTuple):
    """What is to be done, and of what kind that is, see `holds`."""

    kind: str
    do: Callable[[], None]


class Commands:
    """The queue: any thread may put, one thread takes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin empty; `clock` gives the seconds that questions are measured in."""
        self._questions = Questions(clock)
        self._queue: queue.SimpleQueue[Command | None] = queue.SimpleQueue()

    @property
    def depth(self) -> int:
        return self._queue.qsize()

    @property
    def questions_s(self) -> float:
        """How long questions took so far."""
        return self._questions.taken_s

    def put(self, work: Callable[[], None], kind: str = "message") -> None:
        """Put some work whose result nobody waits for."""
        self._queue.put(Command(kind, work))

    def end(self) -> None:
        """Say that there is no more."""
        self._queue.put(None)

    def call(self, work: Callable[[], _T], kind: str = "change") -> Future[_T]:
        """Put some work; its result or exception comes with the future."""
        future: Future[_T] = Future()
        self.put(partial(fulfil, future, work), kind)
        return future

    def ask(self, work: Callable[[], _T]) -> Future[_T]:
        """The same for what changes nothing, of which a fifth of the time is enough."""
        future: Future[_T] = Future()
        self.put(partial(self._questions.add, future, work), "question")
        return future

    def taken(self) -> Iterator[Command]:
        """Give what is to be done next, until the last; then the questions that still wait."""
        while True:
            if (rest_s := self._questions.rest_s()) == 0:
                yield Command("question", self._questions.answer)
                continue
            with suppress(queue.Empty):
                if (command := self._queue.get(timeout=rest_s)) is None:
                    break
                yield command
                del command  # it may hold a large answer
        yield Command("question", self._questions.answer_all)

"""Work for another thread: what becomes of its exceptions."""

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from traceback import format_exception
from types import SimpleNamespace
from typing import Any

import pytest

from allocator.server.engine.commands import fulfil, settled, wait
from tests.server.in_process import books_of, kept

CONTEXT: Any = SimpleNamespace(time_remaining=lambda: 60.0)


class Computed:
    """What work has computed before it fails."""


def of_books(work: Callable[[], None]) -> None:
    with kept(books_of()) as books:
        books.read(work, 60)


def at_once(work: Callable[[], None]) -> "Future[None]":
    future: Future[None] = Future()
    fulfil(future, work)
    return future


@pytest.mark.parametrize(
    "read",
    [
        lambda work: wait(CONTEXT, at_once(work)),
        lambda work: settled(at_once(work), 60),
        of_books,
    ],
    ids=["wait", "settled", "books"],
)
def test_what_failed_work_has_computed_is_freed_without_a_garbage_collection(read):
    found: list[weakref.ref[Computed]] = []

    def work() -> None:
        computed = Computed()
        found.append(weakref.ref(computed))
        raise LookupError

    gc.disable()
    try:
        with pytest.raises(LookupError) as caught:
            read(work)
        assert "raise LookupError" in "".join(format_exception(caught.value))
        assert found[0]() is None
    finally:
        gc.enable()

"""Loops that run compiled, and that can run interpreted, too: slowly, with the same results.

Numba is imported, and a loop compiled or loaded from the cache, when a compiled loop is called
first. So a process that calls none starts without numba; and one whose cache is cold decides
interpreted while another process compiles, see `interpret`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from typing import Any, Protocol, TypeVar, cast

import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Mode:
    """How loops run in this process."""

    interpreted = False
    superseded = False
    cache_may_fail = False


_interpreted_here: ContextVar[bool] = ContextVar("interpreted_here")


class Decorator(Protocol):
    """Gives back a function of the same type."""

    def __call__(self, function: _Function, /) -> _Function: ...


class Superseded(Exception):  # noqa: N818 - it is no error
    """Raised by interpreted loops once compiled ones are available: begin the work again."""


class Loop:
    """A function that is compiled when it is needed.

    `entry`: called from Python, and not only from other loops.
    `restarts`: raises `Superseded` where it runs interpreted, and compiled loops have become
        available.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        *,
        entry: bool,
        restarts: bool = False,
    ) -> None:
        """Wrap a function; `options` are those of ``numba.njit``."""
        update_wrapper(self, function)
        self.entry = entry
        self.restarts = restarts
        self._function = function
        self._options = options

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401
        """Run it; a part that Python calls runs interpreted, for it is compiled into loops only."""
        # The usual case: compiled.
        if self.entry and not is_interpreted():
            return self.dispatcher(*arguments)
        if self.restarts and _Mode.superseded:
            raise Superseded
        # A part runs inside a loop, which has set numpy's errors already.
        if not self.entry:
            return self._function(*arguments)
        with np.errstate(all="ignore"):  # as in compiled code
            return self._function(*arguments)

    @cached_property
    def dispatcher(self) -> Any:  # noqa: ANN401
        from allocator.core.numba.numba_types import njit

        return njit(self._function, self._options, cache_may_fail)

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401
        """What numba takes a loop for where another one names it."""
        from numba import types

        return types.Dispatcher(self.dispatcher)


def loop(function: _Function) -> _Function:
    """Compile a function that Python calls, and cache it."""
    return entry()(function)


def entry(**options: Any) -> Decorator:  # noqa: ANN401
    """Compile a function that Python calls, with options of its own, and cache it.

    It gives the interpreter's lock free, so that however long it takes, other threads answer.
    """
    options = {"cache": True, "no_cfunc_wrapper": True, "nogil": True, **options}

    def decorate(function: _Function) -> _Function:
        return cast("_Function", Loop(function, options, entry=True))

    return decorate


def part(*, restarts: bool = False, **options: Any) -> Decorator:  # noqa: ANN401
    """Compile a function that only compiled ones call, as part of them."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}

    def decorate(function: _Function) -> _Function:
        return cast("_Function", Loop(function, options, entry=False, restarts=restarts))

    return decorate


def loop_view(array: np.ndarray) -> np.ndarray:
    """View an array as contiguous and read-only: for numba one type, whoever calls a loop."""
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def interpret(wanted: bool) -> None:
    """Run all loops of the process interpreted from now on, or compiled."""
    _Mode.interpreted = wanted
    _Mode.superseded = False


def is_interpreted() -> bool:
    """Say whether loops run interpreted in this context (thread)."""
    return _interpreted_here.get(_Mode.interpreted)


def tolerate_cache_errors() -> None:
    """Compile what cannot be read from the cache from now on, and go on where it cannot be kept.

    A process that serves must not fail at a loop because the disk is full, or files are used up.
    """
    _Mode.cache_may_fail = True


def cache_may_fail() -> bool:
    """Say whether errors of the cache are tolerated."""
    return _Mode.cache_may_fail


def supersede() -> None:
    """Make interpreted loops raise `Superseded` where they may; its catcher calls `interpret`."""
    _Mode.superseded = _Mode.interpreted


def compiled_here() -> AbstractContextManager[None]:
    """Run loops compiled in this context (thread), whatever the process does."""
    return _here(interpreted=False)


def interpreted_here() -> AbstractContextManager[None]:
    """Run loops interpreted in this context (thread), whatever the process does."""
    return _here(interpreted=True)


@contextmanager
def _here(*, interpreted: bool) -> Iterator[None]:
    token = _interpreted_here.set(interpreted)
    try:
        yield
    finally:
        _interpreted_here.reset(token)

"""Declares loops, which run compiled or as plain Python: slowly, but with the same results.

The first call of a compiled loop imports numba, and compiles the loop or loads it from the cache;
until then a process runs without numba. Loops run as plain Python while a sidecar still loads them,
over empty books (`interpret`); in trials of a policy (`interpreted_here`); and in tests
(NUMBA_DISABLE_JIT=1).
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
    cache_may_fail = False


_interpreted_here: ContextVar[bool] = ContextVar("interpreted_here")
_cached_only: ContextVar[bool] = ContextVar("cached_only", default=False)


class Decorator(Protocol):
    """Returns a function of the same type."""

    def __call__(self, function: _Function, /) -> _Function: ...


class Loop:
    """A function that is compiled when it is first needed.

    `entry`: whether Python calls it. If not, it is a *part* of compiled loops.
    """

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], *, entry: bool
    ) -> None:
        update_wrapper(self, function)
        self.entry = entry
        self._function = function
        self._options = options

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401
        """Run the function. A part that Python calls is always interpreted."""
        if self.entry and not _interpreted_here.get(_Mode.interpreted):
            return self.dispatcher(*arguments)
        # Part of an interpreted loop, which has set numpy's error handling.
        if not self.entry:
            return self._function(*arguments)
        with np.errstate(all="ignore"):  # as in compiled code
            return self._function(*arguments)

    @cached_property
    def dispatcher(self) -> Any:  # noqa: ANN401
        from allocator.core.numba.numba_types import njit

        return njit(self._function, self._options, cache_may_fail, _may_compile)

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401
        """Numba's type of the function, for loops that call it."""
        from numba import types

        return types.Dispatcher(self.dispatcher)


def loop(function: _Function) -> _Function:
    """Declare a loop: a function that Python calls, compiled and cached."""
    return entry()(function)


def entry(**options: Any) -> Decorator:  # noqa: ANN401
    """Declare a loop with further options of ``numba.njit``. It releases the GIL while it runs."""
    options = {"cache": True, "no_cfunc_wrapper": True, "nogil": True, **options}

    def decorate(function: _Function) -> _Function:
        return cast("_Function", Loop(function, options, entry=True))

    return decorate


def part(**options: Any) -> Decorator:  # noqa: ANN401
    """Declare a part: a function that only loops and other parts call."""
    # Numba hands `forceinline` on to whatever the function calls, unless it is set there.
    options = {
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "forceinline": False,
        **options,
    }

    def decorate(function: _Function) -> _Function:
        return cast("_Function", Loop(function, options, entry=False))

    return decorate


def loop_view(array: np.ndarray) -> np.ndarray:
    """View an array as contiguous and read-only: one type for all callers of a loop."""
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def interpret(wanted: bool) -> None:
    """Run all loops of the process as plain Python (True) or compiled (False) from now on."""
    _Mode.interpreted = wanted


def tolerate_cache_errors() -> None:
    """From now on, continue if compiled loops cannot be read from or saved to the cache.

    A server must not fail because the disk is full or file descriptors are used up.
    """
    _Mode.cache_may_fail = True


def cache_may_fail() -> bool:
    return _Mode.cache_may_fail


def _may_compile() -> bool:
    return not _cached_only.get()


def compiled_here() -> AbstractContextManager[None]:
    """Run loops compiled in this context (thread), regardless of `interpret`."""
    return _here(_interpreted_here, False)


def interpreted_here() -> AbstractContextManager[None]:
    """Run loops as plain Python in this context (thread), regardless of `interpret`."""
    return _here(_interpreted_here, True)


def cached_only_here() -> AbstractContextManager[None]:
    """Load loops only from the cache in this context (thread), else raise NotCachedError."""
    return _here(_cached_only, True)


@contextmanager
def _here(variable: ContextVar[bool], value: bool) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)

"""Loads users' policies, from files named in the configuration and from packages' entry points.

A file defines ``POLICIES``, a dict of name to `allocator.policies.Entry`. An entry point of the
group ``mesos_allocator.policies`` is an `Entry`; its name is the name of the policy.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_loader
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar

from allocator.core import CALLS, describe
from allocator.policies import POLICIES, Entry
from allocator.server.system import threads
from allocator.server.system.disk import read_regular

GROUP = "mesos_allocator.policies"

DEFINES = "POLICIES"

BYTES_MAX = 16 * 2**20
"""Maximum size of a file; a larger one is not hand-written Python."""


LOAD_S = 60.0
"""Maximum time to run a file or a package, without compilation."""

BUILD_S = 20.0
"""Maximum time for a policy's `build`, without compilation."""

_T = TypeVar("_T")


class PluginError(ValueError):
    """A user's policy cannot be loaded; the text has the source, the reason, and the fix."""


class EndlessError(TimeoutError):
    """A user's code did not return in time."""


def load_file(path: str) -> list[str]:
    """Add all policies of a file to the registry, or raise PluginError; return their names."""
    origin = os.path.realpath(path)
    try:
        read_regular(origin, BYTES_MAX)
    except OSError as error:
        message = f"cannot be read ({error.strerror}); name a readable Python file"
        raise PluginError(message) from None
    try:
        defined = _run(origin)
    except SyntaxError as error:
        what = f"is not valid Python: line {error.lineno}: {error.msg}; fix it"
        raise PluginError(what) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise PluginError(_failed(origin, error)) from error
    entries = getattr(defined, DEFINES, None)
    if not isinstance(entries, dict) or not entries:
        what = "defines no" if entries is None else "must be a dict that is not empty:"
        raise PluginError(f'{what} {DEFINES}; write {DEFINES} = {{"my-policy": Entry(...)}}')
    # Check all entries first. Then replace the file's previous ones, so that it can be reloaded.
    checked = {name: _checked(name, entry, origin) for name, entry in entries.items()}
    others = {name: entry for name, entry in POLICIES.items() if entry.origin != origin}
    POLICIES.replace({**others, **checked})
    return list(checked)


def load_entry_points() -> Iterator[str]:
    """Add the policies of installed packages to the registry; yield an error for each failure."""
    for point in sorted(entry_points(group=GROUP)):
        origin = f"the entry point {point.name} = {point.value} of the package {_package(point)}"
        try:
            entry = _checked(point.name, _loaded(point), origin)
            POLICIES.replace({**POLICIES, point.name: entry})
        except PluginError as error:
            yield f"{origin}: {error}"


def _run(origin: str) -> ModuleType:
    """Run a file as a separate module; if it fails, no module is left."""
    name = f"mesos_allocator_plugin:{origin}"
    loader = SourceFileLoader(name, origin)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # as dataclasses and numba expect it
    try:
        _in_time(f"the file {origin}", lambda: loader.exec_module(module), LOAD_S)
    except BaseException:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise
    return module


def _loaded(point: EntryPoint) -> object:
    try:
        return _in_time(f"the package {_package(point)}", point.load, LOAD_S)
    except (Exception, SystemExit) as error:
        message = f"{type(error).__name__}: {error}; fix the package, or remove it"
        raise PluginError(f"cannot be loaded: {message}") from error


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def _failed(origin: str, error: BaseException) -> str:
    frames = [each for each in extract_tb(error.__traceback__) if each.filename == origin]
    # The innermost line in the file itself, and its callers.
    lines = [each.lineno or 0 for each in reversed(frames)] or [0]
    came = "".join(f", called from line {each}" for each in lines[1:CALLS])
    return f"fails at line {lines[0]}{came}: {type(error).__name__}: {error}; fix it"


def _checked(name: object, entry: object, origin: str) -> Entry:
    """Return an entry with time limits, if it is valid and its name is free."""
    if not isinstance(name, str) or not name:
        raise PluginError(f"{DEFINES}: {name!r} is not a name; write text, as in 'my-policy'")
    known = POLICIES.get(name)
    if known is not None and known.origin != origin:
        whose = known.origin or "mesos-allocator itself"
        raise PluginError(f"{DEFINES}[{name!r}]: {whose} has that name; choose another")
    if not isinstance(entry, Entry):
        what = f"is {type(entry).__name__}; make it an allocator.policies.Entry"
        raise PluginError(f"{DEFINES}[{name!r}]: {what}, or use filled_by(...)")
    making = Making(name, origin)
    criterion = entry.criterion and making.bounded(entry.criterion)
    return replace(entry, origin=origin, build=making.bounded(entry.build), criterion=criterion)


class Making:
    """Builds a user's policy within a time limit; after a timeout it is not built again.

    This may run on the core's thread, which must not wait forever.
    """

    def __init__(self, name: str, origin: str) -> None:
        self._named = f"name: the policy {name!r} of {origin}"
        self._text = f"{self._named} does not return from its `build`"
        self._who = f"the policy {name!r}"
        self._overran = False

    def bounded(self, make: Callable[..., _T]) -> Callable[..., _T]:
        """Return the function with a time limit, beyond which it raises a ValueError."""

        def made(*given: Any, **named: Any) -> _T:  # noqa: ANN401 - any arguments
            if self._overran:
                raise ValueError(f"{self._text}; fix it, and reload the configuration")
            try:
                return _in_time(self._who, lambda: make(*given, **named), BUILD_S)
            except EndlessError:
                self._overran = True
                text = f"{self._text} within {BUILD_S:g} s; fix it, or take another"
                raise ValueError(text) from None
            except SystemExit as error:
                raise ValueError(f"{self._text}: it would end the process; fix it") from error
            except ValueError:  # the error in the specification
                raise
            except Exception as error:
                text = f"{self._named} cannot be built: {describe(error)}; fix it"
                raise ValueError(text) from error

        return made


def _in_time(who: str, work: Callable[[], _T], within_s: float) -> _T:
    """Run a user's code. Raises EndlessError if it does not return in time."""

    def wait(thread: threading.Thread) -> None:
        threads.wait_for(thread, who, "its result", within_s)

    found = threads.apart(who, work, wait)
    if found is None:
        raise EndlessError(f"it did not return within {within_s:g} s")
    return found[0]

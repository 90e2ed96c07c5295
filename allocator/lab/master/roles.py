"""Handles of roles, kept for a session at least, and while something names them."""

from collections import Counter
from collections.abc import Iterable

from allocator.core import Define
from allocator.lab.master.handles import Handles
from allocator.lab.master.outbox import Outbox
from allocator.lab.master.resources import lineage


class Roles:
    """Paths of roles and their handles; ancestors are bound with their descendants.

    outbox: where bindings are announced.
    """

    def __init__(self, outbox: Outbox) -> None:
        self.handle: dict[str, int] = {}
        self.path: dict[int, str] = {}
        self._names: Counter[str] = Counter()
        self._handles = Handles()
        self._outbox = outbox

    def name(self, paths: Iterable[str]) -> tuple[int, ...]:
        """Handles of the paths, bound where they were not; they are named once more."""
        paths = tuple(paths)
        fresh = {}
        # A role is bound after its ancestors; all of them are defined in one event.
        for path in _with_ancestors(paths):
            if path not in self.handle:
                fresh[self._bind(path)] = path
            self._names[path] += 1
        if fresh:
            self._outbox.add(Define(roles=fresh))
        return tuple(self.handle[path] for path in paths)

    def forget(self, paths: Iterable[str]) -> None:
        """The paths are named once less; those that nothing names go with the session."""
        for path in _with_ancestors(tuple(paths)):
            self._names[path] -= 1

    def begin(self) -> None:
        """Begin a session, with the roles that something names."""
        for path in [path for path in self.handle if not self._names[path]]:
            # Within a session a handle keeps its role, so it is given back only here.
            handle = self.handle.pop(path)
            del self.path[handle], self._names[path]
            self._handles.give_back(handle)

    def _bind(self, path: str) -> int:
        handle = self._handles.take()
        self.handle[path] = handle
        self.path[handle] = path
        return handle


def _with_ancestors(paths: tuple[str, ...]) -> list[str]:
    """Every path after its ancestors; one that several share comes once for each."""
    found = []
    for path in paths:
        found += lineage(path)
    return found

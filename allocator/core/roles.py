"""The tree of roles: paths, parents, weights."""

from collections.abc import Mapping

import numpy as np

from allocator.core.array_structures import grow
from allocator.core.events import EventError
from allocator.core.snapshot import Ints

ROOT = 0


class RoleTable:
    """Roles by handle; row 0 is the root, above every role.

    Attributes
    ----------
    path : list of str
    bound : (n,) bool
    parent, depth : (n,) int64
        The root is its own parent, at depth 0.
    weight : (n,) float64
    version : int
        Grows whenever a role comes or goes.
    """

    def __init__(self) -> None:
        """Begin with the root alone."""
        self.path: list[str] = [""]
        self.bound = grow(np.ones(1, np.bool_), 1)
        self.parent = grow(np.zeros(1, np.int64), 1)
        self.depth = grow(np.zeros(1, np.int64), 1)
        self.weight = grow(np.ones(1), 1)
        self.children = grow(np.zeros(1, np.int64), 1)
        self.version = 0
        self._row: dict[str, int] = {"": ROOT}
        self._weights: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._row) - 1

    def check_define(self, roles: Mapping[int, str], limit: int, field: str) -> None:
        """Raise an `EventError` where one of the roles cannot be bound."""
        coming = set(self._row)
        for handle, path in roles.items():
            if not 1 <= handle <= limit:
                message = f"role {handle} is out of range; handles of roles are 1 to {limit}"
                raise EventError("limit", field, message)
            bound = handle < len(self.path) and self.bound[handle]
            if bound and self.path[handle] != path:
                message = f"role {handle} is bound to {self.path[handle]!r}; take a free handle"
                raise EventError("handle", field, message)
            if not bound and path in coming:
                message = f"role {path!r} has a handle already; use that"
                raise EventError("handle", field, message)
            parent = path.rpartition("/")[0]
            if not path or not all(path.split("/")):
                message = f"{path!r} is not a role; write it as 'eng' or 'eng/ads'"
                raise EventError("value", field, message)
            if parent not in coming:
                message = f"role {path!r} comes before its parent; define {parent!r} first"
                raise EventError("handle", field, message)
            coming.add(path)

    def define(self, handle: int, path: str) -> None:
        """Bind a role whose parent is bound."""
        if handle < len(self.path) and self.bound[handle]:
            return
        self.path.extend([""] * (handle + 1 - len(self.path)))
        self.bound = grow(self.bound, handle + 1)
        self.parent = grow(self.parent, handle + 1)
        self.depth = grow(self.depth, handle + 1)
        self.weight = grow(self.weight, handle + 1)
        self.children = grow(self.children, handle + 1)
        parent = self._row[path.rpartition("/")[0]]
        self.path[handle] = path
        self.bound[handle] = True
        self.parent[handle] = parent
        self.depth[handle] = self.depth[parent] + 1
        self.weight[handle] = self._weights.get(path, 1.0)
        self.children[parent] += 1
        self._row[path] = handle
        self.version += 1

    def forget(self, handle: int) -> None:
        """Unbind a role without children."""
        self.children[self.parent[handle]] -= 1
        self.bound[handle] = False
        del self._row[self.path[handle]]
        self.path[handle] = ""
        self.version += 1

    def is_bound(self, handle: int) -> bool:
        """Whether the handle names a role (the root is none)."""
        return 0 < handle < len(self.path) and bool(self.bound[handle])

    def row(self, path: str) -> int | None:
        """Handle of a role by its path."""
        return self._row.get(path)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Set weights by path; they wait for roles that are not bound yet."""
        self._weights.update(weights)
        for path, weight in weights.items():
            if path in self._row:
                self.weight[self._row[path]] = weight

    def by_depth(self) -> list[Ints]:
        """Bound roles below the root, level by level."""
        rows = np.flatnonzero(self.bound[: len(self.path)])[1:]
        depth = self.depth[rows]
        return [rows[depth == level] for level in range(1, int(depth.max(initial=0)) + 1)]

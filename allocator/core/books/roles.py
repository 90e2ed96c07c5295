"""The table of roles: paths, parents, weights, turns."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

import numpy as np

from allocator.core.events import EventError
from allocator.core.numba.columns import Table, column
from allocator.core.snapshot import Bools, Floats, Ints

ROOT = 0

_SHOWN = 80
"""Maximum number of characters of a path in an error message."""


class RoleTable(Table):
    """Roles by handle; row 0 is the root, which contains every role.

    `version`: grows whenever a role is added or removed.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("_levels", "_order")

    bound: Bools = column(np.bool_)
    parent: Ints = column()
    """The root's parent is the root."""
    depth: Ints = column()
    """The root's depth is 0."""
    weight: Floats = column(np.float64)
    served: Ints = column()
    """The last turn in which the role or a descendant was served, see `turns`; for the root: the
    number of the last turn."""
    served_here: Ints = column()
    """The last turn in which a framework in the role itself was served."""

    def __init__(self) -> None:
        super().__init__()
        self.bound[ROOT] = True
        self.weight[ROOT] = 1.0
        self.path: list[str] = [""]
        self.version = 0
        self._row: dict[str, int] = {"": ROOT}
        self._weights: dict[str, float] = {}
        self._levels: tuple[int, list[Ints]] = (-1, [])
        none = np.empty(0, np.int64)
        self._order: tuple[int, Ints, Ints] = (-1, none, none.copy())

    def __len__(self) -> int:
        return len(self._row) - 1

    def check_define(self, roles: Mapping[int, str], depth_max: int, field: str) -> None:
        """Raise an `EventError` if one of the roles cannot be bound.

        `roles`: path of each handle, in the order of definition.
        `depth_max`: maximum number of names in a path.
        """
        # A parent may be defined by the same event, before its children.
        coming: set[str] = set()
        for handle, path in roles.items():
            check_depth(path, depth_max, field)
            if handle < 1:
                message = f"role {handle} is out of range; handles of roles are 1 and more"
                raise EventError("limit", field, message)
            bound = handle < len(self.path) and self.bound[handle]
            if bound and self.path[handle] != path:
                message = f"role {handle} is bound to {self.path[handle]!r}; take a free handle"
                raise EventError("handle", field, message)
            if not bound and (path in self._row or path in coming):
                message = f"role {path!r} has a handle already; use that"
                raise EventError("handle", field, message)
            parent = path.rpartition("/")[0]
            if not path or not all(path.split("/")):
                message = f"{path!r} is not a role; write it as 'eng' or 'eng/ads'"
                raise EventError("value", field, message)
            if parent not in self._row and parent not in coming:
                message = f"role {path!r} comes before its parent; define {parent!r} first"
                raise EventError("handle", field, message)
            coming.add(path)

    def define(self, handle: int, path: str) -> None:
        """Bind a role; its parent must be bound."""
        if handle < len(self.path) and self.bound[handle]:
            return
        self.path.extend([""] * (handle + 1 - len(self.path)))
        self.reserve(handle + 1)
        parent = self._row[path.rpartition("/")[0]]
        self.path[handle] = path
        self.bound[handle] = True
        self.parent[handle] = parent
        self.depth[handle] = self.depth[parent] + 1
        self.weight[handle] = self._weights.get(path, 1.0)
        self._row[path] = handle
        self.version += 1

    def is_bound(self, handle: int) -> bool:
        """Whether the handle names a role; the root is not a role."""
        return 0 < handle < len(self.path) and bool(self.bound[handle])

    def row(self, path: str) -> int | None:
        return self._row.get(path)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Set weights by path; the weight of an unbound role applies when it is bound."""
        self._weights.update(weights)
        for path, weight in weights.items():
            if path in self._row:
                self.weight[self._row[path]] = weight

    def by_depth(self) -> list[Ints]:
        """Return the bound roles, except the root, one array per level."""
        if self._levels[0] != self.version:
            # Cached until a role is added or removed.
            rows = np.flatnonzero(self.bound[: len(self.path)])[1:]
            depth = self.depth[rows]
            ends = np.cumsum(np.bincount(depth, minlength=2)[1:])[:-1]
            levels = np.split(rows[np.argsort(depth, kind="stable")], ends)
            self._levels = self.version, levels
        return self._levels[1]

    def inherit(self, own: Mapping[str, int], nothing: int) -> Ints:
        """Assign each role the number of the innermost role in `own` that contains or is it.

        `own`: a number by path.
        `nothing`: the number for all other roles and for unbound rows.
        Returns (n,).
        """
        has = np.zeros(len(self.path), np.bool_)
        number = np.full(len(self.path), nothing)
        for path, value in own.items():
            row = self._row.get(path, ROOT)
            if row != ROOT:
                has[row], number[row] = True, value
        # From the top: a role without a number of its own takes that of its parent.
        for level in self.by_depth():
            rest = level[~has[level]]
            number[rest] = number[self.parent[rest]]
        return number

    def inside(self, path: str) -> Bools:
        """Return which rows are this role or its descendants, (n,); none if it is not bound."""
        enter, leave = self._numbering()
        top = self._row.get(path)
        if top is None:
            return np.zeros(len(self.parent), np.bool_)
        inside: Bools = (enter >= enter[top]) & (enter < leave[top])
        return inside

    def added_up(self, amounts: Ints, paths: Iterable[str]) -> Iterator[tuple[str, Ints]]:
        """Yield sums of amounts (rows, R) over each bound role of `paths` and its descendants."""
        enter, leave = self._numbering()
        here = np.flatnonzero(enter >= 0)
        sums = np.zeros((len(enter) + 1, amounts.shape[1]), np.int64)
        sums[enter[here] + 1] = amounts[here]
        sums = sums.cumsum(axis=0)
        for path in paths:
            row = self._row.get(path)
            if row is not None:
                yield path, sums[leave[row]] - sums[enter[row]]

    def _numbering(self) -> tuple[Ints, Ints]:
        """Number roles in preorder: the subtree of role r is ``enter[r]`` to ``leave[r] - 1``."""
        if self._order[0] != self.version:
            size = np.ones(len(self.parent), np.int64)
            levels = self.by_depth()
            # Count the roles in each subtree, from the bottom up.
            for level in reversed(levels):
                np.add.at(size, self.parent[level], size[level])
            enter = np.full(len(self.parent), -1)
            enter[ROOT] = 0
            # From the top down, each role gets a range of its parent's numbers, after the parent
            # itself and the subtrees of its earlier siblings.
            for level in levels:
                children = level[np.argsort(self.parent[level], kind="stable")]
                parent = self.parent[children]
                before = np.cumsum(size[children]) - size[children]
                # Do not count the subtrees of roles with other parents.
                others = before[np.searchsorted(parent, parent)]
                enter[children] = enter[parent] + 1 + before - others
            self._order = self.version, enter, enter + size
        return self._order[1], self._order[2]


def check_depth(path: str, depth_max: int, field: str) -> None:
    depth = path.count("/") + 1
    if depth > depth_max:
        shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
        message = f"{shown!r} has {depth} levels; at most {depth_max}, raise limits.role_depth"
        raise EventError("limit", field, message)

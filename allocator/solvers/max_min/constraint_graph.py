"""The graph of which users can use which machines, with equal machines and equal users merged.

A constraint graph has users on one side and machine types on the other. Users with the same types,
weight and limit form a *class*. Types that the same classes can use form a *group*. A solver gives
machines of groups to classes; `Graph.spread` then divides them among the users of each class and
the types of each group. It lays both sides end to end: the members of a class, or the types of a
group, in one line, and the machines in another. Each member takes machines from the front of the
other line until it has its amount.

Shapes: U users, T types, C classes, G groups.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 2.2 and 5.1.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@loop
def to_users(
    users: Ints, class_of_user: Ints, machines: Floats, given: Floats, result: Floats
) -> None:
    """Divide the machines of each class among its users.

    `users` (U,): users, sorted by class.
    `class_of_user` (U,): the class of each user.
    `machines` (U,): amount of machines that each user gets.
    `given` (C, G): machines of each group that each class has.
    `result` (U, G): receives the machines of each group that each user gets; initially 0.
    """
    groups = given.shape[1]
    before, group, left = -1, 0, 0.0
    for at in range(len(users)):
        user = users[at]
        row = class_of_user[user]
        if row != before:
            before, group, left = row, -1, 0.0
        needed = machines[user]
        while needed > 0:
            if left <= 0:
                group += 1
                if group >= groups:
                    break
                left = given[row, group]
                continue
            part = min(needed, left)
            result[user, group] += part
            needed -= part
            left -= part


@loop
def to_types(
    types: Ints, group_of_type: Ints, type_count: Ints, by_group: Floats, result: Floats
) -> None:
    """Divide users' machines of groups into machines of types.

    `types`: types that belong to a group, sorted by group.
    `group_of_type`, `type_count` (T,): as in `Graph`.
    `by_group` (U, G): machines of each group that each user has.
    `result` (U, T): receives the machines of each type that each user has; initially 0.
    """
    end = 0
    while end < len(types):
        begin, group = end, group_of_type[types[end]]
        while end < len(types) and group_of_type[types[end]] == group:
            end += 1
        at, used = begin, 0.0
        for user in range(len(by_group)):
            needed = by_group[user, group]
            while needed > 0:
                left = type_count[types[at]] - used
                # The last type absorbs rounding errors.
                if left <= 0 and at + 1 < end:
                    at, used = at + 1, 0.0
                    continue
                part = min(needed, left) if at + 1 < end else needed
                result[user, types[at]] += part
                used += part
                needed -= part


Bools = NDArray[np.bool_]
Amounts = TypeVar("Amounts", Floats, Ints)

UNLIMITED = np.inf
"""The limit of a user who can use any number of machines."""

MACHINES_MAX = 2**52
"""Maximum number of machines in a graph, so that all numbers of machines are exact in float64."""


@dataclass(frozen=True, slots=True)
class Graph:
    """A constraint graph whose equal users and types are merged into classes and groups.

    `eligible` (C, G): whether users of class c can use machines of group g.
    `count` (G,): number of machines of each group; some class can use them.
    `size` (C,): number of users of each class.
    `weight` (C,), > 0: of each user of the class.
    `limit` (C,): maximum number of machines for each user of the class.
    `class_of_user` (U,): the class of each user.
    `group_of_type` (T,): the group of each type; -1 if no user can use the type, or it has no
        machines.
    `type_count` (T,): number of machines of each type.
    """

    eligible: Bools
    count: Ints
    size: Ints
    weight: Floats
    limit: Floats
    class_of_user: Ints
    group_of_type: Ints
    type_count: Ints

    def spread(self, given: Amounts, machines: Amounts) -> Amounts:
        """Divide the machines that classes were given among their users, by type, (U, T).

        `given` (C, G): machines of each group given to each class.
        `machines` (U,): machines of each user; over a class, they sum to what the class was given.
        """
        # Integers up to `MACHINES_MAX` are exact in float64.
        users = np.argsort(self.class_of_user, kind="stable")
        by_group = np.zeros((len(machines), len(self.count)))
        part, due = given.astype(np.float64), machines.astype(np.float64)
        to_users(users, self.class_of_user, due, part, by_group)
        result = np.zeros((len(machines), len(self.type_count)))
        types = np.flatnonzero(self.group_of_type >= 0)
        types = types[np.argsort(self.group_of_type[types], kind="stable")]
        to_types(types, self.group_of_type, self.type_count, by_group, result)
        return result.astype(given.dtype, copy=False)


def coalesce(
    eligible: Bools, count: Ints, weight: Floats | None = None, limit: Floats | Ints | None = None
) -> Graph:
    """Build a graph in which equal users and equal machine types are merged.

    `eligible` (U, T): whether user u can use machines of type t; a type may also be a single
        machine.
    `count` (T,), >= 0: number of machines of each type.
    `weight` (U,), > 0: 1 by default.
    `limit` (U,), >= 0: maximum number of machines for each user; `UNLIMITED` by default.
    Raises ValueError on arrays that do not fit together, a weight that is not positive and finite,
        a negative count or limit, or more than `MACHINES_MAX` machines.
    """
    eligible, count = np.asarray(eligible, np.bool_), np.asarray(count, np.int64)
    weight, limit = check(eligible, count, weight, limit)
    useful = eligible.any(axis=0) & (count > 0)
    usable = eligible[:, useful]
    # Users with equal rows form a class: the same types, weight and limit.
    numbers = np.column_stack([weight, limit]).view(np.uint8).reshape(-1, 16)
    row = np.concatenate([np.packbits(usable, axis=1), numbers], axis=1)
    class_of_user, first = _number(row)
    return of_classes(
        eligible[first],
        count,
        np.bincount(class_of_user, minlength=len(first)),
        weight[first],
        limit[first],
        class_of_user,
    )


def of_classes(
    eligible: Bools, count: Ints, size: Ints, weight: Floats, limit: Floats, class_of_user: Ints
) -> Graph:
    """Build a graph in which equal machine types are merged; equal users are merged already.

    `eligible` (C, T): whether users of class c can use machines of type t.
    `count` (T,): number of machines of each type; other arguments are as in `Graph`.
    """
    # Types with equal columns form a group.
    useful = eligible.any(axis=0) & (count > 0)
    among = eligible if useful.all() else eligible[:, useful]
    group_of_useful, column = _number(np.packbits(among, axis=0).T)
    group_of_type = np.full(len(count), -1)
    group_of_type[useful] = group_of_useful
    group_count = np.zeros(len(column), np.int64)
    np.add.at(group_count, group_of_useful, count[useful])
    return Graph(
        eligible=among if len(column) == among.shape[1] else among[:, column],
        count=group_count,
        size=size,
        weight=weight,
        limit=limit,
        class_of_user=class_of_user,
        group_of_type=group_of_type,
        type_count=count,
    )


def check(
    eligible: Bools, count: Ints, weight: Floats | None, limit: Floats | Ints | None
) -> tuple[Floats, Floats]:
    """Validate the arguments of `coalesce`; return one weight and one limit per user."""
    if eligible.ndim != 2 or count.shape != eligible.shape[1:]:
        raise ValueError(f"{count.shape} counts do not fit a graph of {eligible.shape}")
    users = len(eligible)
    weight = np.ones(users) if weight is None else np.asarray(weight, np.float64)
    most = np.full(users, UNLIMITED) if limit is None else np.asarray(limit, np.float64)
    if weight.shape != (users,) or most.shape != (users,):
        raise ValueError(f"{users} users have {weight.shape} weights and {most.shape} limits")
    if not ((weight > 0) & (weight < np.inf)).all():
        wrong = weight[~((weight > 0) & (weight < np.inf))][0]
        raise ValueError(f"weights must be positive and finite, one is {wrong}")
    if (count < 0).any() or not (most >= 0).all():
        raise ValueError("counts and limits must not be negative")
    if count.astype(np.float64).sum() > MACHINES_MAX:
        raise ValueError(f"more than {MACHINES_MAX} machines")
    return weight, np.abs(most)  # minus zero is zero


def _number(rows: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Number distinct rows by first occurrence; return each row's number, and the first rows."""
    numbers: dict[bytes, int] = {}
    width = rows.shape[1]
    text = rows.tobytes()
    keys = [text[at * width : (at + 1) * width] for at in range(len(rows))]
    of_row = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    first = np.full(len(numbers), len(rows))
    np.minimum.at(first, of_row, np.arange(len(rows)))
    return of_row, first

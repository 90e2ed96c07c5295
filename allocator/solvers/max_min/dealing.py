"""Sharing out amounts in order: what was given to many together, laid end to end over each of them.

Both sides stand in a line. Each takes from the front of the other until it has what it is due.
"""

import numpy as np
from numpy.typing import NDArray

from allocator.core.numba.compiled import loop

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_CRUMB = 1e-9  # of a machine: what is less is rounding


@loop
def to_users(
    users: Ints, class_of_user: Ints, machines: Floats, given: Floats, result: Floats
) -> None:
    """Share out what classes have of groups, (C, G), among their users, (U, G).

    `users` (U,): sorted by class.
    """
    groups = given.shape[1]
    before, group, left = -1, 0, 0.0
    for at in range(len(users)):
        user = users[at]
        row = class_of_user[user]
        # Another class begins with its first group.
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
    """Share out what users have of groups, (U, G), as machines of their types, (U, T).

    `types`: sorted by group.
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
                # The last type takes what rounding leaves over.
                if left <= 0 and at + 1 < end:
                    at, used = at + 1, 0.0
                    continue
                part = min(needed, left) if at + 1 < end else needed
                result[user, types[at]] += part
                used += part
                needed -= part


@loop
def to_machines(given: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    """Share out users' amounts of each type, (U, T), as parts of machines.

    Returns `kind`, `machine`, `user` and `part`, as in `constraint_graph.Pieces`.
    """
    users, kinds = given.shape
    length = 0
    for kind in range(kinds):
        for user in range(users):
            if given[user, kind] > 0:
                length += int(given[user, kind]) + 3
    kind_of, machine_of = np.empty(length, np.int64), np.empty(length, np.int64)
    user_of, part_of = np.empty(length, np.int64), np.empty(length)
    size = 0
    for kind in range(kinds):
        machine, left = 0, 1.0
        for user in range(users):
            needed = given[user, kind]
            while needed > _CRUMB:
                part = min(needed, left)
                # What would be left of the machine is rounding only: it is the user's, too.
                kind_of[size], machine_of[size] = kind, machine
                user_of[size], part_of[size] = user, part
                size += 1
                needed -= part
                left -= part
                if left <= _CRUMB:
                    machine, left = machine + 1, 1.0
    return kind_of[:size], machine_of[:size], user_of[:size], part_of[:size]

"""Who can use which machines, with equal machines and equal users taken together.

A constraint graph has users on one side and machine types on the other. Users with the same
types, weight and limit form one *class*: a solver gives machines to classes, and `Graph.spread`
shares them out among equals. Types that the same classes can use form one *group*.

References
----------
.. [1] Ghodsi, Zaharia, Shenker, Stoica. "Choosy: Max-Min Fair Sharing for Datacenter Jobs with
   Constraints." EuroSys 2013, sec. 2.2 and 5.1.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Amounts = TypeVar("Amounts", Floats, Ints)

UNLIMITED = np.iinfo(np.int64).max
"""The limit of a user who can use any number of machines."""

_WEIGHT_STEPS = 1000  # weights are taken in thousandths of the smallest one


@dataclass(frozen=True, slots=True)
class Graph:
    """A constraint graph, coalesced.

    Attributes
    ----------
    eligible : (C, G) bool
        Whether users of class c can use machines of group g.
    count : (G,) int64
        Machines of each group; only of groups that somebody can use.
    size : (C,) int64
        Users of each class.
    weight : (C,) int64, > 0
        Proportional to the weights given, rounded to thousandths of the smallest one.
    limit : (C,) int64
        How many machines each user of the class can use at most; never more than it is
        eligible for.
    class_of_user : (U,) int64
    group_of_type : (T,) int64
        -1 where nobody can use the type, or there are no machines of it.
    type_count : (T,) int64
    """

    eligible: Bools
    count: Ints
    size: Ints
    weight: Ints
    limit: Ints
    class_of_user: Ints
    group_of_type: Ints
    type_count: Ints

    def spread(self, given: Amounts, machines: Amounts) -> Amounts:
        """Share out what classes were given among their users, by type.

        Parameters
        ----------
        given : (C, G)
            Machines of each group that the class was given.
        machines : (U,)
            Of each user; those of a class add up to what the class was given.

        Returns
        -------
        (U, T), of the same dtype
        """
        # First from classes to users, then each user's part of a group to the types in it.
        by_group = np.zeros((len(machines), len(self.count)), given.dtype)
        for row in range(len(self.size)):
            users = np.flatnonzero(self.class_of_user == row)
            by_group[users] = _deal(machines[users], given[row])
        result = np.zeros((len(machines), len(self.type_count)), given.dtype)
        for group in range(len(self.count)):
            types = np.flatnonzero(self.group_of_type == group)
            counts = self.type_count[types].astype(given.dtype)
            result[:, types] = _deal(by_group[:, group], counts)
        return result


def coalesce(
    eligible: Bools, count: Ints, weight: Floats | None = None, limit: Ints | None = None
) -> Graph:
    """Take equal users and equal machine types together.

    Parameters
    ----------
    eligible : (U, T) bool
        Whether user u can use machines of type t; a column may also be a single machine.
    count : (T,) int64, >= 0
        Machines of each type.
    weight : (U,) float64, > 0, optional
    limit : (U,) int64, >= 0, optional
        How many machines each user can use at most; `UNLIMITED` where it is not given.

    Raises
    ------
    ValueError
        On a weight that is not positive, or a negative count or limit.
    """
    eligible, count = np.asarray(eligible, np.bool_), np.asarray(count, np.int64)
    users = len(eligible)
    weight = np.ones(users) if weight is None else np.asarray(weight, np.float64)
    limit = np.full(users, UNLIMITED) if limit is None else np.asarray(limit, np.int64)
    if (count < 0).any() or (limit < 0).any():
        raise ValueError("counts and limits must not be negative")
    # Types that nobody can use, or of which there are none, play no part.
    useful = eligible.any(axis=0) & (count > 0)
    limit = np.minimum(limit, eligible @ count)
    steps = whole_weights(weight)
    # Users with equal rows form a class: the same types, weight and limit.
    row = np.column_stack([np.packbits(eligible[:, useful], axis=1), steps, limit])
    _, first, class_of_user, size = np.unique(
        row, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    # Types with equal columns, over the classes, form a group.
    among = eligible[np.ix_(first, useful)]
    _, column, group_of_useful = np.unique(
        np.packbits(among, axis=0), axis=1, return_index=True, return_inverse=True
    )
    group_of_type = np.full(len(count), -1)
    group_of_type[useful] = group_of_useful.reshape(-1)
    group_count = np.zeros(len(column), np.int64)
    np.add.at(group_count, group_of_type[useful], count[useful])
    return Graph(
        eligible=among[:, column],
        count=group_count,
        size=size,
        weight=steps[first],
        limit=limit[first],
        class_of_user=class_of_user.reshape(-1),
        group_of_type=group_of_type,
        type_count=count,
    )


def whole_weights(weight: Floats) -> Ints:
    """Weights as small integers in the same proportions, to a thousandth of the smallest one.

    Parameters
    ----------
    weight : (U,) float64, > 0

    Raises
    ------
    ValueError
        On a weight that is not positive.

    Examples
    --------
    >>> whole_weights(np.array([0.5, 1.25])).tolist()
    [2, 5]
    """
    if not (weight > 0).all():
        raise ValueError(f"weights must be positive, the smallest is {weight.min()}")
    # In thousandths of the smallest weight, then divided by what all have in common.
    steps = np.rint(weight / weight.min(initial=np.inf) * _WEIGHT_STEPS).astype(np.int64)
    return steps // max(int(np.gcd.reduce(steps)), 1)


def _deal(rows: Amounts, columns: Amounts) -> Amounts:
    """Fill rows from columns one after the other: what row i takes of column j, (I, J).

    The amounts are laid end to end, rows above columns; what overlaps belongs together. The
    columns may hold more than the rows take.
    """
    # Where each row and each column ends when they are laid end to end.
    row_end, column_end = np.cumsum(rows), np.cumsum(columns)
    end = np.minimum(row_end[:, None], column_end[None, :])
    start = np.maximum((row_end - rows)[:, None], (column_end - columns)[None, :])
    return np.maximum(end - start, 0)

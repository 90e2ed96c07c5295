"""Which rows the page shows, and in which order: a bounded number of each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from allocator.server.web.page.look import Look
from allocator.v1 import admin_pb2 as pb

ROLES_MAX = 60
FRAMEWORKS_MAX = 25
OFFERS_MAX = 15
COMPARED_MAX = 12
LISTED_MAX = 500
"""Of the page that lists frameworks."""


class Shown(NamedTuple):
    """Some of many rows.

    `more`: so many are not shown.
    `largest`: the largest share of the rows, for bars; not 0.
    """

    rows: Sequence[pb.Share]
    more: int
    largest: float


def tree(roles: Iterable[pb.Share], most: int = ROLES_MAX) -> Shown:
    """Order roles as a tree, in depth as far as there is room.

    Where not even the roles at the top have room, those with the largest shares are shown.
    """
    found = sorted(roles, key=lambda each: each.role.split("/"))
    of_depth = Counter(depth(each) for each in found)
    room, deepest = most, -1
    for level in sorted(of_depth):
        room -= of_depth[level]
        if room < 0:
            break
        deepest = level
    rows = [each for each in found if depth(each) <= deepest]
    if not rows:
        top = sorted((each for each in found if depth(each) == 0), key=lambda each: -each.share)
        rows = sorted(top[:most], key=lambda each: each.role)
    return _shown(rows, len(found))


def depth(role: pb.Share) -> int:
    """How many roles are above it."""
    return role.role.count("/")


def frameworks(clients: Iterable[pb.Share], most: int, sort: str = "waiting") -> Shown:
    """Order frameworks; by default whoever waits longest first, then the largest shares."""
    found = list(clients)
    if sort == "name":
        found.sort(key=lambda each: (each.framework_name, each.framework_id, each.role))
    elif sort == "share":
        found.sort(key=lambda each: -each.weighted_share)
    else:
        # Of those that wait equally long, whoever has least first.
        found.sort(
            key=lambda each: (
                -each.waited_cycles,
                each.weighted_share if each.waited_cycles else -each.weighted_share,
            )
        )
    return _shown(found[:most], len(found))


def on_offer(clients: Iterable[pb.Share], most: int = OFFERS_MAX) -> Shown:
    """Those that something is on offer to and not in use, for longest first."""
    found = [each for each in clients if each.offered_share > 0]
    found.sort(key=lambda each: -each.offer_age_s)
    return _shown(found[:most], len(found))


def _shown(rows: Sequence[pb.Share], of: int) -> Shown:
    largest = max((each.share for each in rows), default=0.0)
    return Shown(rows, of - len(rows), largest or 1.0)


class Bar(NamedTuple):
    """One bar of a histogram.

    `part`: of the tallest, 0 to 1.
    """

    text: str
    number: int
    part: float


def bars(counted: Iterable[tuple[str, int]]) -> list[Bar]:
    """Make bars of counts."""
    found = list(counted)
    tallest = max((number for _, number in found), default=0) or 1
    return [Bar(text, number, number / tallest) for text, number in found]


def cycle_bars(look: Look) -> list[Bar]:
    """How long cycles took, from the quickest to the slowest that there was."""
    names = [f"up to {_bound(bound_s)}" for bound_s in look.cycle_bounds_s]
    found = bars(zip([*names, "longer"], look.cycle_counts, strict=True))
    some = [place for place, each in enumerate(found) if each.number]
    return found[some[0] : some[-1] + 1] if some else []


def _bound(bound_s: float) -> str:
    return f"{1000 * bound_s:g} ms" if bound_s < 1 else f"{bound_s:g} s"


def apart(found: pb.GetShadowResponse) -> Sequence[pb.ShadowShare]:
    """Order roles by how far what either policy offered them is apart, the farthest first."""

    def place(row: pb.ShadowShare) -> tuple[float, str]:
        return -abs(row.offered - row.offered_by_shadow), row.role

    return sorted(found.roles, key=place)[:COMPARED_MAX]

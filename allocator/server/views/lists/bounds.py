"""The length of lists, and checks of requests for them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import TypeVar

from allocator.explain import UnknownSubjectError
from allocator.near import suggestion
from allocator.server.views.rejected import RejectedError

LISTED = 100

LISTED_MAX = 10_000
"""Maximum number of rows in a list; in larger clusters, `dump` has all."""

PARTS_MAX = 100
"""Maximum number of holders listed for an agent, and of roles for a framework."""


def most_of(limit: int) -> int:
    """Number of rows to list for the limit in a request; 0: the default."""
    if limit > LISTED_MAX:
        mend = "`mesos-allocator dump` writes everything"
        raise RejectedError(f"limit = {limit}: at most {LISTED_MAX} are listed; {mend}")
    return limit or LISTED


def check_state(state: str, known: Collection[str]) -> None:
    if state and state not in known:
        mend = f"choose from {', '.join(known)}{suggestion(state, known)}"
        raise RejectedError(f"state = {state!r}: there is no such state; {mend}")


_Info = TypeVar("_Info")


def named(
    kind: str,
    infos: Sequence[_Info | None],
    names: Collection[str],
    of: Callable[[_Info], tuple[str, str]],
) -> set[int]:
    """Find the handles of objects by one of their names (`of`). Raises UnknownSubjectError."""
    known = {handle: of(info) for handle, info in enumerate(infos) if info is not None}
    wanted = set(names)
    found = {handle for handle, mine in known.items() if not wanted.isdisjoint(mine)}
    for name in sorted(wanted.difference(*(known[handle] for handle in found))):
        raise UnknownSubjectError(kind, name, list(chain.from_iterable(known.values())))
    return found


def true_names(flags: Iterable[tuple[str, bool]]) -> list[str]:
    return [name for name, holds in flags if holds]

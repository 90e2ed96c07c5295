"""Invalid queries."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from allocator.explain import UnknownSubjectError
from allocator.near import suggestions

NAME_SHOWN = 200
"""Maximum number of characters of an unknown name in an error; it may be as long as a message."""


class RejectedError(ValueError):
    """An invalid query: the field, and valid values."""


@contextmanager
def rejecting_unknown(in_session: Callable[[], bool]) -> Iterator[None]:
    """Convert an UnknownSubjectError to a RejectedError with similar names; on any thread."""
    try:
        yield
    except UnknownSubjectError as error:
        near = "; no master has a session with this sidecar, its module decides meanwhile"
        if in_session():
            near = suggestions(error.name, error.known)
        name = error.name if len(error.name) <= NAME_SHOWN else f"{error.name[:NAME_SHOWN]}..."
        text = f"{error.kind} = {name!r}: there is no such {error.kind}{near}"
        raise RejectedError(text) from None

"""Under which topics what clients teach is remembered."""

from allocator.core.books.state import State
from allocator.core.demand.topics import Topic, name_topic


def topic_of(state: State, client: int) -> Topic | None:
    """The topic of a client's role and name; None if its framework is not known yet."""
    info = state.frameworks.info[int(state.clients.framework[client])]
    role = state.roles.path[int(state.clients.role[client])]
    return None if info is None else name_topic(role, info)

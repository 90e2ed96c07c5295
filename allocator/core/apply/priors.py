"""Priors: demands that new frameworks start with, learnt from similar frameworks."""

from allocator.core.books.state import State
from allocator.core.demand.topics import name_topic, wide_topics
from allocator.core.events import FrameworkInfo


def begin_with_prior(state: State, client: int, info: FrameworkInfo) -> bool:
    """Look up a prior for a new client; returns whether there is one.

    A prior for a resource that no agent has is not used until `refit` looks it up again.
    """
    if not state.settings.learn_demand or not state.memory.entries:
        return False
    role = state.roles.path[int(state.clients.role[client])]
    topics = [name_topic(role, info), *wide_topics(role, info)]
    remembered = state.memory.recall(state.settings, topics)
    if remembered is None or state.space.unknown(remembered):
        return False
    prior = state.space.quantities(remembered)
    state.reserve()
    state.clients.prior[client] = prior
    return True


def teach_others(state: State, client: int) -> None:
    """When a framework leaves, remember its demand for frameworks of the same principal or user."""
    clients = state.clients
    info = state.frameworks.info[int(clients.framework[client])]
    learned = state.space.named(clients.learned[client])
    if info is not None and learned:
        for topic in wide_topics(state.roles.path[int(clients.role[client])], info):
            state.memory.teach(state.settings, topic, learned)

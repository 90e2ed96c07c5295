"""Which gangs were offered, how their clients reacted, and which gangs collect room."""

from allocator.core.books.collecting import Collecting, GangOffers
from allocator.core.books.state import State
from allocator.core.snapshot import Ints

_DOUBLINGS_MAX = 6
"""Maximum number of times that the patience is doubled for a client that declines its gangs."""


def note_gang_offers(state: State, client: Ints) -> None:
    """Record that clients (N,) were granted something, which ends their collections."""
    clients = state.clients
    if not clients.gangs:
        return
    for each in sorted(clients.gangs.keys() & set(client.tolist())):
        its = clients.collecting.pop(each, None)
        clients.gang_offers[each] = GangOffers(
            int(clients.accepts[each]), declined(state, each), int(clients.waited[each]), its
        )
        if its is not None:
            note_start(state, its)
        clients.too_large.discard(each)


def note_unmade(state: State, client: Ints) -> None:
    """Record that offers to these clients (N,) were not made as decided; restore their gangs.

    Something changed while the decisions were under way. The gangs have declined nothing, and
    continue to collect.
    """
    clients = state.clients
    if not clients.gang_offers:
        return
    for each in sorted(clients.gang_offers.keys() & set(client.tolist())):
        last = clients.gang_offers[each]
        if not last.made:
            continue  # another outcome for the same gang
        clients.gang_offers[each] = last._replace(made=False)
        clients.waited[each] = last.waited
        if last.collected is not None:
            # Since that offer, its agents may have gone, or another gang may have lent them.
            collecting = {**clients.collecting, each: last.collected._replace(lent=())}
            earlier_first = sorted(collecting.items(), key=lambda item: item[1].since_ms)
            clients.collecting = dict(earlier_first)


def forget_lent(state: State, agent: int) -> None:
    """Forget that gangs lent an agent that has shrunk, so that they choose again."""
    collecting = state.clients.collecting
    for client, its in collecting.items():
        if agent in its.lent:
            lent = tuple(each for each in its.lent if each != agent)
            collecting[client] = its._replace(lent=lent)


def forget_collected(state: State, agent: int) -> None:
    """Forget what gangs keep on an agent that is removed."""
    forget_lent(state, agent)
    collecting = state.clients.collecting
    for client, its in collecting.items():
        if agent in its.agent:
            stays = [at for at, each in enumerate(its.agent) if each != agent]
            collecting[client] = its._replace(
                agent=tuple(its.agent[at] for at in stays),
                line=tuple(its.line[at] for at in stays),
                tasks=tuple(its.tasks[at] for at in stays),
            )


def note_start(state: State, its: Collecting) -> None:
    """Update the statistics of forecasts when a gang that collected begins."""
    record, now_ms = state.memory.durations.starts, state.now_ms
    if its.expected_ms < 0:
        return
    record.held += now_ms <= its.latest_ms
    record.late += now_ms > its.latest_ms
    record.early_ms += max(its.expected_ms - now_ms, 0)
    record.late_ms += max(now_ms - its.expected_ms, 0)


def note_end(state: State, its: Collecting) -> None:
    """Update the statistics of forecasts when a collection ends by time, without a start."""
    if 0 <= its.latest_ms <= state.now_ms:
        state.memory.durations.starts.missed += 1


def collectors(state: State) -> dict[int, Collecting]:
    """Return the clients whose gang collects; the earliest collection comes first.

    A client that has been offered something since, or wants no offers, no longer collects.
    """
    clients = state.clients
    return {row: its for row, its in clients.collecting.items() if clients.waited[row]}


def declined(state: State, client: int) -> int:
    """Return how many consecutive gangs a client has declined completely."""
    last = state.clients.gang_offers.get(client)
    if last is None or last.accepts != state.clients.accepts[client]:
        return 0
    return last.declined + last.made


def patience_of(state: State, client: int) -> int:
    """Return the number of full cycles before a gang collects; each decline in a row doubles it."""
    return state.settings.patience_cycles << min(declined(state, client), _DOUBLINGS_MAX)


def principal_of(state: State, client: int) -> str:
    """Return the principal of a client's framework; empty if it has none."""
    info = state.frameworks.info[int(state.clients.framework[client])]
    return "" if info is None else info.principal


def resting(state: State) -> dict[int, int]:
    """Return the clients whose gang may not begin to collect yet, each with the end in ms."""
    clients = state.clients
    ends = {row: clients.rests.get(principal_of(state, row), 0) for row in clients.gangs}
    return {
        row: end
        for row, end in ends.items()
        if end > state.now_ms and row not in clients.collecting
    }

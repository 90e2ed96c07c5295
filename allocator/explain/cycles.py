"""Reports what recent cycles and offers gave to each client, and why a client lost."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from allocator.core import (
    CycleRecord,
    Decisions,
    Floats,
    Hold,
    Holdings,
    Ints,
    Kind,
    Moves,
    Names,
    OfferEvent,
    Outcomes,
    Reason,
    Release,
    Snapshot,
    Subtree,
    Transition,
    claimants,
)
from allocator.explain.barring import Barring, PairChecker, Pairs
from allocator.explain.picture import NEVER, Picture, agent_name, name_of
from allocator.policies import POLICIES, build, substitute
from allocator.policies.filling import Criterion, Filling
from allocator.policies.filling.scene.loop_arrays import Scene
from allocator.policies.filling.scene.scoring import score
from allocator.v1.explain_pb2 import CycleAccount, Given, Loss, OfferFate, Standing
from allocator.wire.codec.proto_types import write_quantities

OFFERS = 8

OVER_AND_OVER = 3
"""From this number of whole agents declined in a row, the client waits for something else."""


def fates(picture: Picture, framework: int, role: int) -> list[tuple[OfferFate, bool]]:
    """Last offers to a client (handles), latest first, each with whether it was a whole agent."""
    found: list[tuple[OfferFate, bool]] = []
    for record in reversed(picture.cycles):
        made = record.decisions
        rows = np.flatnonzero((made.framework == framework) & (made.role == role))
        for row in reversed(rows.tolist()):
            if len(found) == OFFERS:
                return found
            agent, number = int(made.agent[row]), made.first_decision + row
            decision = dict(zip(made.kind.tolist(), made.amount[row].tolist(), strict=True))
            later = [each for each in picture.events if each.stamp > record.stamp]
            outcome, offered = _outcome(later, number, decision)
            then, then_ms, refused_ms = "", NEVER, 0
            if outcome in {"offered", "partial"}:
                then, then_ms, refused_ms = _then(later, framework, role, agent, offered)
            amounts = by_name(picture.kinds, made, row)
            fate = OfferFate(
                cycle=made.cycle,
                at_ms=record.at_ms,
                agent=picture.agent_name(agent),
                amounts=write_quantities(amounts),
                outcome=outcome,
                then=then,
                then_ms=then_ms,
                refused_ms=refused_ms,
            )
            found.append((fate, _is_whole(picture, agent, amounts)))
    return found


def declined_whole(picture: Picture, client: int) -> int:
    """Whole agents that a client of unknown demand declined since it last accepted; 0 if few."""
    if picture.clients.demand[client].any():
        return 0
    names, declined = picture.names, 0
    for fate, whole in fates(picture, int(names.framework[client]), int(names.role[client])):
        if fate.then == "accepted":
            break
        declined += fate.then == "declined" and whole
    return declined if declined >= OVER_AND_OVER else 0


def _is_whole(picture: Picture, agent: int, amounts: dict[str, int]) -> bool:
    if agent >= len(picture.agents.bound) or not picture.agents.bound[agent]:
        return False
    has = zip(picture.resources, picture.agents.capacity[agent].tolist(), strict=True)
    return all(amounts.get(name, 0) >= capacity for name, capacity in has)


def _outcome(
    later: Sequence[OfferEvent], number: int, amounts: dict[int, int]
) -> tuple[str, dict[int, int]]:
    """Return the outcome of a decision and, as far as known, what was offered by kind."""
    for each in later:
        event = each.event
        if isinstance(event, Outcomes):
            at = number - event.first_decision
            if 0 <= at < len(event.reason):
                if event.reason[at] == Reason.PARTIAL:
                    row = int(event.partial[:at].sum())
                    part = event.amount[row].tolist()
                    amounts = dict(zip(event.kind.tolist(), part, strict=True))
                return Reason(int(event.reason[at])).name.lower().replace("_", " "), amounts
    return "", amounts


def _then(
    later: Sequence[OfferEvent], framework: int, role: int, agent: int, amounts: dict[int, int]
) -> tuple[str, int, int]:
    """Return the framework's reaction to an offer, its time, and how long it refused (ms).

    An offer counts as declined only if all of it was returned: the rest of an accepted offer is
    returned as well, usually before its use is reported.

    `amounts`: what was offered, in thousandths by kind.
    """
    back, back_ms, refused_ms = Counter[int](), NEVER, 0
    for each in later:
        for event, rows in _about(each.event, framework, role, agent):
            if isinstance(event, Transition):
                return "accepted", each.at_ms, 0
            offered = rows[~event.allocated[rows]]
            if not len(offered):
                continue
            table = event.released
            sums = table.amount[offered].sum(axis=0).tolist()
            back.update(dict(zip(table.kind.tolist(), sums, strict=True)))
            back_ms = each.at_ms
            refused_ms = max(refused_ms, int(event.refuse_ms[offered].max()))
            if all(back[kind] >= amount for kind, amount in amounts.items()):
                return "declined", back_ms, refused_ms
    return "held", NEVER, 0


def _about(
    event: Moves | Outcomes | Release | Transition, framework: int, role: int, agent: int
) -> Iterator[tuple[Release | Transition, Ints]]:
    """Yield the parts of an event about a client's offers on an agent, with their rows."""
    if isinstance(event, Outcomes):
        return
    if isinstance(event, Moves):
        for row in _rows(event.holdings, framework, role, agent).tolist():
            one = event.row(row)
            if not isinstance(one, Hold):
                yield one, np.zeros(1, np.int64)
        return
    table = event.used if isinstance(event, Transition) else event.released
    rows = _rows(table, framework, role, agent)
    if len(rows):
        yield event, rows


def _rows(table: Holdings, framework: int, role: int, agent: int) -> Ints:
    # Framework 0 means that the master could not identify it.
    named = (table.framework == framework) | (table.framework == 0)
    return np.flatnonzero(named & (table.role == role) & (table.agent == agent))


SMALLER_FIRST = "the smaller score comes first"

CYCLES = 10

OTHERS = 3

WINNERS = 10
"""Maximum number of winners per cycle that are reported separately; others are summed."""


class Competitor(NamedTuple):
    """One of two competitors: its place in the tree, and its name."""

    place: int
    name: str


def of_clients(
    picture: Picture,
    clients: Sequence[tuple[int, int]],
    most: int,
    goes_on: Callable[[], bool] = lambda: True,
) -> list[list[CycleAccount]]:
    """Report the last cycles from the clients' point of view, the latest first.

    `clients`: (framework, role) of each, as handles.
    `goes_on`: returns whether there is time for another cycle.
    """
    found: list[list[CycleAccount]] = [[] for _ in clients]
    for record in reversed(picture.cycles):
        wanting = [
            number
            for number, client in enumerate(clients)
            if len(found[number]) < most and _knows(record, *client)
        ]
        if not wanting:
            continue
        if not goes_on():
            break
        # A cycle's scene is large: build it once for all clients, and keep only one at a time.
        snapshot = record.snapshot
        checker = None if snapshot is None else PairChecker(snapshot, criteria_of(record, snapshot))
        for number in wanting:
            found[number].append(_account(picture, record, checker, *clients[number]))
    return found


def of_agent(
    picture: Picture, agent: int, most: int, goes_on: Callable[[], bool] = lambda: True
) -> list[CycleAccount]:
    """Report which clients were granted an agent, in the last cycles with it, the latest first."""
    accounts: list[CycleAccount] = []
    for record in reversed(picture.cycles):
        if len(accounts) == most or not goes_on():
            break
        rows = np.flatnonzero(record.decisions.agent == agent)
        seen = record.snapshot is not None and agent in record.snapshot.handle
        if len(rows) or seen:
            losses = _next_best(picture, record, agent) if seen else []
            accounts.append(_told(record, given=_given(picture, record, rows), losses=losses))
    return accounts


def _knows(record: CycleRecord, framework: int, role: int) -> bool:
    return _row(record.names, framework, role) > 0


def _row(names: Names, framework: int, role: int) -> int:
    found = np.flatnonzero((names.framework == framework) & (names.role == role))
    return int(found[0]) if len(found) else 0


def _told(record: CycleRecord, **told: Any) -> CycleAccount:  # noqa: ANN401
    return CycleAccount(
        number=record.number,
        at_ms=record.at_ms,
        whole=record.whole,
        candidates=record.candidates,
        decisions=len(record.decisions),
        policy_error=record.policy_error,
        **told,
    )


def _account(
    picture: Picture, record: CycleRecord, checker: PairChecker | None, framework: int, role: int
) -> CycleAccount:
    made, client = record.decisions, _row(record.names, framework, role)
    mine = (made.framework == framework) & (made.role == role)
    given = list(_given(picture, record, np.flatnonzero(mine)))
    others = _given(picture, record, np.flatnonzero(~mine)[:OTHERS])
    snapshot = None if checker is None else checker.snapshot
    blocked: dict[str, int] = {}
    losses: list[Loss] = []
    if snapshot is not None and snapshot.leaf_of_client[client] < 0:
        blocked = {"wanted no offers, or could have none": len(snapshot.agents)}
    elif checker is not None and snapshot is not None:
        pairs = Pairs(np.full(len(snapshot.agents), client), snapshot.agents)
        barring = checker.barring(pairs)
        blocked = counted(barring)
        if not given:
            losses = _losses(picture, record, checker, client, snapshot.agents[barring.open])
    return _told(record, given=given, others=others, blocked=blocked, losses=losses)


def counted(barring: Barring) -> dict[str, int]:
    """Count the pairs that each rule bars; a pair barred by several rules counts for each."""
    found = {
        "constraint, capability or drain": barring.excluded,
        "no room": barring.no_room & ~barring.reserved,
        "reserved": barring.reserved,
        "filter": barring.filtered,
        "minimum of an offer": barring.minimum,
        "limit or guarantee": barring.bounded,
    }
    return {name: int(flags.sum()) for name, flags in found.items() if flags.any()}


def criteria_of(record: CycleRecord, snapshot: Snapshot) -> list[Criterion] | None:
    """Return the criteria of the cycle's policy; None if it is no filling policy of ours."""
    spec = record.policy
    named = {spec.name, *(Subtree.read(text).name for text in spec.subtrees.values())}
    if record.policy_error:
        policy = substitute()
    elif all(name in POLICIES and not POLICIES[name].origin for name in named):
        policy = build(spec)
    else:
        # Do not run users' code for an explanation.
        return None
    if not isinstance(policy, Filling):
        return None
    ranking = (policy.criterion, *policy.others)
    return [criterion(snapshot) for criterion in ranking]


def _losses(
    picture: Picture, record: CycleRecord, checker: PairChecker, client: int, agents: Ints
) -> list[Loss]:
    """Return the clients that got agents that this client could have used, most agents first."""
    first: dict[int, int] = {}
    for winner, agent in zip(record.grants.client, record.grants.agent, strict=True):
        first.setdefault(int(agent), int(winner))
    at: dict[int, list[int]] = {}
    left: list[int] = []
    for agent in agents.tolist():
        if agent in first:
            at.setdefault(first[agent], []).append(agent)
        else:
            left.append(agent)
    # There may be as many winners as agents, so report only some of them separately.
    winners = sorted(at, key=lambda winner: (winner != client, -len(at[winner])))
    losses = [
        _loss(picture, record, checker, client, winner, at[winner]) for winner in winners[:WINNERS]
    ]
    if len(winners) > WINNERS:
        rest = [at[winner] for winner in winners[WINNERS:]]
        losses.append(_rest(picture, record, checker, client, rest))
    # These agents stayed free, because grants on other agents used up what quotas leave.
    if left and len(record.grants):
        winner = _consumer(record, checker, client)
        why = "it already had a grant up to its limits or others' guarantees on another agent"
        losses.append(_loss(picture, record, checker, client, winner, left, why))
    return sorted(losses, key=lambda loss: -loss.agents)


def _rest(
    picture: Picture,
    record: CycleRecord,
    checker: PairChecker,
    client: int,
    agents: list[list[int]],
) -> Loss:
    all_of_them = [each for several in agents for each in several]
    return Loss(
        winner=Standing(score=float("nan")),
        loser=rivals(record, checker, client, client)[0],
        winner_framework=f"{len(agents)} others",
        winner_role="",
        agents=len(all_of_them),
        examples=_examples(picture, record, checker, all_of_them),
        why="each got fewer of them",
    )


def _examples(
    picture: Picture, record: CycleRecord, checker: PairChecker, agents: Sequence[int]
) -> list[str]:
    handles = [int(checker.snapshot.handle[agent]) for agent in agents[:3]]
    return [_agent_name(picture, record, handle) for handle in handles]


def _consumer(record: CycleRecord, checker: PairChecker, client: int) -> int:
    """Return the last client granted something within this client's bounds, else the last one."""
    mine = set(checker.snapshot.bounds.rows_of(client))
    granted = record.grants.client.tolist()
    beside = [each for each in granted if mine & set(checker.snapshot.bounds.rows_of(each))]
    return int((beside or granted)[-1])


def _loss(
    picture: Picture,
    record: CycleRecord,
    checker: PairChecker,
    client: int,
    winner: int,
    agents: Sequence[int],
    why: str = "",
) -> Loss:
    names = record.names
    mine, its = rivals(record, checker, client, winner)
    if winner == client:
        # The client was granted less than the minimum of an offer, so the grant was dropped.
        why = "its grant would be less than the minimum of an offer"
    elif not why:
        why = _why(checker, client, winner, (mine.score, its.score))
    return Loss(
        winner=its,
        loser=mine,
        winner_framework=name_of(names, winner),
        winner_role=names.path[int(names.role[winner])],
        agents=len(agents),
        examples=_examples(picture, record, checker, agents),
        why=why,
    )


def _why(checker: PairChecker, client: int, winner: int, scores: tuple[float, float]) -> str:
    snapshot, (mine, its) = checker.snapshot, scores
    bounds = snapshot.bounds
    if bounds.owed[bounds.rows_of(winner)].any():
        return "its role's guarantee is unmet, and guarantees are served first"
    last = snapshot.over_budget
    if last is not None and last[client] and not last[winner]:
        return "its role is within budget, and this one is over it"
    within = claimants(snapshot)
    if within[winner] and not within[client]:
        return "its role is within its claim, and claims are served first"
    if snapshot.overdue[winner] and not snapshot.overdue[client]:
        return "it had waited longer than patience_cycles, and was served first, once"
    if np.isnan(mine) or np.isnan(its):
        return "the policy chose it"
    if its < mine:
        return SMALLER_FIRST
    if its == mine:
        return "their scores are equal: the one served longest ago goes first, then the older one"
    return "its score is larger, but its siblings in the tree had been served before"


def rivals(
    record: CycleRecord, checker: PairChecker, client: int, winner: int
) -> tuple[Standing, Standing]:
    """Return the standing of two clients at the start of the cycle.

    They are compared where their paths from the root diverge: as roles, or as frameworks of one
    role.
    """
    one, other = (_way(record, checker.scene, each) for each in (client, winner))
    depth = 0
    while one[depth].place == other[depth].place and depth < min(len(one), len(other)) - 1:
        depth += 1
    share = _dominant(checker.snapshot)

    def standing(each: Competitor, who: int) -> Standing:
        return Standing(name=each.name, score=_score(checker, each.place), share=float(share[who]))

    return standing(one[depth], client), standing(other[depth], winner)


def _dominant(snapshot: Snapshot) -> Floats:
    columns = snapshot.counted & (snapshot.total > 0)
    part = snapshot.held[:, columns] / snapshot.total[columns]
    return part.max(axis=1, initial=0.0)


def _way(record: CycleRecord, scene: Scene, client: int) -> list[Competitor]:
    names, places = record.names, scene.places
    place, way = int(places.of_client[client]), []
    while places.parent[place] >= 0:
        way.append(place)
        place = int(places.parent[place])
    way.reverse()
    path = names.path[int(names.role[client])]
    roles = path.split("/")
    found = []
    for depth, each in enumerate(way[:-1]):
        # A role with child roles competes with these for its own frameworks.
        name = "/".join(roles[: depth + 1]) if depth < len(roles) else f"{path}, its own frameworks"
        found.append(Competitor(each, name))
    return [*found, Competitor(way[-1], name_of(names, client))]


def _score(checker: PairChecker, place: int) -> float:
    """Score of a place at the start of the cycle; NaN if it depends on the agent."""
    places, standing = checker.scene.places, checker.scene.standing
    if len(standing.denominator) != 1 or not checker.scored:
        return float("nan")
    return float(score(places, standing, place, standing.denominator, 0))


def _next_best(picture: Picture, record: CycleRecord, agent: int) -> list[Loss]:
    """Report the next-ranked client that could have got a granted agent."""
    snapshot = record.snapshot
    assert snapshot is not None
    row = int(np.searchsorted(snapshot.handle, agent))
    taken = np.flatnonzero(record.grants.agent == row)
    clients = snapshot.tree.client
    if not len(taken) or row not in snapshot.agents:
        return []
    checker = PairChecker(snapshot, criteria_of(record, snapshot))
    barring = checker.barring(Pairs(clients, np.full(len(clients), row)))
    winner = int(record.grants.client[taken[0]])
    served = set(record.grants.client[taken].tolist())
    able = [client for client in clients[barring.open].tolist() if client not in served]
    if not able:
        return []
    # The next in order has the smallest score where the paths diverge.
    best = min(able, key=lambda each: _rank(record, checker, each, winner))
    return [_loss(picture, record, checker, best, winner, [row])]


def _rank(record: CycleRecord, checker: PairChecker, client: int, winner: int) -> tuple[float, int]:
    mine, _ = rivals(record, checker, client, winner)
    return (np.inf if np.isnan(mine.score) else mine.score, client)


def _given(picture: Picture, record: CycleRecord, rows: Ints) -> Iterator[Given]:
    made, names = record.decisions, record.names
    for row in rows.tolist():
        framework, role = int(made.framework[row]), int(made.role[row])
        client = _row(names, framework, role)
        yield Given(
            framework=name_of(names, client),
            role=names.path[role],
            agent=_agent_name(picture, record, int(made.agent[row])),
            amounts=write_quantities(by_name(picture.kinds, made, row)),
        )


def by_name(kinds: Sequence[Kind | None], made: Decisions, row: int) -> dict[str, int]:
    total: Counter[str] = Counter()
    for handle, amount in zip(made.kind.tolist(), made.amount[row].tolist(), strict=True):
        kind = kinds[handle] if handle < len(kinds) else None
        if amount and kind is not None:
            total[kind.name] += amount
    return dict(total)


def _agent_name(picture: Picture, record: CycleRecord, handle: int) -> str:
    if record.snapshot is not None:
        handles = record.snapshot.handle[record.snapshot.agents[: len(record.agents)]]
        at = int(np.searchsorted(handles, handle))
        if at < len(handles) and handles[at] == handle:
            return agent_name(record.agents[at], handle)
    return picture.agent_name(handle)

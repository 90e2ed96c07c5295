"""Builds explanations of a framework, a role or an agent."""

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np

from allocator.core import NOWHERE, UNBOUNDED, Ints, harmless, in_utc
from allocator.explain import blockers, budgets, cycles
from allocator.explain.barring import Barring, PairChecker, Pairs, with_smallest_tasks
from allocator.explain.calibration import Corrections
from allocator.explain.next_offer import NextOffer, forecast
from allocator.explain.picture import NEVER, Holding, Picture, Subject
from allocator.plain import counted, how_many
from allocator.v1.explain_pb2 import (
    Blocker,
    ClientExplanation,
    CycleAccount,
    ExplainResponse,
    Holder,
    Loss,
    QuotaState,
    Tally,
    WordsSetAside,
)
from allocator.wire.codec.proto_types import write_budget_use, write_quantities

IN_FULL = 10

REASONS_TOLD = 4

UNFIT_TOLD = 3

NAME_MAX = 40

UNCORRECTED = Corrections()

RECENTLY_MS = 60_000


def explain(
    picture: Picture,
    kind: str,
    name: str,
    cycles_told: int = cycles.CYCLES,
    goes_on: Callable[[], bool] = lambda: True,
    corrections: Corrections = UNCORRECTED,
) -> ExplainResponse:
    """Build the answer to a question.

    `picture`: the result of `take` for this kind and name.
    `corrections`: of forecasts.
    `goes_on`: returns whether there is time for more; if not, the answer is cut short.
    """
    checker = (
        None if picture.snapshot is None else PairChecker(with_smallest_tasks(picture.snapshot))
    )
    if kind == "agent":
        return _agent(picture, name, checker, cycles_told, goes_on)
    clients: list[ClientExplanation] = []
    histories = _histories(picture, cycles_told, goes_on)
    for number, subject in enumerate(picture.subjects):
        if clients and not goes_on():
            break
        history = histories[number] if number < len(histories) else None
        clients.append(_client(picture, subject, checker, history, corrections))
    if kind == "framework":
        whole = f"in {counted(len(clients), 'role')}"
        verdict = clients[0].verdict if len(clients) == 1 else _together(clients, whole)
        paths = {client.role for client in clients}
    else:
        who = how_many(len({each.framework_id for each in clients}), len(clients))
        verdict, paths = _together(clients, who), {name}
    untold = len(picture.subjects) - len(clients)
    return ExplainResponse(
        kind=kind,
        name=name,
        now_ms=picture.now_ms,
        verdict=verdict,
        notes=[*_notes(picture), *_over_budget(picture, paths), *_cut_short(picture, clients)],
        clients=clients[:IN_FULL],
        left_out=picture.left_out + max(0, len(picture.subjects) - IN_FULL, untold),
        tallies=_tallies(clients) if len(clients) > 1 else (),
        quotas=_quotas(picture, paths),
        set_aside=_set_aside(picture),
        budgets=[
            write_budget_use(row, picture.now_ms)
            for row in budgets.concerning(picture.budgets, paths)
        ],
    )


def _over_budget(picture: Picture, paths: set[str]) -> Iterable[str]:
    found = [text for path in paths for text, _ in budgets.over(picture.budgets, path, hard=False)]
    return (f"{text}; until then all others are served first" for text in sorted(set(found)))


def _histories(
    picture: Picture, cycles_told: int, goes_on: Callable[[], bool]
) -> list[list[CycleAccount]]:
    names, subjects = picture.names, picture.subjects[:IN_FULL] if cycles_told else ()
    rows = [subject.client for subject in subjects]
    clients = [(int(names.framework[row]), int(names.role[row])) for row in rows]
    return cycles.of_clients(picture, clients, cycles_told, goes_on)


def _cut_short(picture: Picture, clients: list[ClientExplanation]) -> Iterable[str]:
    told, asked = len(clients), len(picture.subjects)
    if told < asked:
        yield f"there was only time to examine {told} of {asked}; ask about a single role instead"


def _set_aside(picture: Picture) -> Iterable[WordsSetAside]:
    for who, rows in picture.set_aside:
        for row in rows:
            yield WordsSetAside(said_by=who, field=row.field, reason=row.reason, text=row.text)


def _notes(picture: Picture) -> list[str]:
    notes = [str(each) for each in picture.asked]
    if picture.paused:
        notes.append("the master makes no offers yet")
    if picture.policy_error:
        notes.append(
            f"the substitute decided the last cycle; the policy failed: {picture.policy_error}"
        )
    return notes


def _client(
    picture: Picture,
    subject: Subject,
    checker: PairChecker | None,
    history: list[CycleAccount] | None,
    corrections: Corrections,
) -> ClientExplanation:
    """Explain a client; `history`: its last cycles; None: explain briefly."""
    client, rows, names = subject.client, picture.clients, picture.names
    framework, role = int(names.framework[client]), int(names.role[client])
    found = blockers.find(picture, subject, checker)
    ranked = [*found.blockers, *_outranked(history or [])]
    info = names.info[framework]
    full = any(each.reason == "full" for each in ranked)
    share, used = picture.held_share[client], picture.used
    # The others of a role are explained briefly.
    offer = NextOffer(-1, -1, "")
    if history is not None:
        offer = next_offer(picture, subject)
        offer = corrections.corrected(offer, picture.principal(client))
    return ClientExplanation(
        framework_id=info.framework_id if info else "",
        framework_name=picture.framework_name(client),
        role=names.path[role],
        verdict=_verdict(picture, client, ranked, found),
        share=float(share),
        offered_share=float(picture.offered_share[client]),
        used_share=0.0 if used is None else float(picture.shares(used[[client]])[0]),
        demand=write_quantities(_demand(picture, subject)),
        demand_source=rows.source[client],
        waited_cycles=int(rows.waited[client]),
        offered_ms=int(rows.offered_ms[client]) or NEVER,
        agents=int(picture.agents.bound.sum()),
        open_agents=found.open,
        largest_free=picture.quantities(found.largest_free),
        largest_free_agent=picture.agent_name(found.largest_agent) if found.largest_agent else "",
        blockers=ranked,
        holders=_largest_holders(picture) if full else (),
        offers=()
        if history is None
        else [fate for fate, _ in cycles.fates(picture, framework, role)],
        cycles=history,
        expected_in_ms=offer.expected_ms,
        latest_in_ms=offer.latest_ms,
        forecast=offer.text,
    )


def next_offer(picture: Picture, subject: Subject) -> NextOffer:
    """Forecast a client's next offer, without a correction."""
    client, rows, now_ms = subject.client, picture.clients, picture.now_ms
    if picture.paused:
        return NextOffer.none("the master makes no offers yet")
    for wants, why in (
        (rows.active[client], "the framework is not connected"),
        (rows.subscribed[client], "the framework left this role"),
        (not rows.suppressed[client], "the framework suppressed offers"),
        (not rows.satiated[client], "the framework has too many refusals in force"),
    ):
        if not wants:
            return NextOffer.none(why)
    if picture.snapshot is None or picture.held is None:
        return NextOffer.none("no agent may be offered to it")
    last = picture.snapshot.over_budget
    if last is not None and last[client]:
        return NextOffer.none("its role is over budget, so all others are served first")
    filters = subject.filter_agent, subject.filter_expires_ms
    return forecast(
        picture.snapshot,
        picture.held,
        now_ms,
        client,
        rows.demand,
        subject.excluded,
        filters,
        picture.cycle,
    )


def _demand(picture: Picture, subject: Subject) -> dict[str, int]:
    """Size of one task, with the names of requested resources that no agent has."""
    found = picture.named(picture.clients.demand[subject.client])
    if NOWHERE in found and subject.unfit:
        named = ", ".join(harmless(each, NAME_MAX) for each in sorted(subject.unfit)[:UNFIT_TOLD])
        found[f"{named} {NOWHERE}"] = found.pop(NOWHERE)
    return found


def _outranked(history: list[CycleAccount]) -> list[Blocker]:
    """Return a blocker for each framework that was served with agents this client could use."""
    lost: Counter[str] = Counter()
    latest: dict[str, tuple[Loss, int]] = {}
    for account in history:
        for loss in account.losses:
            if not loss.winner_role:
                continue  # a sum over several winners
            lost[loss.winner_framework] += loss.agents
            latest.setdefault(loss.winner_framework, (loss, account.at_ms))
    found = []
    for winner, count in lost.most_common(blockers.EXAMPLES):
        loss, at_ms = latest[winner]
        its, mine = loss.winner, loss.loser
        stood = ""
        if not np.isnan(its.score):
            stood = f" ({its.name} at {its.score:.4g}, {mine.name} at {mine.score:.4g})"
        why = "" if loss.why == cycles.SMALLER_FIRST else f"; {loss.why}"
        cause = f"{winner} in {loss.winner_role} came first in the last cycles{stood}{why}"
        found.append(
            Blocker(
                reason="outranked",
                cause=cause,
                agents=count,
                alone=count,
                examples=loss.examples,
                since_ms=at_ms,
                until_ms=NEVER,
                mend="wait for its turn, or raise the weight of its role",
            )
        )
    return found


def _verdict(
    picture: Picture, client: int, ranked: list[Blocker], found: blockers.BlockerFindings
) -> str:
    count, is_open = int(picture.agents.bound.sum()), found.open
    last_ms = int(picture.clients.offered_ms[client])
    if not count:
        return "there are no agents"
    of_agents = counted(count, "agent")
    outranked = [each for each in ranked if each.reason == "outranked"]
    if is_open and outranked and picture.clients.waited[client]:
        waited = f"not served in {counted(int(picture.clients.waited[client]), 'cycle')}"
        return f"{is_open} of {of_agents} not blocked, {waited}: {outranked[0].cause}"
    if is_open and found.declined_whole:
        whole = f"it declined {counted(found.declined_whole, 'whole agent')}, and accepted nothing"
        return f"{whole}: {blockers.TOO_LITTLE}"
    if is_open:
        return f"it may be offered {is_open} of {of_agents}: the next cycle decides"
    age_s = (picture.now_ms - last_ms) / 1000
    lately = (
        f"last offer {age_s:.0f} s ago, now "
        if (last_ms and picture.now_ms - last_ms <= RECENTLY_MS)
        else ""
    )
    if not ranked:
        return f"{lately}no reason was found"
    first = ranked[0]
    if client in picture.collecting:
        first = next((each for each in ranked if each.reason == "gang"), first)
        return f"{lately}{first.cause}"
    agents = "every agent" if first.agents >= count else f"{first.agents} of {of_agents}"
    return f"{lately}barred from {agents} ({first.reason}): {first.cause}"


def _together(clients: list[ClientExplanation], who: str) -> str:
    if not clients:
        return "it has no clients"
    reasons = Counter(_top(client)[0] for client in clients)
    told = reasons.most_common(REASONS_TOLD)
    parts = [f"{count} {reason}" for reason, count in told]
    if others := len(clients) - sum(count for _, count in told):
        parts.append(f"{others} other")
    return f"{who}: {', '.join(parts)}"


def _top(client: ClientExplanation) -> tuple[str, str]:
    if client.open_agents:
        return "open", "the next cycle decides"
    if not client.blockers:
        return "nothing", ""
    return client.blockers[0].reason, client.blockers[0].cause


def _tallies(clients: list[ClientExplanation]) -> Iterable[Tally]:
    # Identify frameworks by id, so that one in several roles counts once.
    found: dict[tuple[str, str], dict[str, str]] = {}
    for client in clients:
        found.setdefault(_top(client), {})[client.framework_id] = client.framework_name
    for (reason, cause), who in sorted(found.items(), key=lambda each: -len(each[1])):
        examples = list(dict.fromkeys(who.values()))[: blockers.EXAMPLES]
        yield Tally(reason=reason, cause=cause, frameworks=len(who), examples=examples)


def _quotas(picture: Picture, paths: set[str]) -> Iterable[QuotaState]:
    """Yield the quotas of these roles and their ancestors, and all unmet guarantees."""
    quotas = picture.quotas
    for row, path in enumerate(quotas.path):
        above = any(f"{each}/".startswith(f"{path}/") for each in paths)
        owed = (quotas.guarantee[row] > quotas.consumed[row]).any()
        if above or owed:
            limit = {
                picture.resources[column]: int(quotas.limit[row, column])
                for column in np.flatnonzero(quotas.limit[row] < UNBOUNDED).tolist()
            }
            yield QuotaState(
                role=path,
                guarantee=picture.quantities(quotas.guarantee[row]),
                limit=write_quantities(limit),
                consumed=picture.quantities(quotas.consumed[row]),
            )


def _largest_holders(picture: Picture) -> Iterable[Holder]:
    share = picture.held_share
    for client in np.argsort(-share, kind="stable")[: blockers.EXAMPLES].tolist():
        if share[client] > 0:
            held, offered = picture.clients.held[client], picture.clients.offered[client]
            yield _holder(picture, Holding(client, held, offered), float(share[client]))


def _holder(picture: Picture, holding: Holding, share: float) -> Holder:
    names, client = picture.names, holding.client
    return Holder(
        framework=picture.framework_name(client),
        framework_id=picture.framework_id(client),
        role=names.path[int(names.role[client])],
        held=picture.quantities(holding.held),
        offered=picture.quantities(holding.offered),
        share=share,
    )


def _agent(
    picture: Picture,
    name: str,
    checker: PairChecker | None,
    cycles_told: int,
    goes_on: Callable[[], bool],
) -> ExplainResponse:
    handle, agents = picture.agent, picture.agents
    capacity = agents.capacity[handle]
    held = sum((each.held for each in picture.holdings), np.zeros_like(capacity))
    free = np.maximum(capacity - held, 0)
    tallies: list[Tally] = []
    if not agents.active[handle]:
        verdict = "it is not offered: the master reports it as inactive"
    elif not agents.whitelisted[handle]:
        verdict = "it is not offered: it is not on the master's whitelist"
    elif agents.drained[handle]:
        verdict = "it is not offered: an operator drains it (drain remove undoes that)"
    elif checker is None or handle not in checker.snapshot.handle[checker.snapshot.agents]:
        verdict = "its free resources make no offer for any framework"
        if checker is None:
            verdict = "no framework wants offers"
    else:
        verdict, tallies = _offerable(picture, checker, handle)
    share = _part(capacity)
    notes = _notes(picture)
    if (from_ms := int(agents.drained_from_ms[handle])) and agents.ready[handle]:
        notes.append(
            f"it is drained from {in_utc(from_ms)}; in the last"
            f" {picture.drain_ahead_ms / 1000:g} s before, it is offered only to frameworks whose"
            " tasks end in time"
        )
    return ExplainResponse(
        kind="agent",
        name=name,
        now_ms=picture.now_ms,
        verdict=verdict,
        notes=notes,
        tallies=tallies,
        capacity=picture.quantities(capacity),
        free=picture.quantities(free),
        holders=[
            _holder(picture, each, share(each.held))
            for each in sorted(picture.holdings, key=lambda each: -share(each.held))
        ],
        cycles=cycles.of_agent(picture, handle, cycles_told, goes_on),
        set_aside=_set_aside(picture),
    )


def _part(capacity: Ints) -> Callable[[Ints], float]:
    columns = capacity > 0

    def share(amounts: Ints) -> float:
        if not columns.any():
            return 0.0
        return float((amounts[columns] / capacity[columns]).max())

    return share


def _offerable(picture: Picture, checker: PairChecker, handle: int) -> tuple[str, list[Tally]]:
    """Name the clients that an agent's free resources could serve, and what bars the others."""
    snapshot = checker.snapshot
    row = int(np.searchsorted(snapshot.handle, handle))
    clients = snapshot.tree.client
    barring = checker.barring(Pairs(clients, np.full(len(clients), row)))
    counts = _by_barring(picture, clients, barring)
    wants = len(np.unique(picture.names.framework[clients]))
    if barring.open.any():
        count = counts[0].frameworks
        return f"{count} of {wants} frameworks could be served: the next cycle decides", counts
    wanting = f"of {wants} frameworks that want offers none can be served"
    first = counts[0]
    return f"{wanting}: {first.frameworks} {first.reason}: {first.cause}", counts


def _by_barring(picture: Picture, clients: Ints, barring: Barring) -> list[Tally]:
    found = [
        ("open", "could be served", barring.open),
        ("constraint", "constraints, capabilities or a drain exclude them", barring.excluded),
        ("filter", "they refused the resources that could be offered", barring.filtered),
        ("limit", "limits or guarantees leave them too little", barring.bounded),
        ("reserved", "they may not have the free resources", barring.reserved),
        ("full", "too little is free", barring.no_room & ~barring.reserved),
        ("minimum", "a grant would be less than the minimum of an offer", barring.minimum),
    ]
    tallies = []
    for reason, cause, flags in found:
        # Take one client per framework, so that one in several roles counts once.
        _, first = np.unique(picture.names.framework[clients[flags]], return_index=True)
        if len(first):
            names = map(picture.framework_name, clients[flags][np.sort(first)].tolist())
            examples = islice(dict.fromkeys(names), blockers.EXAMPLES)
            found_here = Tally(reason=reason, cause=cause, frameworks=len(first), examples=examples)
            tallies.append(found_here)
    return sorted(tallies, key=lambda tally: (tally.reason != "open", -tally.frameworks))

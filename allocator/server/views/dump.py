"""The whole state as one JSON text, in pieces.

The books' thread only copies; the thread of the request writes the text. Amounts are in
thousandths.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from allocator.core import AgentInfo, Bools, Ints, Kind, SetAside, Settings
from allocator.plain import json_text
from allocator.rule_kinds import DRAIN, LIMIT, RULES
from allocator.server.engine.sessions import SessionInfo
from allocator.server.following.books import FollowedBooks
from allocator.server.reports import report

PIECE_CHARACTERS = 256 * 1024
"""Minimum length at which a piece is sent."""


@dataclass(frozen=True)
class StateCopy:
    """The copy.

    `agents` (n,): handles; the rows of the next five.
    `active`, `whitelisted`, `drained` (n,); `capacity`, `agent_held` (n, K), in thousandths.
    `holding_client` (H,): (framework, role) as in the report.
    `holding_since_ms` (H,): since when something is on offer.
    `holding_held`, `holding_offered` (H, K), in thousandths.
    """

    sidecar_id: str
    session: SessionInfo | None
    clock_ms: int
    paused: bool
    settings: Settings
    kinds: list[Kind | None]
    quotas: list[Any]
    report: report.Report
    agents: Ints
    agent_info: list[AgentInfo | None]
    active: Bools
    whitelisted: Bools
    drained: Bools
    capacity: Ints
    agent_held: Ints
    holding_client: Ints
    holding_agent: Ints
    holding_since_ms: Ints
    holding_held: Ints
    holding_offered: Ints


def read(books: FollowedBooks) -> StateCopy:
    allocator = books.allocator
    state, ledger = allocator.state, allocator.state.ledger.books
    agents = np.flatnonzero(state.agents.bound)
    holdings = state.ledger.rows()
    client = ledger.client[holdings]
    return StateCopy(
        sidecar_id=books.sidecar_id,
        session=books.session,
        clock_ms=state.now_ms,
        paused=state.paused,
        settings=allocator.settings.copied(),
        kinds=list(state.space.kinds),
        quotas=list(state.quotas.values()),
        report=report.read(allocator),
        agents=agents,
        agent_info=[state.agents.info[agent] for agent in agents.tolist()],
        active=state.agents.active[agents],
        whitelisted=state.agents.whitelisted[agents],
        drained=state.agents.drained[agents],
        capacity=state.agents.capacity[agents],
        agent_held=ledger.agent_held[agents],
        holding_client=np.stack([state.clients.framework[client], state.clients.role[client]], 1),
        holding_agent=ledger.agent[holdings],
        holding_since_ms=ledger.since_ms[holdings],
        holding_held=ledger.held[holdings],
        holding_offered=ledger.offered[holdings],
    )


def pieces(state: StateCopy) -> Iterator[bytes]:
    text: list[str] = []
    length = 0
    for part in _parts(state):
        text.append(part)
        length += len(part)
        if length >= PIECE_CHARACTERS:
            yield "".join(text).encode()
            text, length = [], 0
    yield "".join(text).encode()


def in_pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Combine parts to pieces of about equal size, and cut parts that are much larger."""
    waiting = bytearray()
    for part in parts:
        waiting += part
        while len(waiting) >= PIECE_CHARACTERS:
            yield bytes(waiting[:PIECE_CHARACTERS])
            del waiting[:PIECE_CHARACTERS]
    yield bytes(waiting)


def _parts(state: StateCopy) -> Iterator[str]:
    head = {
        "sidecar_id": state.sidecar_id,
        "session": asdict(state.session) if state.session else None,
        "clock_ms": state.clock_ms,
        "paused": state.paused,
        "settings": _plain_settings(state.settings),
        "kinds": [_kind(kind) for kind in state.kinds],
        "quotas": [asdict(quota) for quota in state.quotas],
    }
    # Omit the closing brace: the long lists follow piece by piece.
    yield _dumps(head)[:-1]
    yield from _array("roles", _roles(state.report))
    yield from _array("frameworks", _frameworks(state.report))
    yield from _array("clients", _clients(state.report))
    yield from _array("agents", _agents(state))
    yield from _array("remembered_demands", state.report.remembered.rows)
    yield from _array("holdings", _holdings(state))
    yield "}\n"


def _array(name: str, rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield f",\n{_dumps(name)}:["
    comma = "\n"
    for row in rows:
        yield comma + _dumps(row)
        comma = ",\n"
    yield "]"


def _dumps(value: object) -> str:
    # Only ASCII, because names are untrusted, and the text may be shown on a terminal.
    return json_text(value, default=_as_json, separators=(",", ":"))


def _as_json(value: object) -> list[Any] | dict[str, Any]:
    """Convert values that JSON does not have: sets, which are unordered, and set-aside input."""
    if isinstance(value, SetAside):
        return asdict(value)
    assert isinstance(value, frozenset)
    return sorted(value)


def _plain_settings(settings: Settings) -> dict[str, Any]:
    plain = {each.name: getattr(settings, each.name) for each in fields(settings)}
    plain["policy"] = asdict(settings.policy)
    plain["shadow"] = asdict(settings.shadow) if settings.shadow else None
    for kind in RULES:
        if isinstance(plain[kind.plural], dict) and kind not in {LIMIT, DRAIN}:
            plain[kind.plural] = [asdict(rule) for rule in plain[kind.plural].values()]
    return plain


def _kind(kind: Kind | None) -> dict[str, Any] | None:
    return asdict(kind) if kind else None


def _sparse(amounts: list[int]) -> dict[int, int]:
    """Amounts that are not zero, by kind or column."""
    return {index: amount for index, amount in enumerate(amounts) if amount}


def _roles(rows: report.Report) -> Iterator[dict[str, Any]]:
    for role in np.flatnonzero(rows.roles.bound).tolist()[1:]:
        weight = float(rows.roles.weight[role])
        yield {"role": role, "path": rows.roles.path[role], "weight": weight}


def _frameworks(rows: report.Report) -> Iterator[dict[str, Any]]:
    """Yield each framework once, since its texts may be long, and its roles many."""
    clients = rows.clients
    infos = dict(zip(clients.framework.tolist(), clients.info, strict=True))
    for framework, info in infos.items():
        if info is not None:
            yield {"framework": framework, **_fields(info)}


def _clients(rows: report.Report) -> Iterator[dict[str, Any]]:
    clients = rows.clients

    def named(amounts: list[int]) -> dict[str, int]:
        return {rows.resources[index]: amount for index, amount in _sparse(amounts).items()}

    for row, info in enumerate(clients.info):
        yield {
            "framework": int(clients.framework[row]),
            "role": int(clients.role[row]),
            "framework_id": info.framework_id if info else None,
            "active": bool(clients.active[row]),
            "suppressed": bool(clients.suppressed[row]),
            "live": bool(clients.live[row]),
            "held": named(clients.held[row].tolist()),
            "offered": named(clients.offered[row].tolist()),
            "demand": named(clients.demand[row].tolist()),
            "demand_source": clients.demand_source[row],
            "agents": int(clients.agents[row]),
            "filters": int(clients.filters[row]),
            "waited": int(clients.waited[row]),
            "share": float(rows.share[row]),
        }


def _fields(info: Any) -> dict[str, Any]:  # noqa: ANN401
    return {name: getattr(info, name) for name in type(info).__dataclass_fields__}


def _agents(state: StateCopy) -> Iterator[dict[str, Any]]:
    capacity, held = state.capacity.tolist(), state.agent_held.tolist()
    for row, info in enumerate(state.agent_info):
        assert info is not None
        yield {
            "agent": int(state.agents[row]),
            **_fields(info),
            "active": bool(state.active[row]),
            "whitelisted": bool(state.whitelisted[row]),
            "drained": bool(state.drained[row]),
            "capacity": _sparse(capacity[row]),
            "held": _sparse(held[row]),
        }


def _holdings(state: StateCopy) -> Iterator[dict[str, Any]]:
    client, agent = state.holding_client.tolist(), state.holding_agent.tolist()
    held, offered = state.holding_held.tolist(), state.holding_offered.tolist()
    since_ms = state.holding_since_ms.tolist()
    for row, (framework, role) in enumerate(client):
        yield {
            "framework": framework,
            "role": role,
            "agent": agent[row],
            "held": _sparse(held[row]),
            "offered": _sparse(offered[row]),
            "offered_since_ms": since_ms[row] if any(offered[row]) else None,
        }

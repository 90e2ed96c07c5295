"""The whole state as one JSON text, in pieces.

The books' thread only copies; the thread of the request writes the text. Amounts are in
thousandths.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from itertools import islice
from typing import Any

import numpy as np

from allocator.core import Ints, Kind, SetAside, Settings, State
from allocator.plain import json_text
from allocator.rule_kinds import DRAIN, LIMIT, RULES
from allocator.server.following.books import FollowedBooks
from allocator.server.reports import report

PIECE_BYTES = 256 * 1024


def read(books: FollowedBooks) -> Iterator[bytes]:
    """Copy the books, on their thread; return the text, which any thread may then write."""
    allocator = books.allocator
    state, rows, session = allocator.state, report.read(allocator), books.session
    head = {
        "sidecar_id": books.sidecar_id,
        "session": asdict(session) if session else None,
        "clock_ms": state.now_ms,
        "paused": state.paused,
        "settings": _plain_settings(allocator.settings.copied()),
        "kinds": [_kind(kind) for kind in state.space.kinds],
        "quotas": [asdict(quota) for quota in state.quotas.values()],
    }
    arrays = {
        "roles": _roles(rows),
        "frameworks": _frameworks(rows),
        "clients": _clients(rows),
        "agents": _agents(state),
        "remembered_demands": iter(rows.remembered.rows),
        "holdings": _holdings(state),
    }
    return _text(head, arrays)


def _text(head: object, arrays: Mapping[str, Iterator[dict[str, Any]]]) -> Iterator[bytes]:
    # Omit the closing brace: the long lists follow piece by piece.
    yield _dumps(head)[:-1]
    for name, rows in arrays.items():
        yield b",\n" + _dumps(name) + b":["
        comma = b"\n"
        for row in rows:
            yield comma + _dumps(row)
            comma = b",\n"
        yield b"]"
    yield b"}\n"


def pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Combine parts to pieces of about equal size, and cut parts that are much larger."""
    waiting = bytearray()
    for part in parts:
        waiting += part
        while len(waiting) >= PIECE_BYTES:
            yield bytes(waiting[:PIECE_BYTES])
            del waiting[:PIECE_BYTES]
    yield bytes(waiting)


def _dumps(value: object) -> bytes:
    # Only ASCII, because names are untrusted, and the text may be shown on a terminal.
    return json_text(value, default=_as_json, separators=(",", ":")).encode()


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


class _Amounts:
    """A copy of the amounts of rows (n,) of a table (K, N), as a mapping by kind for each row."""

    def __init__(self, table: Ints, rows: Ints) -> None:
        found = [np.flatnonzero(amounts[rows]) for amounts in table]
        place = np.concatenate([*found, np.empty(0, np.int64)])
        kind = np.repeat(np.arange(len(table)), [len(each) for each in found])
        order = np.argsort(place, kind="stable")
        self._count = np.bincount(place, minlength=len(rows))
        self._kind = kind[order]
        self._amount = table[self._kind, rows[place[order]]]

    def __iter__(self) -> Iterator[dict[int, int]]:
        cells = zip(self._kind.tolist(), self._amount.tolist(), strict=True)
        return (dict(islice(cells, count)) for count in self._count.tolist())


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


def _agents(state: State) -> Iterator[dict[str, Any]]:
    table = state.agents
    handles = np.flatnonzero(table.bound)
    info = [table.info[handle] for handle in handles.tolist()]
    flags = table.active, table.whitelisted, table.drained
    copied = [handles, *(each[handles] for each in flags)]
    amounts = [_Amounts(each, handles) for each in (table.capacity, state.ledger.books.agent_held)]

    def rows() -> Iterator[dict[str, Any]]:
        rows = zip(info, *(each.tolist() for each in copied), *amounts, strict=True)
        for its, handle, active, whitelisted, drained, capacity, held in rows:
            yield {
                "agent": handle,
                **_fields(its),
                "active": active,
                "whitelisted": whitelisted,
                "drained": drained,
                "capacity": capacity,
                "held": held,
            }

    return rows()


def _holdings(state: State) -> Iterator[dict[str, Any]]:
    clients, books = state.clients, state.ledger.books
    holdings = state.ledger.rows()
    client = books.client[holdings]
    copied = [clients.framework[client], clients.role[client], books.agent[holdings]]
    copied += [books.since_ms[holdings]]
    amounts = [_Amounts(each, holdings) for each in (books.held, books.offered)]

    def rows() -> Iterator[dict[str, Any]]:
        columns = zip(*(each.tolist() for each in copied), *amounts, strict=True)
        for framework, role, agent, since_ms, held, offered in columns:
            yield {
                "framework": framework,
                "role": role,
                "agent": agent,
                "held": held,
                "offered": offered,
                "offered_since_ms": since_ms if offered else None,
            }

    return rows()

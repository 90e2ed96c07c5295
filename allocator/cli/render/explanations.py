"""Explanations as text and tables."""

from collections.abc import Iterator
from itertools import compress
from typing import Any

from allocator.cli.render.setting_tables import BUDGET_USES
from allocator.cli.render.terminal import (
    Columns,
    amounts,
    cells,
    duration,
    in_words,
    name_of,
    percent,
    piped,
    print_section,
    print_table,
    say,
)
from allocator.plain import counted

IN_FULL = 3
"""Number of a role's frameworks that are printed in full; the others get one line each."""

_SMALLER_FIRST = "the smaller score comes first"


def show(data: dict[str, Any]) -> None:
    say(f"{data['kind']} {data['name']}: {data['verdict']}")
    for note in data["notes"]:
        say(f"note: {note}")
    print_section(_SET_ASIDE, data["set_aside"])
    if data["kind"] == "agent":
        free = in_words(data["free"]) or "nothing"
        print_table(["", "~"], [("has", in_words(data["capacity"])), ("free", free)], "")
        print_section(_HOLDERS, data["holders"], ("of which on offer",))
    print_section(_TALLIES, data["tallies"], ("such as",))
    clients = data["clients"]
    for client in clients[:IN_FULL]:
        _client(client, data["now_ms"], alone=len(clients) == 1)
    if clients:
        # Only for the first: a role's frameworks took part in the same cycles.
        _cycles(clients[0]["cycles"], data["now_ms"], clients[0] if len(clients) > 1 else None)
    if clients[IN_FULL:]:
        say()
    for client in clients[IN_FULL:]:
        say(f"{name_of(client)} in {client['role']}: {client['verdict']}")
    if data["left_out"]:
        say(f"and {data['left_out']} more, with shorter waits")
    print_section(_QUOTAS, data["quotas"])
    print_section(BUDGET_USES, data["budgets"])
    if data["kind"] == "agent":
        _cycles(data["cycles"], data["now_ms"])


_SET_ASIDE: Columns = {"set aside of": "said_by", "in": "field", "~why": "text"}

_HOLDERS: Columns = {
    "held by": "framework",
    "role": "role",
    "held": amounts("held"),
    "of which on offer": amounts("offered"),
    ">part of it": percent("share", 1),
}

_TALLIES: Columns = {
    ">frameworks": "frameworks",
    "reason": "reason",
    "~cause": "cause",
    # A framework in two roles is named once.
    "such as": lambda each: ", ".join(dict.fromkeys(each["examples"])),
}

_QUOTAS: Columns = {
    "quota of": "role",
    "guarantee": amounts("guarantee"),
    "limit": amounts("limit"),
    "consumed": amounts("consumed"),
}


def _client(client: dict[str, Any], now_ms: int, *, alone: bool) -> None:
    say()
    if not alone:
        say(f"{name_of(client)} in {client['role']}: {client['verdict']}")
    demand = in_words(client["demand"]) or "unknown"
    source = f" ({client['demand_source']})" if client["demand_source"] else ""
    last = _ago(client["offered_ms"], now_ms) or "never in this session"
    facts = [
        ("framework", f"{client['framework_id']}, in the role {client['role']}"),
        ("share", f"{client['share']:.4f}, of which {client['offered_share']:.4f} is on offer"),
        *([("over time", f"{client['used_share']:.4f}")] if client["used_share"] else []),
        ("one task needs", f"{demand}{source}"),
        ("last offer", f"{last}; waited {counted(client['waited_cycles'], 'cycle')}"),
        *([("next offer", _next_offer(client))] if client.get("forecast") else []),
        ("agents", f"{client['open_agents']} of {client['agents']} not blocked"),
    ]
    if client["largest_free_agent"]:
        free = in_words(client["largest_free"]) or "nothing"
        facts.append(("nearest fit", f"{free} free on {client['largest_free_agent']}"))
    print_table(["", "~"], facts, "")
    _blockers(client["blockers"], now_ms)
    _offers(client["offers"], now_ms)


def _next_offer(client: dict[str, Any]) -> str:
    first_ms, last_ms = client["expected_in_ms"], client["latest_in_ms"]
    if first_ms < 0:
        return str(client["forecast"])
    last = duration(last_ms / 1000) if last_ms >= 0 else "an unknown time"
    return f"in {duration(first_ms / 1000)} to {last} (p50 to p95): {client['forecast']}"


def _blockers(blockers: list[dict[str, Any]], now_ms: int) -> None:
    columns: Columns = {
        ">agents": "agents",
        ">alone": "alone",
        "blocker": "reason",
        "~cause": "cause",
        "for": lambda each: _ago(each["since_ms"], now_ms).removesuffix(" ago"),
        "ends in": lambda each: _in(each["until_ms"], now_ms),
        "such as": lambda each: ", ".join(each["examples"]),
    }
    # Omit empty columns, to leave room for the others.
    rows = [cells(columns, each) for each in blockers]
    some = [any(cell != "" for cell in column) for column in zip(*rows, strict=True)]
    kept = {title: columns[title] for title in compress(columns, some)}
    print_section(kept, blockers, ("for", "alone", "such as", "ends in"))
    mends = (f"  {each['reason']}: {each['mend']}" for each in blockers if each["mend"])
    for mend in dict.fromkeys(mends):
        say(mend)


def _offers(offers: list[dict[str, Any]], now_ms: int) -> None:
    columns: Columns = {
        "last offers": lambda each: _ago(each["at_ms"], now_ms),
        "agent": "agent",
        "amounts": amounts("amounts"),
        "made": lambda each: each["outcome"] or "not known yet",
        "then": _then,
    }
    print_section(columns, offers, ("then", "made"))


def _then(offer: dict[str, Any]) -> str:
    if offer["then"] == "declined" and offer["refused_ms"]:
        return f"declined, refused for {offer['refused_ms'] / 1000:g} s"
    return str(offer["then"])


def _cycles(
    cycles: list[dict[str, Any]], now_ms: int, client: dict[str, Any] | None = None
) -> None:
    """Print recent cycles; `client`: the one they describe, if there are several."""
    if not cycles:
        return
    say()
    if client is not None:
        whose = f"{name_of(client)} in {client['role']}"
        say(f"last cycles of {whose}; `explain framework` shows those of the others")
    rows = []
    for each in cycles:
        about = "all" if each["whole"] else "some"
        head = each["number"], _ago(each["at_ms"], now_ms), about, each["candidates"]
        told = [*_given(each), *_lost(each)] or [""]
        # For programs, repeat the first cells in each line of a cycle.
        rows.append((*head, each["decisions"], told[0]))
        rest = (*head, each["decisions"]) if piped() else ("",) * 5
        rows.extend((*rest, line) for line in told[1:])
    heads = [">cycle", "when", "agents", ">free", ">offers", "~result"]
    print_table(heads, rows, "", ("agents", "offers", "free"))


def _given(cycle: dict[str, Any]) -> Iterator[str]:
    for each in cycle["given"]:
        yield f"{each['framework']} got {in_words(each['amounts'])} of {each['agent']}"


def _lost(cycle: dict[str, Any]) -> Iterator[str]:
    if cycle["policy_error"]:
        yield f"the substitute decided: {cycle['policy_error']}"
    for loss in cycle["losses"]:
        winner, loser = loss["winner"], loss["loser"]
        agents = ", ".join(loss["examples"])
        if loss["agents"] > len(loss["examples"]):
            agents = f"{counted(loss['agents'], 'agent')}, such as {agents},"
        stood = ""
        if winner["score"] is not None and loser["score"] is not None:
            stood = (
                f": {winner['name']} at {winner['score']:.4g} before"
                f" {loser['name']} at {loser['score']:.4g}"
            )
        why = "" if stood and loss["why"] == _SMALLER_FIRST else f"; {loss['why']}"
        yield f"{agents} went to {loss['winner_framework']}{stood}{why}"
    if not cycle["losses"] and not cycle["given"]:
        for reason, count in cycle["blocked"].items():
            yield f"{counted(count, 'agent')} barred: {reason}"


def _ago(at_ms: int, now_ms: int) -> str:
    """Format the time since an event; empty if it is unknown."""
    return "" if at_ms < 0 else f"{duration((now_ms - at_ms) / 1000)} ago"


def _in(at_ms: int, now_ms: int) -> str:
    """Format the time until something ends; empty if it does not end by itself."""
    return "" if at_ms < 0 else duration(max(at_ms - now_ms, 0) / 1000)

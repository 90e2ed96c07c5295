"""Explanations for people."""

from collections.abc import Iterator
from typing import Any

from allocator.cli.render.terminal import as_text, console, in_words, piped, print_table

IN_FULL = 3
"""Of so many frameworks of a role everything is printed; of the others what matters most."""

_SMALLER_FIRST = "the smaller score comes first"

_MINUTE_S = 120
_HOUR_S = 7200


def show(data: dict[str, Any]) -> None:
    _line(f"{data['kind']} {data['name']}: {data['verdict']}")
    for note in data["notes"]:
        _line(f"note: {note}")
    _set_aside(data["set_aside"])
    if data["kind"] == "agent":
        _agent(data)
    if data["tallies"]:
        console().print()
        rows = (
            (each["frameworks"], each["reason"], each["cause"], _names(each["examples"]))
            for each in data["tallies"]
        )
        print_table([">frameworks", "reason", "cause", "such as"], rows, "")
    clients = data["clients"]
    for client in clients[:IN_FULL]:
        _client(client, data["now_ms"], alone=len(clients) == 1)
    if clients[IN_FULL:]:
        console().print()
    for client in clients[IN_FULL:]:
        _line(f"{_name(client)} in {client['role']}: {client['verdict']}")
    if data["left_out"]:
        _line(f"and {data['left_out']} more, which wait less long")
    _quotas(data["quotas"])
    if data["kind"] == "agent":
        _cycles(data["cycles"], data["now_ms"])


def _set_aside(rows: list[dict[str, Any]]) -> None:
    """Words that are not taken: whoever said them is served as if it had not."""
    if not rows:
        return
    console().print()
    table = ((each["said_by"], each["field"], each["text"]) for each in rows)
    print_table(["set aside of", "in", "why"], table, "")


def _line(text: str) -> None:
    console().print(as_text(text))


def _names(examples: list[str]) -> str:
    """Join names; a framework in two roles is named once."""
    return ", ".join(dict.fromkeys(examples))


def _name(client: dict[str, Any]) -> str:
    return str(client["framework_name"] or client["framework_id"])


def _client(client: dict[str, Any], now_ms: int, *, alone: bool) -> None:
    console().print()
    if not alone:
        _line(f"{_name(client)} in {client['role']}: {client['verdict']}")
    demand = in_words(client["demand"]) or "unknown"
    source = f" ({client['demand_source']})" if client["demand_source"] else ""
    last = _ago(client["offered_ms"], now_ms) or "never in this session"
    facts = [
        ("framework", f"{client['framework_id']}, in the role {client['role']}"),
        ("share", f"{client['share']:.4f}, of which {client['offered_share']:.4f} is on offer"),
        ("one task needs", f"{demand}{source}"),
        ("last offer", f"{last}; waited {client['waited_cycles']} cycles"),
        ("agents", f"{client['agents']}, {client['open_agents']} open to it"),
    ]
    if client["largest_free_agent"]:
        free = in_words(client["largest_free"]) or "nothing"
        facts.append(("nearest fit", f"{free} free on {client['largest_free_agent']}"))
    print_table(["", ""], facts, "")
    _blockers(client["blockers"], now_ms)
    _offers(client["offers"], now_ms)
    _cycles(client["cycles"], now_ms)


def _blockers(blockers: list[dict[str, Any]], now_ms: int) -> None:
    if not blockers:
        return
    console().print()
    rows = (
        (
            each["agents"],
            each["alone"],
            each["reason"],
            each["cause"],
            _ago(each["since_ms"], now_ms).removesuffix(" ago"),
            _in(each["until_ms"], now_ms),
            ", ".join(each["examples"]),
        )
        for each in blockers
    )
    head = [">agents", ">alone", "blocker", "cause", "for", "ends in", "such as"]
    print_table(*_filled(head, list(rows)), "")
    mends = (f"  {each['reason']}: {each['mend']}" for each in blockers if each["mend"])
    for mend in dict.fromkeys(mends):
        _line(mend)


def _filled(
    head: list[str], rows: list[tuple[object, ...]]
) -> tuple[list[str], list[list[object]]]:
    """Leave out columns in which nothing stands: the others need the room."""
    kept = [place for place in range(len(head)) if any(row[place] != "" for row in rows)]
    return [head[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _offers(offers: list[dict[str, Any]], now_ms: int) -> None:
    if not offers:
        return
    console().print()
    rows = (
        (
            _ago(each["at_ms"], now_ms),
            each["agent"],
            in_words(each["amounts"]),
            each["outcome"] or "not known yet",
            _then(each),
        )
        for each in offers
    )
    print_table(["last offers", "agent", "amounts", "made", "then"], rows, "")


def _then(offer: dict[str, Any]) -> str:
    if offer["then"] == "declined" and offer["refused_ms"]:
        return f"declined, refused for {offer['refused_ms'] / 1000:g} s"
    return str(offer["then"])


def _cycles(cycles: list[dict[str, Any]], now_ms: int) -> None:
    if not cycles:
        return
    console().print()
    rows = []
    for each in cycles:
        about = "all" if each["whole"] else "some"
        head = each["number"], _ago(each["at_ms"], now_ms), about, each["candidates"]
        told = [*_given(each), *_lost(each)] or [""]
        # What there is to say of a cycle stands line by line below its number.
        rows.append((*head, each["decisions"], told[0]))
        rest = (*head, each["decisions"]) if piped() else ("",) * 5
        rows.extend((*rest, line) for line in told[1:])
    print_table([">cycle", "when", "agents", ">free", ">offers", "what came of it"], rows, "")


def _given(cycle: dict[str, Any]) -> Iterator[str]:
    for each in cycle["given"]:
        yield f"{each['framework']} was given {in_words(each['amounts'])} of {each['agent']}"


def _lost(cycle: dict[str, Any]) -> Iterator[str]:
    """Why somebody was passed over in a cycle."""
    if cycle["policy_error"]:
        yield f"the fallback decided: {cycle['policy_error']}"
    for loss in cycle["losses"]:
        winner, loser = loss["winner"], loss["loser"]
        agents = ", ".join(loss["examples"])
        if loss["agents"] > len(loss["examples"]):
            agents = f"{loss['agents']} agents, such as {agents},"
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
            yield f"{count} agents barred: {reason}"


def _agent(data: dict[str, Any]) -> None:
    free = in_words(data["free"]) or "nothing"
    facts = [("has", in_words(data["capacity"])), ("free", free)]
    print_table(["", ""], facts, "")
    if data["holders"]:
        console().print()
        rows = (
            (
                each["framework"],
                each["role"],
                in_words(each["held"]),
                in_words(each["offered"]),
                f"{100 * each['share']:.1f} %",
            )
            for each in data["holders"]
        )
        head = ["held by", "role", "held", "of which on offer", ">part of it"]
        print_table(head, rows, "")


def _quotas(quotas: list[dict[str, Any]]) -> None:
    if not quotas:
        return
    console().print()
    rows = (
        (
            each["role"],
            in_words(each["guarantee"]),
            in_words(each["limit"]),
            in_words(each["consumed"]),
        )
        for each in quotas
    )
    print_table(["quota of", "guarantee", "limit", "consumed"], rows, "")


def _ago(at_ms: int, now_ms: int) -> str:
    """How long ago something was; empty where that is not known."""
    return "" if at_ms < 0 else f"{_duration((now_ms - at_ms) / 1000)} ago"


def _in(at_ms: int, now_ms: int) -> str:
    """How long something still lasts; empty where it does not end by itself."""
    return "" if at_ms < 0 else _duration(max(at_ms - now_ms, 0) / 1000)


def _duration(seconds: float) -> str:
    """A time as people say it.

    Examples
    --------
    >>> _duration(4.25), _duration(600), _duration(7300)
    ('4.2 s', '10 min', '2.0 h')
    """
    if seconds < _MINUTE_S:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < _HOUR_S else f"{seconds / 3600:.1f} h"

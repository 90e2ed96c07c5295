"""Explanations for people."""

from collections.abc import Iterator
from typing import Any

from allocator.cli.terminal import as_text, console, in_words, print_table

_MINUTE_S = 120
_HOUR_S = 7200


def show(data: dict[str, Any]) -> None:
    """Print an explanation."""
    _line(f"{data['kind']} {data['name']}: {data['verdict']}")
    for note in data["notes"]:
        _line(f"note: {note}")
    if data["kind"] == "agent":
        _agent(data)
    if data["tallies"]:
        console().print()
        rows = (
            (each["frameworks"], each["reason"], each["cause"], ", ".join(each["examples"]))
            for each in data["tallies"]
        )
        print_table([">frameworks", "reason", "cause", "such as"], rows, "")
    for client in data["clients"]:
        _client(client, data["now_ms"], alone=len(data["clients"]) == 1)
    if data["left_out"]:
        _line(f"and {data['left_out']} more, which wait less long")
    _quotas(data["quotas"])
    if data["kind"] == "agent":
        _cycles(data["cycles"], data["now_ms"])


def _line(text: str) -> None:
    console().print(as_text(text))


def _client(client: dict[str, Any], now_ms: int, *, alone: bool) -> None:
    console().print()
    name = client["framework_name"] or client["framework_id"]
    if not alone:
        _line(f"{name} in {client['role']}: {client['verdict']}")
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
    print_table(head, rows, "")
    for each in blockers:
        if each["mend"]:
            _line(f"  {each['reason']}: {each['mend']}")


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
    rows = (
        (
            each["number"],
            _ago(each["at_ms"], now_ms),
            f"{each['decisions']} of {each['candidates']} agents"
            + (" (all were looked at)" if each["whole"] else ""),
            "; ".join(_given(each["given"])),
            "; ".join(_lost(each)),
        )
        for each in cycles
    )
    print_table([">cycle", "when", "offers made", "given", "not given, because"], rows, "")


def _given(given: list[dict[str, Any]]) -> Iterator[str]:
    for each in given:
        yield f"{in_words(each['amounts'])} of {each['agent']} to {each['framework']}"


def _lost(cycle: dict[str, Any]) -> Iterator[str]:
    """Why somebody was passed over in a cycle."""
    if cycle["policy_error"]:
        yield f"the fallback decided: {cycle['policy_error']}"
    for loss in cycle["losses"]:
        winner, loser = loss["winner"], loss["loser"]
        agents = f"{loss['agents']} agents ({', '.join(loss['examples'])})"
        stood = ""
        if winner["score"] is not None and loser["score"] is not None:
            stood = (
                f": {winner['name']} scored {winner['score']:.4g},"
                f" {loser['name']} {loser['score']:.4g}"
            )
        yield f"{agents} went to {loss['winner_framework']}{stood}; {loss['why']}"
    if not cycle["losses"] and not cycle["given"]:
        for reason, count in cycle["blocked"].items():
            yield f"{count} barred by {reason}"


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

"""Tables of drained agents: when and by whom they were drained, and what is still held there."""

import time
from collections.abc import Iterator
from typing import Any

from allocator.cli.render.setting_tables import differences, minute, rules
from allocator.cli.render.terminal import (
    Columns,
    amounts,
    duration,
    holders_of,
    host_of,
    print_rows,
    print_section,
    say,
)
from allocator.plain import counted


def drains(data: dict[str, Any]) -> None:
    """Print the drained agents; after a change, only what is held on the newly drained ones."""
    change = data.get("change")
    if change:
        if "drains" not in data:
            differences(data)
            return
        rules(data, "drain")
        if not change["dry_run"] and "agents" in data:
            _still_held(data["agents"])
        return
    print_rows(_DRAINS, _rows(data), "no agent is drained", ("set by", "held by"))
    if data["left_out"]:
        say(f"not shown: what is held on {counted(data['left_out'], 'more agent')}")


def _rows(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one row per drained agent, and one per rule that matches no agent or begins later."""
    found: dict[str, list[dict[str, Any]]] = {}
    for agent in data["agents"]:
        for name in {agent["agent_id"], agent["hostname"]}:
            found.setdefault(name, []).append(agent)
    for rule in data["drains"]:
        drained = [None] if rule["from_ms"] else found.get(rule["agent"], [None])
        for agent in drained:
            yield {"rule": rule["agent"], "from_ms": rule["from_ms"], "agent": agent}


def _held(row: dict[str, Any]) -> str:
    agent = row["agent"]
    if row["from_ms"]:
        return ""
    if agent is None:
        return "no such agent"
    return f"{100 * agent['held_share']:.0f} %" if agent["holders"] else "nothing"


def _age(row: dict[str, Any]) -> str:
    if row["from_ms"]:
        return f"from {minute(row['from_ms'])}"
    drain = row["agent"] and row["agent"]["drain"]
    if not drain or not drain["set_at_ms"]:
        return ""
    return duration(max(time.time() - drain["set_at_ms"] / 1000, 0.0))


def _by(row: dict[str, Any]) -> str:
    drain = row["agent"] and row["agent"]["drain"]
    return (drain["place"] or drain["source"]) if drain else ""


_DRAINS: Columns = {
    "=agent": "rule",
    ">held": _held,
    ">drained for": _age,
    "held by": lambda row: holders_of(row["agent"]) if row["agent"] else "",
    "set by": _by,
}


def _still_held(agents: list[dict[str, Any]]) -> None:
    found = [{"on": host_of(each), **holder} for each in agents for holder in each["holders"]]
    if not found:
        say("nothing is held there")
    print_section(_STILL, found)


_STILL: Columns = {
    "=still held on": "on",
    "framework": "framework",
    "role": "role",
    "held": amounts("held"),
    "of which on offer": amounts("offered"),
}

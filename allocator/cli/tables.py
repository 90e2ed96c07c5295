"""Responses for people: tables on the terminal."""

from typing import Any

from allocator.cli.printing import clean as _text
from allocator.cli.printing import console as _console
from allocator.cli.printing import print_table as _print
from allocator.cli.printing import quantities as _quantities

_FAIR = [">fair", ">off by"]


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _policy(policy: dict[str, Any]) -> str:
    selection = policy["selection"] or "its own selection"
    competition = "flat" if policy["flat"] else "hierarchical"
    parameters = "".join(f", {key}={value}" for key, value in policy["parameters"].items())
    subtrees = "".join(f"; {name} below {role}" for role, name in policy["subtrees"].items())
    return f"{policy['name']} ({selection}, {policy['mode']}, {competition}{parameters}){subtrees}"


def status(data: dict[str, Any]) -> None:
    """Print a status."""
    session = "none"
    if data["in_session"]:
        session = f"master {data['master_id']} (Mesos {data['mesos_version']})"
    pairs = [
        ("sidecar", f"{data['sidecar_version']}, {data['sidecar_id']}"),
        ("up", f"{data['uptime_s']:.0f} s"),
        ("session", session),
        ("sessions so far", data["sessions"]),
        ("batch", f"{data['sequence']}, clock {data['clock_ms']} ms"),
        ("policy", _policy(data["policy"])),
        ("agents", f"{data['agents']}, {data['active_agents']} active"),
        ("frameworks", f"{data['frameworks']}, {data['active_frameworks']} active"),
        ("roles", data["roles"]),
        ("filters", data["filters"]),
        ("events", data["events"]),
        ("cycles", data["cycles"]),
        ("cycle time", _cycle_time(data)),
        ("loops", _loops(data)),
        ("decisions", f"{data['decisions']}, {data['outstanding_decisions']} outstanding"),
    ]
    _print(["", ""], pairs, "")
    if data["resources"]:
        rows = (
            (use["name"], use["total"], use["held"], _percent(use["held"], use["total"]))
            for use in data["resources"]
        )
        _console().print()
        _print(["resource", ">total", ">held", ">"], rows, "")


def _cycle_time(data: dict[str, Any]) -> str:
    median, p99 = data["cycle_p50_ms"], data["cycle_p99_ms"]
    return "" if median is None else f"median {median:.1f} ms, p99 {p99:.1f} ms"


def _loops(data: dict[str, Any]) -> str:
    if data["loops_state"] == "compiled":
        return "compiled"
    done, parts = data["loop_parts_compiled"], data["loop_parts"]
    return f"interpreted ({data['loops_state']}), {done} of {parts} parts compiled"


def shares(data: dict[str, Any]) -> None:
    """Print shares, the largest first."""
    fair = data["fair"]
    head = ["role", ">weight", ">share", *_FAIR * fair, ">weighted", "dominant", "held", ">offered"]
    _print(head, (_share(each, fair) for each in data["roles"]), "no roles")
    _console().print()
    rows = (
        (
            each["framework_name"] or each["framework_id"],
            *_share(each, fair),
            "" if each["score"] is None else f"{each['score']:.4f}",
            _quantities(each["demand"]),
            each["demand_source"],
            each["agents"],
            each["filters"],
            f"{each['offer_age_s']:.0f} s" if each["offer_age_s"] else "",
            each["waited_cycles"],
            _state(each),
        )
        for each in data["clients"]
    )
    more = [">score", "demand", "from", ">agents", ">filters", ">offered for", ">waited", "state"]
    _print(["framework", *head, *more], rows, "no frameworks")
    envy = data["envy_max"]
    envy_text = "too much to compare" if envy is None else f"{envy:.3g} tasks"
    _console().print(f"\nJain index {data['jain_index']:.3f}, largest envy: {envy_text}")
    if fair:
        text = "root mean square of all differences from the fair share"
        _console().print(f"{text}: {data['fairness_error_rms']:.4f}")
    if data["newcomer_share"] is not None:
        _console().print(f"a newcomer would be given {data['newcomer_share']:.4f}")


def _share(share: dict[str, Any], fair: bool) -> tuple[object, ...]:
    return (
        share["role"],
        f"{share['weight']:g}",
        f"{share['share']:.4f}",
        *((f"{share['fair_share']:.4f}", f"{share['fairness_error']:+.4f}") if fair else ()),
        f"{share['weighted_share']:.4f}",
        share["dominant_resource"],
        _quantities(share["held"]),
        f"{share['offered_share']:.4f}",
    )


def _state(share: dict[str, Any]) -> str:
    if not share["active"]:
        return "inactive"
    return "suppressed" if share["suppressed"] else "active"


def policy(data: dict[str, Any]) -> None:
    """Print the policy in force."""
    _console().print(_text(_policy(data["policy"])))
    if data.get("policies"):
        _console().print(_text(f"policies:   {', '.join(data['policies'])}"))
        _console().print(_text(f"selections: {', '.join(data['selections'])}"))


def demands(data: dict[str, Any]) -> None:
    """Print the operator's demand rules."""
    rows = (
        (*_patterns(rule), _quantities(rule["demand"]) or "unknown") for rule in data["demands"]
    )
    _print(["role", "framework", "one task needs"], rows, "no rules")


def constraints(data: dict[str, Any]) -> None:
    """Print the operator's constraint rules."""
    rows = ((*_patterns(rule), rule["expression"]) for rule in data["constraints"])
    _print(["role", "framework", "agents"], rows, "no rules")


def _patterns(rule: dict[str, Any]) -> tuple[str, str]:
    return rule["role"] or "*", rule["framework_name"] or "*"

"""Responses for people: tables on the terminal."""

from typing import Any

from allocator.cli.setting_tables import policy_in_words, print_settings
from allocator.cli.terminal import as_text, console, in_words, print_table

_FAIR = [">fair", ">off by"]


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


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
        ("policy", policy_in_words(data["policy"])),
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
    print_table(["", ""], pairs, "")
    _settings_in_force(data)
    if data["resources"]:
        rows = (
            (use["name"], use["total"], use["held"], _percent(use["held"], use["total"]))
            for use in data["resources"]
        )
        console().print()
        print_table(["resource", ">total", ">held", ">"], rows, "")


def _settings_in_force(data: dict[str, Any]) -> None:
    """Print the rules in force and what operators set, and whether that lasts."""
    shown = [each for each in data["settings"] if not each["key"].startswith("policy.")]
    if shown:
        console().print()
        print_settings(shown)
    if any(each["source"] == "operator" for each in data["settings"]):
        where = data["state_directory"]
        kept = f"kept in {where}" if where else "ends with the process: no state directory"
        problem = f"; NOT KEPT: {data['state_problem']}" if data["state_problem"] else ""
        console().print(as_text(f"what operators set: {kept}{problem}"))


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
    print_table(head, (_share(each, fair) for each in data["roles"]), "no roles")
    console().print()
    rows = (
        (
            each["framework_name"] or each["framework_id"],
            *_share(each, fair),
            "" if each["score"] is None else f"{each['score']:.4f}",
            in_words(each["demand"]),
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
    print_table(["framework", *head, *more], rows, "no frameworks")
    envy = data["envy_max"]
    envy_text = "too much to compare" if envy is None else f"{envy:.3g} tasks"
    console().print(f"\nJain index {data['jain_index']:.3f}, largest envy: {envy_text}")
    if fair:
        text = "root mean square of all differences from the fair share"
        console().print(f"{text}: {data['fairness_error_rms']:.4f}")
    if data["newcomer_share"] is not None:
        console().print(f"a newcomer would be given {data['newcomer_share']:.4f}")


def _share(share: dict[str, Any], fair: bool) -> tuple[object, ...]:
    return (
        share["role"],
        f"{share['weight']:g}",
        f"{share['share']:.4f}",
        *((f"{share['fair_share']:.4f}", f"{share['fairness_error']:+.4f}") if fair else ()),
        f"{share['weighted_share']:.4f}",
        share["dominant_resource"],
        in_words(share["held"]),
        f"{share['offered_share']:.4f}",
    )


def _state(share: dict[str, Any]) -> str:
    if not share["active"]:
        return "inactive"
    return "suppressed" if share["suppressed"] else "active"

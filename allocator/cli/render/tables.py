"""Tables of a sidecar's status, and the lines of `--output name` and `status --check`."""

import shlex
from collections.abc import Iterator
from typing import Any

from allocator.cli.render.setting_tables import (
    policy_in_words,
    print_coming,
    print_settings,
)
from allocator.cli.render.terminal import (
    Columns,
    duration,
    print_rows,
    print_section,
    print_table,
    say,
)
from allocator.cli.tree import Check
from allocator.plain import printable
from allocator.rule_kinds import KINDS, Scope


def names(data: dict[str, Any], rows: str, field: str) -> Iterator[str]:
    """Yield a field of all rows, without duplicates, as of frameworks in several roles."""
    yield from dict.fromkeys(str(each[field]) for each in data[rows])


def policy(data: dict[str, Any], field: str = "policy") -> Iterator[str]:
    if data[field]["name"]:
        yield data[field]["name"]


def rules(data: dict[str, Any], name: str) -> Iterator[str]:
    """Yield the arguments of `remove` for each rule of a kind."""
    kind = KINDS[name]
    for rule in data[kind.plural]:
        if kind.scope is not Scope.FRAMEWORKS:
            first, *others = kind.scope.fields
            yield " ".join([rule[first], *(f"--{part} {rule[part]}" for part in others)])
            continue
        given = ((part, rule[part]) for part in kind.scope.fields if rule[part])
        words = (f"--{part.replace('_', '-')} {shlex.quote(text)}" for part, text in given)
        yield " ".join(words) or "--all"


def settings(data: dict[str, Any]) -> Iterator[str]:
    yield from (f"{each['key']} {each['scope']}".rstrip() for each in data["settings"])


CRITICAL = {"silent master", "policy failed"}
"""Warnings that `status --check` reports as critical, as the corresponding alerts do: the cluster
is not served as configured."""


def checked(data: dict[str, Any]) -> tuple[Check, str]:
    """Judge a status for monitoring; return the exit code and one line."""
    code, told = _judged(data)
    return code, _line(code, told, data)


def _judged(data: dict[str, Any]) -> tuple[Check, str]:
    warnings = data["warnings"]
    code, told = Check.OK, f"in session with master {data['master_id']}"
    if warnings:
        worst = any(each["what"] in CRITICAL for each in warnings)
        code = Check.CRITICAL if worst else Check.WARNING
        told = "; ".join(f"{each['what']}: {each['text']}" for each in warnings)
    return code, told


def _line(code: Check, told: str, data: dict[str, Any] | None) -> str:
    text = f"{code.name}: {printable(told).replace('|', '/')}"
    return text if data is None else f"{text} | {_performance(data)}"


def all_checked(data: dict[str, Any]) -> tuple[Check, str]:
    """Judge several sidecars: exactly one must lead; the others need no session."""
    sidecars = data["sidecars"]
    leading = [each for each in sidecars if each["leads"]]
    problems = [each["problem"] for each in sidecars if each["problem"]]
    if not leading:
        told = "; ".join([f"none of {len(sidecars)} sidecars leads", *problems])
        return Check.CRITICAL, _line(Check.CRITICAL, told, None)
    status = leading[0]["status"]
    code, told = _judged(status)
    if len(leading) > 1:
        names = ", ".join(each["target"] for each in leading)
        problems.append(f"masters have sessions with {names}")
    if problems and code is Check.OK:
        code = Check.WARNING
    told = "; ".join([f"{leading[0]['target']} leads", told, *problems])
    return code, _line(code, told, status)


_COUNTS = ("agents", "active_agents", "frameworks", "active_frameworks", "roles", "filters")
_COUNTERS = ("cycles", "decisions", "events", "sessions")


def _performance(data: dict[str, Any]) -> str:
    """Format numbers for monitoring plugins: 'label'=value[unit];warn;crit;min;max."""
    numbers = {"uptime": f"{data['uptime_s']:.0f}s", "warnings": len(data["warnings"])}
    numbers |= {name: data[name] for name in (*_COUNTS, "outstanding_decisions")}
    numbers |= {name: f"{data[name]}c" for name in _COUNTERS}
    for name in ("cycle_p50", "cycle_p99"):
        if (taken_ms := data[f"{name}_ms"]) is not None:
            numbers[name] = f"{taken_ms:.3f}ms"
    for each in data["resources"]:
        # The name is untrusted: a quote or an equals sign in it must not end the label.
        name = printable(each["name"]).translate(str.maketrans("'=|", "___"))
        total = f";;;0;{each['total']}"
        numbers[f"{name}_held"] = f"{each['held']}{total}"
        numbers[f"{name}_offered"] = f"{each['offered']}{total}"
    return " ".join(f"'{label}'={number}" for label, number in numbers.items())


def status(data: dict[str, Any]) -> None:
    """Print the status of a sidecar; if there are several, which one leads, and its status."""
    if (sidecars := data.get("sidecars")) is None:
        _status(data)
        return
    print_rows(_SIDECARS, sidecars, "")
    leading = [each for each in sidecars if each["leads"]]
    if not leading:
        say(f"none of {len(sidecars)} sidecars leads")
    for each in leading:
        say()
        say(f"{each['target']}:")
        _status(each["status"])


def _said(sidecar: dict[str, Any]) -> str:
    status = sidecar["status"]
    if status is None:
        return str(sidecar["problem"])
    return _session(status) if status["in_session"] else "no session"


_SIDECARS: Columns = {
    "=sidecar": "target",
    "leads": lambda each: "leads" if each["leads"] else "",
    "~session": _said,
}


def _session(data: dict[str, Any]) -> str:
    return f"master {data['master_id']} (Mesos {data['mesos_version']})"


def _status(data: dict[str, Any]) -> None:
    session = "none"
    if data["in_session"]:
        session = _session(data)
    pairs = [
        ("sidecar", f"{data['sidecar_version']}, {data['sidecar_id']}"),
        ("up", duration(data["uptime_s"])),
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
    if data.get("unmet"):
        pairs.append(("unmet", data["unmet"]))
    followed = data["followed"]
    if followed["source"]:
        state = "" if followed["connected"] else ", not connected"
        text = f"{followed['source']}, {followed['lag_s']:.1f} s behind{state}"
        pairs.insert(0, ("observer of", text))
    print_table(["", "~"], pairs, "")
    for warning in data["warnings"]:
        say(f"warning: {warning['what']}: {warning['text']}; {warning['mend']}")
    _settings_in_force(data)
    print_section(_RESOURCES, data["resources"])


_RESOURCES: Columns = {
    "resource": "name",
    ">total": "total",
    ">held": "held",
    ">": lambda use: f"{100 * use['held'] / use['total']:.1f} %" if use["total"] else "",
    ">of which on offer": "offered",
}


def _settings_in_force(data: dict[str, Any]) -> None:
    shown = [each for each in data["settings"] if not each["key"].startswith("policy.")]
    if shown:
        say()
        print_settings(shown)
    print_coming(data)
    if any(each["source"] == "operator" for each in data["settings"]):
        where = data["state_directory"]
        kept = f"saved in {where}" if where else "lost when the process ends: no state directory"
        problem = f"; NOT SAVED: {data['state_problem']}" if data["state_problem"] else ""
        say(f"what operators set: {kept}{problem}")


def _cycle_time(data: dict[str, Any]) -> str:
    median, p99 = data["cycle_p50_ms"], data["cycle_p99_ms"]
    return "" if median is None else f"median {median:.1f} ms, p99 {p99:.1f} ms"


def _loops(data: dict[str, Any]) -> str:
    if data["loops_state"] == "compiled":
        return "compiled"
    if data["loops_state"] == "plain":
        return "plain Python, which is slow: NUMBA_DISABLE_JIT is set"
    done, parts = data["loop_parts_compiled"], data["loop_parts"]
    return f"{data['loops_state']}, {done} of {parts} parts compiled"

"""The reference of the module: parameters and metrics.

Names, defaults and ranges are read from the C++ sources, descriptions are below. A name without a
description, or a description without a name, is an error.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from allocator.v1.session_pb2 import OutcomeReason

MODULE = Path(__file__).resolve().parents[2] / "mesos-module"

HOUR_MS = 3600 * 1000

INTRODUCTION = """\
# The module: parameters and metrics

<!-- `make docs` writes this file. -->

This page lists the parameters of the module in the master, and the metrics that the master shows of
it. [Beside a real master](../tutorials/beside-a-master.md) says how to load the module.

## Parameters

All are optional. They are set in the manifest (`deploy/mesos/modules.json`), and validated when the
master starts, including files and the target.

"""

SECRETS = """\
The server at the target decides on offers, within the limits of the module's gates, and any client
that connects to the sidecar as a master receives decisions. With loopback addresses and Unix
sockets, other machines cannot connect; with a token (`session_token_file`), other users of this
machine cannot. Over a network, use TLS with certificates on both sides. If the module cannot read
the token, it logs an error and decides itself.

clusterd is built with TLS (`ENABLE_SSL`), Apache Mesos usually without. A module for a Mesos
without TLS rejects the `tls_` parameters. The gRPC of a Mesos may be too old for an option to
bypass proxies. If the master's environment has `http_proxy`, add the sidecar's host to `no_proxy`.

## Metrics

The master's `/metrics/snapshot` shows these, each with the prefix `allocator/sidecar/`. Counters
restart with the master.
"""

REST = """\
The metrics of Mesos's own allocator have the same names as before, so that dashboards need no
change. Below `allocator/mesos/` there are runs (`allocation_runs`, `allocation_run_ms`,
`allocation_run_latency_ms`) and the queue (`event_queue_dispatches`). There are also
`resources/...`, `quota/roles/...`, `roles/.../shares/dominant`, `offer_filters/roles/.../active`
and `master/frameworks/.../roles/.../suppressed`. A run is a cycle, from the request to the sidecar
until its answer passed the gates, or a cycle of the module. A scrape puts one entry into the queue
of the allocator, however many metrics there are.

Alert if `connected` is 0 for a minute, if `fallback_cycles`, `resyncs`, `barren_turns` or
`breaker_trips` grow, or if `ends/malformed`, `ends/snapshot` or `outcomes/malformed` is not 0.

## Books

The master serves holdings, filters in force and the state of the session as JSON, for at most 1,000
agents at a time (`next` is the `first` of the next page):

    curl --globoff 'http://master:5050/sidecar-allocator(1)/books?first=0&count=1000'

The endpoint `/hierarchical-allocator(1)/offer_constraints_debug` of Mesos's own allocator, which
lists the agents that offer constraints exclude, does not exist: ask
[`explain`](commands.md#explain).
"""

MEANINGS = {
    "target": "the sidecar: `host:port`, `[IPv6]:port` or `unix:/path`",
    "tls_ca": "PEM file of the CA that signs the sidecar's certificate. Enables TLS, if the gRPC"
    " of that Mesos supports it",
    "tls_cert": "PEM file of the module's certificate; with `tls_key`",
    "tls_key": "PEM file of its private key; with `tls_cert`",
    "tls_name": "the name that the sidecar's certificate must have; the target's by default",
    "session_token_file": "file with one line, the token sent with each session, for a sidecar"
    " that requires it (`access.session_token`). It is read again for each session. Without TLS"
    " it is sent only to a Unix socket or a loopback address",
    "welcome_deadline_ms": "time from the hello, including the connection, to the welcome",
    "snapshot_deadline_ms": "time from the snapshot to the first answer",
    "answer_deadline_ms": "time without an answer after which the module ends the session",
    "fallback_after_ms": "time without an answer after which the module decides itself, while the"
    " session continues. Set it longer than a cycle of the sidecar, and no longer than the master's"
    " `--allocation_interval`",
    "fallback": "`false`: the module makes no offers while it has no sidecar",
    "queue_messages_max": "maximum number of messages that wait to be sent; beyond it, a new"
    " session begins with a snapshot",
    "queue_bytes_max": "the same in bytes",
    "inverse_offers_within_ms": "if an agent's maintenance begins later than this, frameworks get"
    " inverse offers for it only on the sidecar's request, see"
    " [Ask frameworks to leave agents](../how-to/preempt.md)",
    "shadow": "`true`: Mesos's own allocator decides, and the module compares: see"
    " [Run a week in shadow mode](../how-to/roll-out.md#run-a-week-in-shadow-mode)",
    "role_sorter": "sorter of Mesos's own allocator in shadow mode; modules cannot read the"
    " master's flag of this name",
    "framework_sorter": "the same for frameworks",
    "barren_intervals_max": "consecutive intervals in which the sidecar answers but offers nothing,"
    " does not report that it holds back, and a framework could use free resources; then the"
    " module decides one cycle. 0: never",
    "bad_decisions_max": "bad decisions within ten seconds that open the circuit breaker",
    "breaker_pause_ms": "how long the circuit breaker stays open",
}

METRICS = {
    "connected": "1 while a session is up and has the whole state",
    "session_age_secs": "0: no session",
    "attempts, sessions, resyncs": "attempts to open a session, opened sessions, and snapshots"
    " after the first",
    "ends/unreachable": "attempts to which no sidecar answered",
    "ends/lost": "the stream broke, or the sidecar shut down",
    "ends/silent": "no answer within a deadline",
    "ends/malformed": "the sidecar broke the protocol: a defect",
    "ends/refused": "the sidecar ended the session with an error; its log says which",
    "ends/queue_full": "the queue was full: the sidecar is too slow, or hangs",
    "ends/oversized": "an event is larger than the sidecar reads",
    "ends/snapshot": "the module's own snapshot was malformed: a defect",
    "events, batches, cycles, decisions": "events and batches sent, cycles requested, decisions"
    " received",
    "queue_messages, queue_bytes": "messages and bytes waiting to be sent",
    "unanswered": "batches that wait for their answer",
    "round_trip_ms/p50, round_trip_ms/p90, round_trip_ms/p99, round_trip_ms/max": "time from"
    " queueing a batch to its answer, over recent batches",
    "outcomes/offered, outcomes/partial": "decisions that became an offer, of all or of a part",
    "outcomes/paused, outcomes/unknown_framework, outcomes/inactive_framework, outcomes/bad_role,"
    " outcomes/suppressed, outcomes/unknown_agent, outcomes/inactive_agent, outcomes/constraint,"
    " outcomes/capability, outcomes/nothing_available, outcomes/below_minimum, outcomes/filtered,"
    " outcomes/limit, outcomes/headroom, outcomes/stale, outcomes/shadow,"
    " outcomes/incomplete_gang": "decisions that became no offer, by reason; a few are normal,"
    " because the cluster may change between a decision and its arrival",
    "outcomes/malformed": "decisions that name unknown kinds or invalid amounts: a defect",
    "fallback_cycles": "cycles that the module decided",
    "barren_intervals, barren_turns": "consecutive intervals in which the sidecar offered nothing"
    " although a framework could use free resources, and cycles that the module decided for that"
    " reason",
    "breaker_open, breaker_trips": "1 while the circuit breaker is open, and how often it opened",
    "agents, frameworks, filters": "in the module's books",
    "kinds": "kinds of resources in this session (by name, reserved role, form of disk, ...), at"
    " most as many as the sidecar distinguishes; further ones are reported as the rest kind of"
    " their name",
    "set_aside": "ignored inputs from frameworks and agents: see"
    " [Security](../explanation/security.md)",
    "misfits": "operations that contradicted the books; the books are then changed as the"
    " master says. The reason is a defect, or an agent that reregistered with less; in"
    " shadow mode, also offers made during a change of"
    " their agent",
    "shadow/offers": "in shadow mode: offers of Mesos's own allocator, counted per framework and"
    " agent, while there was a session",
    "shadow/same, shadow/other, shadow/none": "in shadow mode: decisions of the sidecar, by whether"
    " Mesos's own allocator offered the agent, within the interval, to the same framework, to"
    " others only, or to none",
}


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION.rstrip("\n"), ""]
    found = parameters()
    if set(found) != set(MEANINGS):
        raise ValueError(f"tools/docs/module_reference.py: {sorted(set(found) ^ set(MEANINGS))}")
    lines += ["| parameter | default | range | meaning |", "|---|---|---|---|"]
    for name, meaning in MEANINGS.items():
        default, bounds = found[name]
        lines.append(f"| `{name}` | {f'`{default}`' if default else ''} | {bounds} | {meaning} |")
    told = {name for names in METRICS for name in names.split(", ")}
    if told != metrics():
        raise ValueError(f"tools/docs/module_reference.py: {sorted(told ^ metrics())}")
    lines += ["", SECRETS, "| metric | |", "|---|---|"]
    for names, meaning in METRICS.items():
        lines.append(f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {meaning} |")
    return "\n".join([*lines, "", REST])


def read(*names: str) -> str:
    """Read sources of the module, one after the other."""
    return "\n".join((MODULE / name).read_text("utf-8") for name in names)


def only(pattern: str, text: str) -> str:
    """Give the single match of a pattern."""
    (match,) = re.findall(pattern, text)
    return str(match)


def value(expression: str) -> str:
    """Compute a C++ constant: `64 << 20` is 67108864."""
    if expression in {"true", "false"}:
        return expression
    plain = re.sub(r"int64_t\((\d+)\)", r"\1", expression).replace("HOUR_MS", str(HOUR_MS))
    if not re.fullmatch(r"[\d <]+", plain):
        raise ValueError(f"no constant that is known here: {expression}")
    base, *shifts = (int(word) for word in plain.split("<<"))
    for shift in shifts:
        base <<= shift
    return str(base)


def metrics() -> set[str]:
    """Read the names of all metrics from the tables of what is published."""
    source = read("session/stats.cpp", "brain/stats.cpp")
    found = re.findall(r"(?:\bstat\(|compared\(|\{)\s*\"([\w/]*\w)\"", source)
    found += [f"round_trip_ms/{each}" for each in re.findall(r"roundTrip\(\"(\w+)\"", source)]
    found += [f"ends/{each}" for each in re.findall(r"return \"(\w+)\";", source)]
    reasons = OutcomeReason.keys()[1:]
    found += [f"outcomes/{each.removeprefix('OUTCOME_REASON_').lower()}" for each in reasons]
    return set(found)


def parameters() -> dict[str, tuple[str, str]]:
    """Read the default and the range of each parameter; both empty for most texts."""
    return dict(_parameters())


def _parameters() -> Iterator[tuple[str, tuple[str, str]]]:
    defaults = read("session/parameters.hpp", "session/session.hpp", "session/transport.hpp")
    source = read("session/parameters.cpp")
    readers = only(r"(?s)map<string, Reader> readers\(.*?\n}\n", source)
    rows = re.findall(
        r"(?s)\{\"(\w+)\",\s*(text|boolean|number|sorter)\(&([\w.>-]+)(?:, (.*?))?\)\}", readers
    )
    if len(rows) != readers.count('{"'):
        raise ValueError("mesos-module/session/parameters.cpp: a parameter of an unknown form")
    for key, kind, target, bounds in rows:
        member = re.split(r"\.|->", target)[-1]
        if kind == "text":
            given = re.findall(rf"result\.[\w.]*\b{member} = \"(.*?)\";", source)
            yield key, (given[0] if given else "", "")
            continue
        default = only(rf" {member}(?:\{{| = )([^;{{}}]+)\}}?;", defaults)
        if kind == "sorter":
            yield key, (default.strip('"'), "drf, random")
            continue
        least, most = bounds.split(", ") if bounds else ("true", "false")
        joint = " to " if bounds else ", "
        yield key, (value(default), value(least) + joint + value(most))

"""The reference of the module: parameters and metrics, with what its sources say of them.

Names, defaults and ranges are read from the C++; what they mean stands here. A name without a
meaning, or a meaning without a name, is an error.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from allocator.v1.session_pb2 import OutcomeReason

MODULE = Path(__file__).resolve().parent.parent / "mesos-module"

HOUR_MS = 3600 * 1000

INTRODUCTION = """\
# The module: parameters and metrics

<!-- `make docs` writes this file. -->

This page lists the parameters of the module in the master, and the metrics that the master shows of
it. [Beside a real master](../tutorials/beside-a-master.md) says how to load the module.

## Parameters

All are optional. They stand in the manifest (`deploy/mesos/modules.json`), and are looked at when
the master starts, files and target included.

"""

SECRETS = """\
Whoever answers at the target decides on offers, within what the module's gates allow. Whoever calls
the sidecar as a master is given decisions. Loopback and Unix sockets keep other machines out. The
other users of this machine are kept out by a token (`session_token_file`). Over a network, use TLS
with certificates on both sides. If a token cannot be read, the log says so, and the module decides.

clusterd is built with TLS (`ENABLE_SSL`), Apache Mesos usually without. A module for a Mesos
without TLS refuses the `tls_` parameters. The gRPC of a Mesos may also be too old to be told to
leave out a proxy. If the master's environment has `http_proxy`, let `no_proxy` name the sidecar's
host.

## Metrics

The master's `/metrics/snapshot` shows these, each beginning with `allocator/sidecar/`. A count
begins anew with the master.
"""

REST = """\
What Mesos's own allocator shows is shown with the same names, so that dashboards go on as they
are. Below `allocator/mesos/` there are runs (`allocation_runs`, `allocation_run_ms`,
`allocation_run_latency_ms`) and the queue (`event_queue_dispatches`). There are also
`resources/...`, `quota/roles/...`, `roles/.../shares/dominant`,
`offer_filters/roles/.../active` and `master/frameworks/.../roles/.../suppressed`. A run is a
cycle: from asking the sidecar until its answer is judged, or the module's own. A scrape takes one
place in the queue, however many metrics there are.

Worth an alert: `connected` is 0 for a minute; `fallback_cycles`, `resyncs`, `barren_turns` or
`breaker_trips` grow; `ends/malformed`, `ends/snapshot` or `outcomes/malformed` is not 0.

## Books

Who holds what, which refusals are in force and how the session stands, as JSON, 1,000 agents at a
time (`next` says where to go on):

    curl --globoff 'http://master:5050/sidecar-allocator(1)/books?first=0&count=1000'

The endpoint `/hierarchical-allocator(1)/offer_constraints_debug` of Mesos's own allocator, which
lists the agents that offer constraints exclude, does not exist: ask
[`explain`](commands.md#explain).
"""

MEANINGS = {
    "target": "the sidecar: `host:port`, `[IPv6]:port` or `unix:/path`",
    "tls_ca": "PEM file: who may vouch for the sidecar. Turns TLS on, where the gRPC of that Mesos"
    " has it",
    "tls_cert": "PEM file of the module's certificate; with `tls_key`",
    "tls_key": "PEM file of its private key; with `tls_cert`",
    "tls_name": "the name that the sidecar's certificate must have; the target's by default",
    "session_token_file": "file with a token that goes with each session, in one line, for a"
    " sidecar whose `access.session_token` asks for it. It is read anew for each session. Without"
    " TLS only to a Unix socket or a loopback address",
    "welcome_deadline_ms": "from the greeting, with connecting, to the answer",
    "snapshot_deadline_ms": "from the snapshot to the first answer",
    "answer_deadline_ms": "silence after which a session ends",
    "fallback_after_ms": "silence after which the module decides itself, while the session lasts."
    " Longer than a cycle of the sidecar, no longer than the master's `--allocation_interval`",
    "fallback": "`false`: no offers without a sidecar",
    "queue_messages_max": "messages that may wait to be sent; when they are more, a new session"
    " begins, with a snapshot",
    "queue_bytes_max": "the same in bytes",
    "inverse_offers_within_ms": "agents whose maintenance begins later get inverse offers only"
    " where the sidecar wants somebody to leave them: see"
    " [Ask frameworks to leave agents](../how-to/preempt.md)",
    "shadow": "`true`: Mesos's own allocator decides, and the module compares: see"
    " [A week in shadow](../how-to/roll-out.md#a-week-in-shadow)",
    "role_sorter": "of Mesos's own allocator in shadow; a master tells no module its flag of this"
    " name",
    "framework_sorter": "the same for frameworks",
    "barren_intervals_max": "intervals in a row in which the sidecar answers, gives nothing that"
    " somebody would take, and does not say that it means to; then the module decides one cycle."
    " 0: never",
    "bad_decisions_max": "bad decisions within ten seconds that open the circuit breaker",
    "breaker_pause_ms": "how long it stays open",
}

METRICS = {
    "connected": "1 while a session is up and has the whole state",
    "session_age_secs": "0 where there is none",
    "attempts, sessions, resyncs": "sessions begun, those that came up, and snapshots after the"
    " first",
    "ends/unreachable": "attempts that nobody answered",
    "ends/lost": "the stream broke, or the sidecar shut down",
    "ends/silent": "no answer within a deadline",
    "ends/malformed": "the sidecar broke the protocol: a defect",
    "ends/refused": "the sidecar ended the session with an error; its log says which",
    "ends/queue_full": "the queue was full: the sidecar is too slow, or hangs",
    "ends/oversized": "an event is larger than the sidecar reads",
    "ends/snapshot": "the module's own state could not be told: a defect",
    "events, batches, cycles, decisions": "sent, asked for and received",
    "queue_messages, queue_bytes": "waiting to be sent",
    "unanswered": "batches that wait for their answer",
    "round_trip_ms/p50, round_trip_ms/p90, round_trip_ms/p99, round_trip_ms/max": "of the latest"
    " batches, from handing over to the answer",
    "outcomes/offered, outcomes/partial": "decisions that became an offer, of all or of a part",
    "outcomes/paused, outcomes/unknown_framework, outcomes/inactive_framework, outcomes/bad_role,"
    " outcomes/suppressed, outcomes/unknown_agent, outcomes/inactive_agent, outcomes/constraint,"
    " outcomes/capability, outcomes/nothing_available, outcomes/below_minimum, outcomes/filtered,"
    " outcomes/limit, outcomes/headroom, outcomes/stale, outcomes/shadow": "decisions that did not,"
    " and why; a few are ordinary, for the world moves on while a decision travels",
    "outcomes/malformed": "decisions that make no sense: a defect",
    "fallback_cycles": "cycles that the module decided",
    "barren_intervals, barren_turns": "intervals in a row in which the sidecar left lie what"
    " somebody would take, and turns that the module took for that reason",
    "breaker_open, breaker_trips": "the circuit breaker now, and how often it opened",
    "agents, frameworks, filters": "in the module's books",
    "kinds": "kinds of resources in this session (by name, reserved role, form of disk, ...); never"
    " more than the sidecar keeps apart: what is beyond that is told as the rest of its name",
    "set_aside": "words of frameworks and agents that were not taken: see"
    " [Security](../explanation/security.md)",
    "misfits": "operations that did not fit the books, which follow the master then: a defect, or"
    " an agent that came back with less; in shadow, also offers that crossed a change of their"
    " agent",
    "shadow/offers": "in shadow: offers of Mesos's own allocator, to a framework of an agent each,"
    " while there was a session",
    "shadow/same, shadow/other, shadow/none": "in shadow: decisions of the sidecar, by whom Mesos's"
    " own allocator gave of the agent to: the same framework, others only, nobody within the"
    " interval",
}


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION.rstrip("\n"), ""]
    found = parameters()
    if set(found) != set(MEANINGS):
        raise ValueError(f"docs/module_reference.py: {sorted(set(found) ^ set(MEANINGS))}")
    lines += ["| parameter | default | range | meaning |", "|---|---|---|---|"]
    for name, meaning in MEANINGS.items():
        default, bounds = found[name]
        lines.append(f"| `{name}` | {f'`{default}`' if default else ''} | {bounds} | {meaning} |")
    told = {name for names in METRICS for name in names.split(", ")}
    if told != metrics():
        raise ValueError(f"docs/module_reference.py: {sorted(told ^ metrics())}")
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

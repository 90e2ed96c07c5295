"""All manners of attack (see `words.Manner`), by subject."""

import math
from collections.abc import Iterable
from itertools import cycle, islice, product

from allocator.core import CONSTRAINT_LABEL, DEMAND_LABEL, GANG_LABEL
from tests.hostile.words import (
    YEAR_S,
    AgentWords,
    Amounts,
    Call,
    Disk,
    Info,
    Join,
    Leave,
    Manner,
    Request,
    Reregister,
    Revive,
    Said,
    Suppress,
    Update,
)

PREFERENCE = "allocator.preference"
KIB = 1024

DEMANDS = (
    "", ";", ":", "cpus", "cpus:", ":1", "cpus:nan", "cpus:inf", "cpus:-1", "cpus:1e308",
    "cpus:1e-308", "cpus:0", "cpus:1;cpus:2", "cpus:9" + "9" * 5_000, "cpus:0." + "0" * 5_000 + "1",
    "cpus:1e-9999999", "cpus:0x10", "cpus:1_000", "cpus:\N{ARABIC-INDIC DIGIT SEVEN}", "cpus:1\x00",
    "cpus:9007199254740992", "cpus:sNaN", "cpus:1e400000000000000000",
)  # fmt: skip


GANGS = (
    "8", "tasks", "tasks:", "tasks:0", "tasks:1.5", "tasks:-8", "tasks:nan", "tasks:1e9",
    "tasks:2;tasks:3", "tasks:2;cpus:1", "cpus:8", "tasks:" + "9" * 5_000, "tasks:100001", "\x00",
)  # fmt: skip


def _labelled(key: str, *values: str) -> tuple[Info, ...]:
    """Make a framework for each value, which has it in the label `key`."""
    return tuple(Info(labels=((key, value),)) for value in values)


def _invented(count: int) -> str:
    return ";".join(f"invented-{number}:1" for number in range(count))


ODD = (
    "zz$(touch${IFS}/tmp/x)", "`id`", "'; DROP TABLE x; --", "\x1b[2J\x1b[31mred", "\x07\x08\x7f",
    "a\nb\r\nERROR all is lost", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
    "{{7*7}}{% for x in y %}", "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe", "nul\x00byte", "\udcff\udcfe",
    "\udced\udca0\udc80", "\N{ZERO WIDTH SPACE}", "e" + "\N{COMBINING ACUTE ACCENT}" * 500,
    "%s%n%x", "../../etc/passwd", "a" * 300, "\N{LINE SEPARATOR}", "--help", "-", " ", "\t",
    'label="x",evil="y"} 1', "*", "?[!a]", "framework 1", "agent 1", "role 1",
)  # fmt: skip
"""Odd texts that Mesos accepts in any string of a framework."""

ODD_ROLES = (
    "$(id)", "`id`", "<b>", '">', "{{7*7}}", "\x1b[31m", "nul\x00", "\udcff", "role:1", "role%201",
    "\N{RIGHT-TO-LEFT OVERRIDE}x", "\N{LINE SEPARATOR}x", "*x", "x*", "[a", "=", ",", ";", ":", "@",
    "a=b", "a,b", "a;b:1", "a|b", "%2F", "%", "#", "...", "~", "\\", "Honest", "HONEST",
)  # fmt: skip
"""Mesos rejects only blanks, ``.``, ``..``, ``*`` in a path, a leading ``-`` and empty parts."""


def _in_all_texts(text: str) -> Info:
    ours = ((key, text) for key in (DEMAND_LABEL, CONSTRAINT_LABEL, GANG_LABEL))
    labels = ((text, text), *ours)
    return Info(name=text, user=text, principal=text, labels=labels)


NAN, INF = math.nan, math.inf
LITTLE: tuple[Amounts, ...] = ({"cpus": 0.01},)
MANY = tuple(f"r{n}" for n in range(200))
BARRED = tuple(f"r{n}" for n in range(500))


def _one() -> list[Info]:
    return [Info()]


def _requests(interval: int) -> Said:
    return [(0, Request(({f"odd-{interval}-{n}": 1.0 for n in range(1_000)},)))]


def _many_requests(interval: int) -> Said:
    needs = tuple({f"odd-{interval}-{each}-{n}": 1.0 for n in range(60)} for each in range(60))
    return [(0, Request(needs))] * 5


def _gangs_of_unlike(interval: int) -> Said:
    sizes = tuple({"cpus": 0.1 + n / 100, "mem": 32.0 + interval % 7} for n in range(16))
    return [(which, Request(sizes * (1 + which % 4))) for which in range(20)]


def _odd_requests(_interval: int) -> Said:
    odd: tuple[Amounts, ...] = (
        {"": 1.0}, {}, {"cpus": NAN}, {"cpus": INF}, {"cpus": -1.0}, {"cpus": 1e308},
        {"cpus": 1e-9}, {"\udcff": 1.0}, {"a\x00\n": 1.0}, {"x" * 9_999: 1.0},
    )  # fmt: skip
    none: tuple[Call, ...] = (Request(()),)
    return [(0, call) for call in (*none, *(Request((each,)) for each in odd))]


def _changing_roles(interval: int) -> Said:
    return [
        (0, Update(Info(roles=tuple(f"r{interval}-{each}-{n}" for n in range(20)))))
        for each in range(50)
    ]


def _changing_labels(interval: int) -> Said:
    return [
        (0, Update(Info(labels=((DEMAND_LABEL, f"cpus:{1 + each}"), (CONSTRAINT_LABEL, text)))))
        for each in range(100)
        for text in (f"a{interval}-{each}=1;!b{each}",)
    ]


def _changing_constraints(_interval: int) -> Said:
    return [(0, Update(Info(roles=BARRED, excludes=way))) for way in (True, False)] * 20


def _coming_and_going(interval: int) -> Said:
    before = [(100 * (interval - 1) + each, Leave()) for each in range(100)] if interval else []
    return [*before, *((0, Join(Info(name=f"guest-{interval}"))) for _ in range(100))]


def _other_users(interval: int) -> Said:
    before = [(100 * (interval - 1) + each, Leave()) for each in range(100)] if interval else []
    names = (f"{interval}-{each % 50}" for each in range(100))
    infos = (Info(user=f"u{each}", principal=f"p{each}") for each in names)
    return [*before, *((0, Join(info)) for info in infos)]


CAPS = {
    "framework": {"cpus": 20, "tasks": 3000},
    "principal": {"mem": 100_000, "agents": 2000},
    "user": {"agents": 1000, "tasks": 2000},
}
"""Caps that bind, on amounts, tasks and agents; in thousandths."""

MOST = float(2**53)
OWED = ("hostile", "owed")
SINGLE_PORTS = tuple((2 * n, 2 * n) for n in range(10_000))
ODD_RANGES = ((2**63 - 3, 2**63 - 1), (0, 2**63), (9, 1), (2**63, 0), (5, 10), (7, 12), (5, 10))


def _changing(interval: int) -> Said:
    return [
        (0, Reregister(AgentWords(attributes=tuple((f"a{interval}-{each}", str(n))
                                                   for n in range(100)))))
        for each in range(20)
    ]  # fmt: skip


def _enormous() -> list[AgentWords]:
    return [
        AgentWords(hostname=f"huge-{n}", resources={"cpus": MOST, "mem": MOST})
        for n in range(1_500)
    ]


def _disks(*sources: str, which: Iterable[str]) -> tuple[Disk, ...]:
    """Disks of several sources in turn, each with its own profile."""
    return tuple(
        Disk(source, text, f"profile-{number}")
        for number, (source, text) in enumerate(zip(cycle(sources), which, strict=False))
    )


CREW: tuple[Manner, ...] = (
    # Labels: those that the sidecar reads, and others.
    Manner(
        "demand-overflow",
        "a demand with an exponent of seven digits, which overflows a decimal",
        lambda: _labelled(DEMAND_LABEL, "cpus:9e999999"),
    ),
    Manner(
        "demand-nonsense",
        f"{len(DEMANDS)} frameworks, each with a malformed or extreme demand",
        lambda: _labelled(DEMAND_LABEL, *DEMANDS),
    ),
    Manner(
        "demand-invented",
        "a demand for 1,000 resources that no agent has",
        lambda: _labelled(DEMAND_LABEL, _invented(1_000)),
    ),
    Manner(
        "demand-invented-by-many",
        "200 frameworks, each with a demand for 35 other resources that no agent has",
        lambda: _labelled(
            DEMAND_LABEL,
            *(";".join(f"odd-{each}-{n}:1" for n in range(35)) for each in range(200)),
        ),
    ),
    Manner(
        "demand-huge",
        "demands for more than any cluster has",
        lambda: _labelled(DEMAND_LABEL, "cpus:9007199254740", "mem:9007199254740;cpus:1"),
    ),
    Manner(
        "constraint-clauses",
        "a constraint of 21,000 clauses (63 KB)",
        lambda: _labelled(CONSTRAINT_LABEL, ";".join(f"!{n % 10}" for n in range(21_000))),
    ),
    Manner(
        "constraint-values",
        "a constraint of one clause with 10,000 values",
        lambda: _labelled(CONSTRAINT_LABEL, "rack=" + "|".join(map(str, range(10_000)))),
    ),
    Manner(
        "constraint-unmet",
        "200 constraints that no agent meets, all different",
        lambda: _labelled(CONSTRAINT_LABEL, *(f"no-{n}={n};host-{n}" for n in range(200))),
    ),
    Manner(
        "constraint-nonsense",
        "constraints that cannot be parsed",
        lambda: _labelled(
            CONSTRAINT_LABEL, ";", "=", "!", "!=", "a=", "=a", "a=|", "a==b", "a=\n", "\x00", "(("
        ),
    ),
    Manner(
        "gangs-of-many",
        "100 frameworks with gangs of 2 to 101 small tasks, many of which never fit",
        lambda: [
            Info(labels=((DEMAND_LABEL, "cpus:0.5;mem:32"), (GANG_LABEL, f"tasks:{2 + n}")))
            for n in range(100)
        ],
        mode="characterised",
    ),
    Manner(
        "gang-nonsense",
        f"{len(GANGS)} frameworks whose sizes of gangs are not numbers, or are odd ones",
        lambda: _labelled(GANG_LABEL, *GANGS),
    ),
    Manner(
        "preference-of-many-hosts",
        "preferences for 10,000 hosts, under a policy that uses them",
        lambda: _labelled(PREFERENCE, ";".join(f"host-{n}:{n}" for n in range(10_000))),
        policy="quincy",
    ),
    Manner(
        "preference-nonsense",
        "preferences that cannot be parsed, under a policy that uses them",
        lambda: _labelled(PREFERENCE, ":", ";", "a", "a:nan", "a:1e999999", "a:-1", "\x00:1"),
        policy="quincy",
    ),
    Manner(
        "labels-large",
        "ten frameworks, each with one label of 256 KiB",
        lambda: [Info(labels=(("key", "x" * (256 * KIB - 3)),)) for _ in range(10)],
    ),
    Manner(
        "labels-many",
        "10,000 labels of a framework",
        lambda: [Info(labels=tuple((f"key-{n}", "x") for n in range(10_000)))],
    ),
    Manner(
        "labels-odd",
        "labels with empty keys, duplicate keys, and ours misspelt",
        lambda: [
            Info(
                labels=(
                    ("", ""), ("", "again"), ("a", "1"), ("a", "2"), ("allocator.", "x"),
                    ("allocator.demand ", "cpus:1"), ("ALLOCATOR.DEMAND", "cpus:1"),
                    ("allocator.nothing", "x"), (DEMAND_LABEL, "cpus:1"), (DEMAND_LABEL, "mem:1"),
                )
            )
        ],
    ),
    # Names: long, empty, odd.
    Manner(
        "names-odd",
        f"{len(ODD)} frameworks whose texts are commands, escapes, markup or not UTF-8",
        lambda: map(_in_all_texts, ODD),
    ),
    Manner(
        "names-long",
        "a name, a user and a principal of 1 MiB each",
        lambda: [Info(name="n" * 2**20, user="u" * 2**20, principal="p" * 2**20)],
    ),
    Manner(
        "names-empty",
        "an empty name, user and principal",
        lambda: [Info(name="", user="", principal="")],
    ),
    Manner(
        "names-alike",
        "1,000 frameworks with the same name",
        lambda: [Info(name="honest") for _ in range(1_000)],
    ),
    Manner(
        "users-many",
        "1,000 frameworks, each of a user and a principal of its own, in a role with caps per"
        " framework, principal and user",
        lambda: [
            Info(user=f"u{n}", principal=f"p{n}", labels=((DEMAND_LABEL, "cpus:0.01;mem:32"),))
            for n in range(1_000)
        ],
        caps=CAPS,
        mode="characterised",
    ),
    Manner(
        "users-changing",
        "100 frameworks that come each interval, of other users and principals, below such caps",
        _one,
        turn=_other_users,
        caps=CAPS,
        mode="characterised",
    ),
    Manner(
        "capabilities",
        "all capabilities, none, and several roles without MULTI_ROLE",
        lambda: [
            Info(capabilities=("REVOCABLE_RESOURCES", "GPU_RESOURCES", "SHARED_RESOURCES",
                               "RESERVATION_REFINEMENT", "REGION_AWARE")),
            Info(old=True),
            Info(old=True, roles=("hostile", "other")),
            Info(roles=()),
        ],
    ),
    # Roles: long, deep, many.
    Manner(
        "roles-many",
        "a framework with 10,000 roles",
        lambda: [Info(roles=tuple(f"r{n}" for n in range(10_000)))],
    ),
    Manner(
        "roles-more-than-fit",
        "7 frameworks with 10,000 roles each, more than a sidecar keeps",
        lambda: [Info(roles=tuple(f"r{each}-{n}" for n in range(10_000))) for each in range(7)],
    ),
    Manner(
        "role-deep",
        "a role with 200,000 path components",
        lambda: [Info(roles=("a" + "/a" * 199_999,))],
    ),
    Manner(
        "roles-deep",
        "200 unrelated roles with 100 path components each",
        lambda: [Info(roles=tuple(f"r{n}" + f"/{n}" * 99 for n in range(200)))],
    ),
    Manner(
        "roles-wide",
        "a tree with 1,000 leaf roles, one framework in each",
        lambda: [Info(roles=(f"w/{a}/{b}/{c}",)) for a, b, c in product(range(10), repeat=3)],
    ),
    Manner(
        "role-long",
        "a role whose only path component has 200,000 letters",
        lambda: [Info(roles=("r" * 200_000,))],
    ),
    Manner(
        "roles-odd",
        f"{len(ODD_ROLES)} roles with odd characters",
        lambda: [Info(roles=ODD_ROLES)],
    ),
    Manner(
        "roles-reserved",
        "a framework with 1,000 roles that makes reservations for each role with an offer",
        lambda: [Info(roles=tuple(f"r{n}" for n in range(1_000)), principal="greedy")],
        reserves=1_000,
    ),
    Manner(
        "roles-of-others",
        "frameworks in the honest framework's role, and below it",
        lambda: [Info(roles=(role,)) for role in ("honest", "honest/below", "honest/a/b")],
    ),
    Manner(
        "roles-suppressed",
        "a framework with 2,000 roles, all suppressed from the beginning",
        lambda: [
            Info(roles=(every := tuple(f"s{n}" for n in range(2_000))), suppressed=every),
        ],
    ),
    # `offer_filters`, and offer constraints.
    Manner(
        "filter-deep",
        "a key with 100,000 path components, not a role of the framework",
        lambda: [Info(minimum={"a" + "/a" * 99_999: LITTLE})],
    ),
    Manner(
        "filter-odd-keys",
        "keys that are not roles: empty, blank, with empty path components",
        lambda: [Info(minimum=dict.fromkeys(("", "/", "a//b", "/a", "a/", "*", " ", "."), LITTLE))],
    ),
    Manner(
        "filter-foreign-keys",
        "10,000 keys that are not roles of the framework",
        lambda: [Info(minimum={f"foreign-{n}": LITTLE for n in range(10_000)})],
    ),
    Manner(
        "filter-of-others",
        "keys that are roles of other frameworks, with unreachable minimums",
        lambda: [Info(minimum={"honest": ({"cpus": 1e9},), "hostile": LITTLE})],
    ),
    Manner(
        "filter-empty-names",
        "minimums of a resource with an empty name",
        lambda: [Info(minimum={"hostile": ({"": 1.0}, {"": 0.0, "cpus": 1.0}, {})})],
    ),
    Manner(
        "filter-odd-names",
        "minimums of resources whose names are odd or not UTF-8",
        lambda: [
            Info(minimum={"hostile": ({"\udcff": 1.0}, {"a\x00\n": 1.0}, {"x" * 9_999: 1.0})})
        ],
    ),
    Manner(
        "filter-alternatives",
        "5,000 alternative minimums",
        lambda: [Info(minimum={"hostile": tuple({"cpus": 1.0 + n} for n in range(5_000))})],
    ),
    Manner(
        "filter-names",
        "a minimum of 10,000 resources that no agent has",
        lambda: [Info(minimum={"hostile": ({f"invented-{n}": 1.0 for n in range(10_000)},)})],
    ),
    Manner(
        "filter-roles",
        "1,000 roles with 20 alternative minimums each",
        lambda: [
            Info(
                roles=(every := tuple(f"r{n}" for n in range(1_000))),
                minimum=dict.fromkeys(every, tuple({"cpus": 1.0 + n} for n in range(20))),
            )
        ],
    ),
    Manner(
        "filter-amounts",
        "minimums whose amounts are not numbers, negative or too large",
        lambda: [
            Info(
                minimum={"hostile": tuple({"cpus": each} for each in (NAN, INF, -1.0, 1e308, 0.0))}
            )
        ],
    ),
    Manner(
        "constraints-everywhere",
        "offer constraints that exclude a framework with 1,000 roles from every agent",
        lambda: [Info(roles=tuple(f"r{n}" for n in range(1_000)), excludes=True)],
    ),
    # Calls, repeated.
    Manner(
        "request-invented", "a REQUEST of 1,000 new resources an interval", _one, turn=_requests
    ),
    Manner(
        "request-many",
        "5 REQUESTs an interval, each of 60 needs with 60 resources",
        _one,
        turn=_many_requests,
    ),
    Manner(
        "request-gangs",
        "20 frameworks that request 16 to 64 tasks of 16 sizes at once, others each interval",
        lambda: [Info() for _ in range(20)],
        turn=_gangs_of_unlike,
    ),
    Manner(
        "request-odd",
        "REQUESTs of nothing, of empty and odd names, of amounts that are not numbers",
        _one,
        turn=_odd_requests,
    ),
    Manner(
        "revive-often",
        "2,000 REVIVEs an interval",
        _one,
        turn=lambda _interval: [(0, Revive())] * 2_000,
    ),
    Manner(
        "revive-role-by-role",
        "200 roles suppressed and revived one by one",
        lambda: [Info(roles=MANY)],
        turn=lambda _interval: [
            (0, call) for role in MANY for call in (Suppress((role,)), Revive((role,)))
        ],
    ),
    Manner(
        "revive-foreign",
        "a framework that revives and suppresses roles it is not in",
        _one,
        turn=lambda _interval: [
            (0, call)
            for role in ("honest", "nobody", "honest/below", "*")
            for call in (Suppress((role,)), Revive((role,)))
        ],
    ),
    Manner(
        "update-roles",
        "50 updates an interval, each with 20 new roles",
        _one,
        turn=_changing_roles,
    ),
    Manner(
        "update-labels",
        "100 updates an interval, each with a new demand and constraint",
        _one,
        turn=_changing_labels,
    ),
    Manner(
        "update-constraints",
        "500 roles excluded from every agent and readmitted, 20 times an interval",
        lambda: [Info(roles=BARRED)],
        turn=_changing_constraints,
    ),
    Manner(
        "coming-and-going",
        "100 frameworks that subscribe each interval and leave in the next",
        turn=_coming_and_going,
    ),
    Manner(
        "decline-odd",
        "offers declined for infinite, NaN, negative, enormous and tiny durations",
        _one,
        refuse_s=(INF, NAN, -1.0, -INF, 1e308, 1e-308, 0.0),
    ),
    Manner(
        "decline-for-a-year",
        "5 frameworks with 200 roles each that decline 300 small agents for a year",
        lambda: [Info(roles=tuple(f"{each}/{role}" for role in MANY)) for each in range(5)],
        agents=lambda: [
            AgentWords(hostname=f"small-{n}", resources={"cpus": 1.0, "mem": 1024.0})
            for n in range(300)
        ],
        refuse_s=(YEAR_S,),
    ),
    Manner(
        "reserve-labelled",
        "400 thousandths of a CPU reserved one by one, each with its own label",
        lambda: [Info(roles=("hostile",), capabilities=("RESERVATION_REFINEMENT",))],
        reserves=400,
        refuse_s=(0.0,),
    ),
    Manner(
        "reserve-volumes",
        "2,000 persistent volumes made from offers, each with its own id",
        lambda: [Info(capabilities=("RESERVATION_REFINEMENT",))],
        volumes=2_000,
        refuse_s=(0.0,),
    ),
    # Agents.
    Manner(
        "agents-enormous",
        "1,500 agents with 2^53 of a resource each, whose sum overflows an int64",
        agents=_enormous,
    ),
    Manner(
        "agents-enormous-and-owed",
        "the same agents, and two tenants that suppress roles with a guarantee",
        lambda: [Info(roles=(role,), suppressed=(role,)) for role in OWED],
        agents=_enormous,
        guarantees={role: {"cpus": 1.0, "mem": 512.0} for role in OWED},
    ),
    Manner(
        "agents-tiny",
        "100 agents with almost no resources",
        agents=lambda: [
            AgentWords(hostname=f"tiny-{n}", resources={"cpus": 0.001}) for n in range(100)
        ],
    ),
    Manner(
        "agent-invented-kinds",
        "an agent with 2,000 resources of unique names",
        agents=lambda: [AgentWords(resources={f"invented-{n}": 1.0 for n in range(2_000)})],
    ),
    Manner(
        "agent-reservations",
        "an agent that reserves CPUs to 2,000 roles",
        agents=lambda: [AgentWords(reserved={f"reserved-{n}": 1.0 for n in range(2_000)})],
    ),
    Manner(
        "agents-invent-kinds",
        "6 agents with 2,000 resources of unique names each",
        agents=lambda: [
            AgentWords(resources={f"invented-{each}-{n}": 1.0 for n in range(2_000)})
            for each in range(6)
        ],
    ),
    Manner(
        "agents-reserve-to-many",
        "6 agents that reserve CPUs to 2,000 roles each, all different",
        agents=lambda: [
            AgentWords(reserved={f"reserved-{each}-{n}": 1.0 for n in range(2_000)})
            for each in range(6)
        ],
    ),
    Manner(
        "agent-odd-kinds",
        "an agent with resources with odd names",
        agents=lambda: [AgentWords(resources=dict.fromkeys(ODD, 1.0) | {"cpus": 1.0})],
    ),
    Manner(
        "agent-ranges",
        "an agent with 10,000 single ports, one whose ranges are reversed, overlap or end at 2^63,"
        " and 20 frameworks that ask for a port with each tenth of a CPU",
        lambda: [Info(labels=((DEMAND_LABEL, "cpus:0.1;ports:1"),)) for _ in range(20)],
        agents=lambda: [
            AgentWords(ranges={"ports": SINGLE_PORTS}),
            AgentWords(ranges={"ports": ODD_RANGES, "odd": ODD_RANGES, "none": ((9, 1),)}),
        ],
        mode="characterised",
    ),
    Manner(
        "agent-sets",
        f"an agent with a set of 10,000 items, and one with {len(ODD)} sets of odd items",
        agents=lambda: [
            AgentWords(sets={"zones": tuple(f"zone-{n}" for n in range(10_000))}),
            AgentWords(sets=dict.fromkeys(ODD, (*ODD, *ODD))),
        ],
    ),
    Manner(
        "agent-disks",
        "agents with 500 disks each: directories, and mounts, blocks and raw disks with odd roots"
        " and ids",
        agents=lambda: [
            AgentWords(disks=_disks("PATH", which=(f"disks/{n}" for n in range(500)))),
            AgentWords(
                disks=_disks(
                    "MOUNT", "BLOCK", "RAW",
                    which=(f"{text}{n}" for n, text in enumerate(islice(cycle(ODD), 500))),
                )
            ),
        ],
    ),
    Manner(
        "agent-attributes",
        "an agent with 5,000 attributes, some with empty or duplicate names, one of 1 MiB",
        agents=lambda: [
            AgentWords(
                attributes=(
                    *((f"a{n}", "x") for n in range(5_000)), ("", "x"), ("", ""), ("a1", "again"),
                    ("long", "x" * 2**20),
                )
            )
        ],
    ),
    Manner(
        "agent-odd-texts",
        "agents whose host names, attributes, regions and zones are odd",
        agents=lambda: [
            AgentWords(hostname=text, region=text, zone=text, attributes=((text, text),))
            for text in ("", *ODD)
        ],
    ),
    Manner(
        "agents-of-one-host",
        "300 agents with the same host name",
        agents=lambda: [AgentWords(hostname="host-0") for _ in range(300)],
    ),
    Manner(
        "agent-reregisters",
        "an agent that reregisters 20 times an interval, each time with new attributes",
        agents=lambda: [AgentWords()],
        turn=_changing,
    ),
)  # fmt: skip
"""All manners."""

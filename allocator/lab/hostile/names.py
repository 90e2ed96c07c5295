"""Manners of names and roles: long, empty, odd, deep, many."""

from itertools import product

from allocator.lab.hostile.words import Info, Manner

ODD = (
    "zz$(touch${IFS}/tmp/x)", "`id`", "'; DROP TABLE x; --", "\x1b[2J\x1b[31mred", "\x07\x08\x7f",
    "a\nb\r\nERROR all is lost", "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>',
    "{{7*7}}{% for x in y %}", "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe", "nul\x00byte", "\udcff\udcfe",
    "\udced\udca0\udc80", "\N{ZERO WIDTH SPACE}", "e" + "\N{COMBINING ACUTE ACCENT}" * 500,
    "%s%n%x", "../../etc/passwd", "a" * 300, "\N{LINE SEPARATOR}", "--help", "-", " ", "\t",
    'label="x",evil="y"} 1', "*", "?[!a]", "framework 1", "agent 1", "role 1",
)  # fmt: skip
"""Each of them may stand in any text of a framework's."""

ODD_ROLES = (
    "$(id)", "`id`", "<b>", '">', "{{7*7}}", "\x1b[31m", "nul\x00", "\udcff", "role:1", "role%201",
    "\N{RIGHT-TO-LEFT OVERRIDE}x", "\N{LINE SEPARATOR}x", "*x", "x*", "[a", "=", ",", ";", ":", "@",
    "a=b", "a,b", "a;b:1", "a|b", "%2F", "%", "#", "...", "~", "\\", "Honest", "HONEST",
)  # fmt: skip
"""Mesos refuses only blanks, ``.``, ``..``, ``*`` in a path, a leading ``-`` and empty parts."""


def _in_all_texts(text: str) -> Info:
    labels = ((text, text), ("allocator.demand", text), ("allocator.constraint", text))
    return Info(name=text, user=text, principal=text, labels=labels)


NAMES = (
    Manner(
        "names-odd",
        f"{len(ODD)} frameworks whose texts are commands, escapes, markup, no UTF-8",
        lambda: map(_in_all_texts, ODD),
    ),
    Manner(
        "names-long",
        "name, user and principal of 1 MiB each",
        lambda: [Info(name="n" * 2**20, user="u" * 2**20, principal="p" * 2**20)],
    ),
    Manner(
        "names-empty",
        "name, user and principal are empty",
        lambda: [Info(name="", user="", principal="")],
    ),
    Manner(
        "names-alike",
        "1,000 frameworks of one name",
        lambda: [Info(name="honest") for _ in range(1_000)],
    ),
    Manner(
        "capabilities",
        "all capabilities, none, and those of an old framework with several roles",
        lambda: [
            Info(capabilities=("REVOCABLE_RESOURCES", "GPU_RESOURCES", "SHARED_RESOURCES",
                               "RESERVATION_REFINEMENT", "REGION_AWARE")),
            Info(old=True),
            Info(old=True, roles=("hostile", "other")),
            Info(roles=()),
        ],
    ),
)  # fmt: skip
"""Of names."""

ROLES = (
    Manner(
        "roles-many",
        "a framework of 10,000 roles",
        lambda: [Info(roles=tuple(f"r{n}" for n in range(10_000)))],
    ),
    Manner(
        "roles-more-than-fit",
        "7 frameworks of 10,000 roles each, together more than a sidecar keeps",
        lambda: [Info(roles=tuple(f"r{each}-{n}" for n in range(10_000))) for each in range(7)],
    ),
    Manner(
        "role-deep",
        "a role of 200,000 parts",
        lambda: [Info(roles=("a" + "/a" * 199_999,))],
    ),
    Manner(
        "roles-deep",
        "200 roles of 100 parts each, none below another",
        lambda: [Info(roles=tuple(f"r{n}" + f"/{n}" * 99 for n in range(200)))],
    ),
    Manner(
        "roles-wide",
        "a tree of 1,000 roles, of which each framework has its own leaf",
        lambda: [Info(roles=(f"w/{a}/{b}/{c}",)) for a, b, c in product(range(10), repeat=3)],
    ),
    Manner(
        "role-long",
        "a role of one part with 200,000 letters",
        lambda: [Info(roles=("r" * 200_000,))],
    ),
    Manner(
        "roles-odd",
        f"{len(ODD_ROLES)} roles with odd letters",
        lambda: [Info(roles=ODD_ROLES)],
    ),
    Manner(
        "roles-reserved",
        "a framework of 1,000 roles that reserves for each in which it is offered anything",
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
        "a framework of 2,000 roles, all of them suppressed from the beginning",
        lambda: [
            Info(roles=(every := tuple(f"s{n}" for n in range(2_000))), suppressed=every),
        ],
    ),
)  # fmt: skip
"""Of roles."""

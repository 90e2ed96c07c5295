"""Manners of `offer_filters` and of offer constraints."""

import math

from allocator.lab.hostile.words import Amounts, Info, Manner

NAN, INF = math.nan, math.inf
LITTLE: tuple[Amounts, ...] = ({"cpus": 0.01},)

FILTERS = (
    Manner(
        "filter-deep",
        "a key of 100,000 parts, which is no role of the framework",
        lambda: [Info(minimum={"a" + "/a" * 99_999: LITTLE})],
    ),
    Manner(
        "filter-odd-keys",
        "keys that are no roles: empty, with empty parts, blank",
        lambda: [Info(minimum=dict.fromkeys(("", "/", "a//b", "/a", "a/", "*", " ", "."), LITTLE))],
    ),
    Manner(
        "filter-foreign-keys",
        "10,000 keys that are no roles of the framework",
        lambda: [Info(minimum={f"foreign-{n}": LITTLE for n in range(10_000)})],
    ),
    Manner(
        "filter-of-others",
        "keys that are roles of others, with minimums that nothing reaches",
        lambda: [Info(minimum={"honest": ({"cpus": 1e9},), "hostile": LITTLE})],
    ),
    Manner(
        "filter-empty-names",
        "minimums of a resource whose name is empty",
        lambda: [Info(minimum={"hostile": ({"": 1.0}, {"": 0.0, "cpus": 1.0}, {})})],
    ),
    Manner(
        "filter-odd-names",
        "minimums of resources whose names are no UTF-8, or odd",
        lambda: [
            Info(minimum={"hostile": ({"\udcff": 1.0}, {"a\x00\n": 1.0}, {"x" * 9_999: 1.0})})
        ],
    ),
    Manner(
        "filter-alternatives",
        "5,000 minimums of which any will do",
        lambda: [Info(minimum={"hostile": tuple({"cpus": 1.0 + n} for n in range(5_000))})],
    ),
    Manner(
        "filter-names",
        "a minimum of 10,000 resources that nobody has",
        lambda: [Info(minimum={"hostile": ({f"invented-{n}": 1.0 for n in range(10_000)},)})],
    ),
    Manner(
        "filter-roles",
        "1,000 roles with a minimum each, of 20 alternatives",
        lambda: [
            Info(
                roles=(every := tuple(f"r{n}" for n in range(1_000))),
                minimum=dict.fromkeys(every, tuple({"cpus": 1.0 + n} for n in range(20))),
            )
        ],
    ),
    Manner(
        "filter-amounts",
        "minimums of amounts that are none, or too much",
        lambda: [
            Info(
                minimum={"hostile": tuple({"cpus": each} for each in (NAN, INF, -1.0, 1e308, 0.0))}
            )
        ],
    ),
    Manner(
        "constraints-everywhere",
        "offer constraints that bar a framework of 1,000 roles from every agent",
        lambda: [Info(roles=tuple(f"r{n}" for n in range(1_000)), excludes=True)],
    ),
)
"""Of `offer_filters` and offer constraints."""

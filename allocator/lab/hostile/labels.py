"""Manners of labels: what the sidecar reads of a framework, and what it does not."""

from allocator.core import CONSTRAINT_LABEL, DEMAND_LABEL
from allocator.lab.hostile.words import Info, Manner

PREFERENCE = "allocator.preference"
KIB = 1024

DEMANDS = (
    "", ";", ":", "cpus", "cpus:", ":1", "cpus:nan", "cpus:inf", "cpus:-1", "cpus:1e308",
    "cpus:1e-308", "cpus:0", "cpus:1;cpus:2", "cpus:9" + "9" * 5_000, "cpus:0." + "0" * 5_000 + "1",
    "cpus:1e-9999999", "cpus:0x10", "cpus:1_000", "cpus:\N{ARABIC-INDIC DIGIT SEVEN}", "cpus:1\x00",
    "cpus:9007199254740992", "cpus:sNaN", "cpus:1e400000000000000000",
)  # fmt: skip


def _labelled(key: str, *values: str) -> tuple[Info, ...]:
    """A framework for each value."""
    return tuple(Info(labels=((key, value),)) for value in values)


def _invented(count: int) -> str:
    return ";".join(f"invented-{number}:1" for number in range(count))


LABELS = (
    Manner(
        "demand-overflow",
        "a demand with an exponent of seven digits, which overflows a decimal",
        lambda: _labelled(DEMAND_LABEL, "cpus:9e999999"),
    ),
    Manner(
        "demand-nonsense",
        f"{len(DEMANDS)} frameworks whose demands are no numbers, or odd ones",
        lambda: _labelled(DEMAND_LABEL, *DEMANDS),
    ),
    Manner(
        "demand-invented",
        "a demand for 1,000 resources that nobody has",
        lambda: _labelled(DEMAND_LABEL, _invented(1_000)),
    ),
    Manner(
        "demand-invented-by-many",
        "200 frameworks, each with a demand for 35 other resources that nobody has",
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
        "constraint-nobody",
        "200 constraints that no agent meets, each its own",
        lambda: _labelled(CONSTRAINT_LABEL, *(f"no-{n}={n};host-{n}" for n in range(200))),
    ),
    Manner(
        "constraint-nonsense",
        "constraints that cannot be read",
        lambda: _labelled(
            CONSTRAINT_LABEL, ";", "=", "!", "!=", "a=", "=a", "a=|", "a==b", "a=\n", "\x00", "(("
        ),
    ),
    Manner(
        "preference-of-many-hosts",
        "preferences for 10,000 hosts, under a policy that plans by them",
        lambda: _labelled(PREFERENCE, ";".join(f"host-{n}:{n}" for n in range(10_000))),
        policy="quincy",
    ),
    Manner(
        "preference-nonsense",
        "preferences that cannot be read, under a policy that plans by them",
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
        "labels with empty keys, keys given twice, and ours in other letters",
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
)  # fmt: skip
"""Of labels."""

"""Manners of calls: what is said again and again."""

import math

from allocator.core import CONSTRAINT_LABEL, DEMAND_LABEL
from allocator.lab.hostile.words import (
    Amounts,
    Call,
    Info,
    Join,
    Leave,
    Manner,
    Request,
    Revive,
    Said,
    Suppress,
    Update,
)

NAN, INF = math.nan, math.inf
MANY = tuple(f"r{n}" for n in range(200))


def _one() -> list[Info]:
    return [Info()]


def _requests(interval: int) -> Said:
    return [(0, Request(({f"odd-{interval}-{n}": 1.0 for n in range(1_000)},)))]


def _many_requests(interval: int) -> Said:
    needs = tuple({f"odd-{interval}-{each}-{n}": 1.0 for n in range(60)} for each in range(60))
    return [(0, Request(needs))] * 5


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


def _coming_and_going(interval: int) -> Said:
    before = [(100 * (interval - 1) + each, Leave()) for each in range(100)] if interval else []
    return [*before, *((0, Join(Info(name=f"guest-{interval}"))) for _ in range(100))]


CALLS = (
    Manner(
        "request-invented", "each time a REQUEST of 1,000 other resources", _one, turn=_requests
    ),
    Manner(
        "request-many",
        "five REQUESTs an interval, of 60 needs with 60 resources each",
        _one,
        turn=_many_requests,
    ),
    Manner(
        "request-odd",
        "REQUESTs of nothing, of empty and odd names, of no numbers",
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
        "roles revived and suppressed that it is not in",
        _one,
        turn=lambda _interval: [
            (0, call)
            for role in ("honest", "nobody", "honest/below", "*")
            for call in (Suppress((role,)), Revive((role,)))
        ],
    ),
    Manner(
        "update-roles",
        "50 updates an interval, each with 20 other roles",
        _one,
        turn=_changing_roles,
    ),
    Manner(
        "update-labels",
        "100 updates an interval, each with another demand and constraint",
        _one,
        turn=_changing_labels,
    ),
    Manner(
        "coming-and-going",
        "100 frameworks come each interval, and leave in the next",
        turn=_coming_and_going,
    ),
    Manner(
        "decline-odd",
        "offers declined for inf, nan, negative and enormous times, and for next to none",
        _one,
        refuse_s=(INF, NAN, -1.0, -INF, 1e308, 1e-308, 0.0),
    ),
    Manner(
        "reserve-labelled",
        "reservations made one by one, each with a label of its own",
        lambda: [Info(roles=("hostile",), capabilities=("RESERVATION_REFINEMENT",))],
        reserves=400,
        refuse_s=(0.0,),
    ),
)
"""Of calls."""

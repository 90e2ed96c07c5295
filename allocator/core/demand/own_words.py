"""Parses what frameworks state about their needs, once per framework and within bounds.

This input is untrusted. Parts that are malformed or exceed a bound are *set aside*: ignored and
reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from allocator.core.bounds import (
    ALTERNATIVES_MAX,
    CLAUSE_VALUES_MAX,
    CLAUSES_MAX,
    DEMAND_LENGTH_MAX,
    DEMAND_NAMES_MAX,
    GANG_LENGTH_MAX,
    GANG_TASKS_MAX,
    REQUESTS_MAX,
    UNLIKE_MAX,
    quoted,
)
from allocator.core.constraints import Clause, parse_constraint
from allocator.core.events import (
    TOO_LONG,
    TOO_MANY,
    UNKNOWN,
    UNREADABLE,
    FrameworkInfo,
    Request,
    SetAside,
)
from allocator.core.resources import MILLI, parse_quantities

DEMAND_LABEL = "allocator.demand"
CONSTRAINT_LABEL = "allocator.constraint"
GANG_LABEL = "allocator.gang"

_NAMED = 3
"""Maximum number of names in a report."""

Minimum = tuple[Mapping[str, int], ...]


class WordsError(ValueError):
    """A part of a framework's input is not accepted; `reason`: one of `REASONS`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Tasks(NamedTuple):
    """Equal tasks of a REQUEST call.

    `amounts`: need of each, by name.
    `agent`: id of the only agent on which they may run; empty: any.
    """

    number: int
    amounts: Mapping[str, int]
    agent: str = ""


Requested = tuple[Tasks, ...]
"""What a REQUEST call states, in its order; empty: nothing.

Several tasks, or one for a certain agent, are a gang.
"""


@dataclass(frozen=True, slots=True)
class OwnWords:
    """The needs that a framework states in its information.

    `demand`: the demand of its label; None: it states none.
    `minimum`: alternatives of amounts by name, by handle of the role.
    `gang`: number of tasks that must start together; 0: not stated.
    `aside`: the parts that were set aside.
    """

    demand: Mapping[str, int] | None
    clauses: tuple[Clause, ...]
    minimum: Mapping[int, Minimum]
    aside: tuple[SetAside, ...]
    gang: int = 0


def read_words(info: FrameworkInfo) -> OwnWords:
    """Read a framework's labels and minimums; never fails."""
    if not (info.labels or info.minimum):
        return OwnWords(None, (), {}, ())
    demand: Mapping[str, int] | None = None
    clauses: tuple[Clause, ...] = ()
    aside: list[SetAside] = []
    try:
        demand = demand_of_label(info.labels.get(DEMAND_LABEL, ""))
    except WordsError as error:
        text = f"{DEMAND_LABEL}: {error}; the demand counts as unknown"
        aside.append(SetAside("labels", error.reason, text))
    try:
        clauses = clauses_of_label(info.labels.get(CONSTRAINT_LABEL, ""))
    except WordsError as error:
        text = f"{CONSTRAINT_LABEL}: {error}; any agent is taken"
        aside.append(SetAside("labels", error.reason, text))
    gang = 0
    try:
        gang = gang_of_label(info.labels.get(GANG_LABEL, ""))
    except WordsError as error:
        text = f"{GANG_LABEL}: {error}; each task is served alone"
        aside.append(SetAside("labels", error.reason, text))
    minimum: dict[int, Minimum] = {}
    for role, any_of in info.minimum.items():
        taken, wrong = _read_minimum(any_of)
        aside += wrong
        # If all alternatives were set aside, the framework has no minimum of its own. A framework
        # that states an empty list accepts any offer.
        if taken or not any_of:
            minimum[role] = taken
    return OwnWords(demand, clauses, minimum, tuple(aside), gang)


def read_request(event: Request) -> tuple[Requested, tuple[SetAside, ...]]:
    """Read a REQUEST call; return its tasks, without empty ones, and the parts that were set aside.

    If anything was set aside, the tasks are no gang, and the first one is the demand.
    """
    aside: list[SetAside] = []
    if (count := len(event.requests)) > REQUESTS_MAX:
        text = f"has {count} requests, over {REQUESTS_MAX}; each task is served alone"
        aside.append(SetAside("request", TOO_MANY, text))
    found: dict[tuple[str, frozenset[tuple[str, int]]], Tasks] = {}
    agents = event.agents or ("",) * count
    for stated, agent in zip(event.requests[:REQUESTS_MAX], agents, strict=False):
        if len(stated) > DEMAND_NAMES_MAX:
            text = f"names {len(stated)} resources, over {DEMAND_NAMES_MAX}; it is ignored"
            aside.append(SetAside("request", TOO_MANY, text))
        elif any(stated.values()):
            key = agent, frozenset((name, amount) for name, amount in stated.items() if amount)
            equal = found.get(key, Tasks(0, stated, agent))
            found[key] = equal._replace(number=equal.number + 1)
    if len(found) > UNLIKE_MAX:
        text = f"has {len(found)} different requests, over {UNLIKE_MAX}; each task is served alone"
        aside.append(SetAside("request", TOO_MANY, text))
    tasks = tuple(found.values())
    if aside or event.set_aside:
        tasks = tuple(Tasks(1, first.amounts) for first in tasks[:1])
    return tasks, tuple(aside)


def is_gang(request: Requested) -> bool:
    return len(request) > 1 or any(each.number > 1 or each.agent for each in request)


def demand_of_label(label: str) -> dict[str, int] | None:
    """Read a demand label; None if it names no amounts. Raises WordsError."""
    if len(label) > DEMAND_LENGTH_MAX:
        message = f"has {len(label)} characters, over {DEMAND_LENGTH_MAX}"
        raise WordsError(TOO_LONG, message)
    try:
        stated = parse_quantities(label)
    except ValueError as error:
        raise WordsError(UNREADABLE, str(error)) from None
    _check_names(stated)
    return {name: amount for name, amount in stated.items() if amount} or None


def clauses_of_label(label: str) -> tuple[Clause, ...]:
    """Read a label with a constraint on agents. Raises WordsError."""
    # Count separators first, so that overlong expressions are not parsed.
    if (clauses := label.count(";") + 1) > CLAUSES_MAX:
        raise WordsError(TOO_MANY, f"has {clauses} clauses, over {CLAUSES_MAX}")
    if (values := label.count("|") + clauses) > CLAUSE_VALUES_MAX:
        raise WordsError(TOO_MANY, f"has {values} values, over {CLAUSE_VALUES_MAX}")
    try:
        return parse_constraint(label)
    except ValueError as error:
        raise WordsError(UNREADABLE, str(error)) from None


def gang_of_label(label: str) -> int:
    """Read the size of a gang; 0 if the label is empty. Raises WordsError."""
    if not label:
        return 0
    if len(label) > GANG_LENGTH_MAX:
        raise WordsError(TOO_LONG, f"has {len(label)} characters, over {GANG_LENGTH_MAX}")
    try:
        stated = parse_quantities(label)
    except ValueError as error:
        raise WordsError(UNREADABLE, str(error)) from None
    tasks, part = divmod(stated.get("tasks", 0), MILLI)
    if part or not tasks or len(stated) > 1:
        message = f"{quoted(label)} is not of the form tasks:8, a whole number"
        raise WordsError(UNREADABLE, message)
    if tasks > GANG_TASKS_MAX:
        raise WordsError(TOO_MANY, f"has {tasks} tasks, over {GANG_TASKS_MAX}")
    return tasks


def _check_names(stated: Mapping[str, int]) -> None:
    if len(stated) > DEMAND_NAMES_MAX:
        raise WordsError(TOO_MANY, f"names {len(stated)} resources, over {DEMAND_NAMES_MAX}")


def _read_minimum(any_of: Minimum) -> tuple[Minimum, list[SetAside]]:
    aside: list[SetAside] = []
    if len(any_of) > ALTERNATIVES_MAX:
        text = f"has {len(any_of)} alternatives; the first {ALTERNATIVES_MAX} are taken"
        aside.append(SetAside("offer_filters", TOO_MANY, text))
    few = any_of[:ALTERNATIVES_MAX]
    short = tuple(row for row in few if len(row) <= DEMAND_NAMES_MAX)
    if len(short) < len(few):
        text = f"an alternative names more than {DEMAND_NAMES_MAX} resources; it is left out"
        aside.append(SetAside("offer_filters", TOO_MANY, text))
    return short, aside


def fits_nowhere(field: str, unknown: frozenset[str]) -> SetAside:
    """Report that no agent has some of the requested resources."""
    first = ", ".join(map(quoted, sorted(unknown)[:_NAMED]))
    more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    return SetAside(field, UNKNOWN, f"no agent has {first}{more}: it fits nowhere")

"""Requests of frameworks and agents to a Mesos master, in Mesos's own terms.

Amounts are plain numbers as in Mesos: CPUs and MiB. Bytes that are not UTF-8 are encoded in texts
by Python's ``surrogateescape``.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from allocator.core import AMOUNT_MAX

Amounts: TypeAlias = Mapping[str, float]
"""Amounts by resource name."""

Spans: TypeAlias = Sequence[tuple[int, int]]
"""First and last numbers of ranges, in the order sent."""

REFUSE_USUAL_S = 5.0
YEAR_S = 365.0 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Info:
    """A `FrameworkInfo`.

    suppressed: roles that are suppressed from the beginning.
    capabilities: in addition to MULTI_ROLE, which every framework has unless it is `old`.
    labels: a list, as in Mesos: keys may repeat.
    minimum: its `offer_filters` by role: alternative amounts, one of which an offer must reach.
    excludes: whether its offer constraints exclude all of its roles from every agent.
    old: subscribe without MULTI_ROLE, and so only in the first of `roles`.
    """

    name: str = "hostile"
    user: str = "root"
    principal: str = ""
    roles: tuple[str, ...] = ("hostile",)
    suppressed: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    minimum: Mapping[str, tuple[Amounts, ...]] = field(default_factory=dict)
    excludes: bool = False
    old: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk of an agent in addition to its root disk: 1 MiB, so that many fit on any machine.

    source: ``PATH``, ``MOUNT``, ``BLOCK`` or ``RAW``.
    which: root directory of a PATH or MOUNT disk, id of a BLOCK or RAW disk.
    """

    source: str
    which: str
    profile: str = ""


@dataclass(frozen=True, slots=True)
class AgentWords:
    """The registration of an agent.

    reserved: CPUs by the role that the agent's flags reserve them to.
    ranges, sets: resources of these types by name.
    """

    hostname: str = "hostile"
    region: str = ""
    zone: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    resources: Amounts = field(default_factory=lambda: {"cpus": 4.0, "mem": 4096.0})
    reserved: Amounts = field(default_factory=dict)
    ranges: Mapping[str, Spans] = field(default_factory=dict)
    sets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    disks: tuple[Disk, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Another framework subscribes (SUBSCRIBE); it gets the next number."""

    info: Info


@dataclass(frozen=True, slots=True)
class Leave:
    """A framework is torn down (TEARDOWN)."""


@dataclass(frozen=True, slots=True)
class Update:
    """A framework changes its description (UPDATE_FRAMEWORK)."""

    info: Info


@dataclass(frozen=True, slots=True)
class Request:
    """A framework declares its needs (REQUEST)."""

    needs: tuple[Amounts, ...]


@dataclass(frozen=True, slots=True)
class Suppress:
    """Stop offers in these roles; in all roles if none is named (SUPPRESS)."""

    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Revive:
    """Resume offers in these roles; in all roles if none is named (REVIVE)."""

    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reregister:
    """An agent reregisters with a new description."""

    words: AgentWords


Call: TypeAlias = Join | Leave | Update | Request | Suppress | Revive | Reregister

Said: TypeAlias = Sequence[tuple[int, Call]]
"""Calls, each with the number of the caller among the attack's frameworks or agents."""


def _none() -> tuple[()]:
    return ()


def _nothing(_interval: int) -> Said:
    return ()


@dataclass(frozen=True, slots=True)
class Manner:
    """One manner of attack.

    does: a description of one line.
    frameworks, agents: make those that register at the beginning.
    turn: gives the calls of an allocation interval, by its number from 0.
    refuse_s: durations of the filters on declined offers, used in turn.
    reserves: number of thousandths of a CPU to reserve one by one, each with a label of its own,
        before the rest of an offer is declined.
    volumes: number of persistent volumes to make in the same way, each of a thousandth of a MiB.
    guarantees: quota guarantees by role, set before frameworks and agents register.
    caps: thousandths by kind of holder: caps in the role `hostile` that operators have set; a
        master's test does not set them.
    policy, mode: settings of the sidecar under which the attack has an effect.
    """

    name: str
    does: str
    frameworks: Callable[[], Iterable[Info]] = _none
    agents: Callable[[], Iterable[AgentWords]] = _none
    turn: Callable[[int], Said] = _nothing
    refuse_s: tuple[float, ...] = (REFUSE_USUAL_S,)
    reserves: int = 0
    volumes: int = 0
    guarantees: Mapping[str, Amounts] = field(default_factory=dict)
    caps: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    policy: str = "drf"
    mode: str = "oblivious"


def clean(text: str) -> str:
    """Replace bytes that are not UTF-8, as a module does."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def thousandths(amount: float, most: int = AMOUNT_MAX) -> int:
    """An amount for the protocol, cut to its range; 0 if it is negative or not a number."""
    if math.isnan(amount) or amount <= 0:
        return 0
    return most if amount * 1000 >= most else round(amount * 1000)


def refusal_ms(seconds: float) -> int:
    """Convert `Filters.refuse_seconds` as a module does."""
    if math.isnan(seconds) or seconds < 0:
        seconds = REFUSE_USUAL_S
    return math.ceil(min(seconds, YEAR_S) * 1000)

"""What frameworks and agents may say to a Mesos master, in Mesos's own terms.

Amounts are plain numbers here, as in Mesos: whole CPUs and MiB. A byte that is no UTF-8 stands in a
text as Python's ``surrogateescape`` has it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from allocator.core import AMOUNT_MAX

Amounts: TypeAlias = Mapping[str, float]
"""By resource name."""

Spans: TypeAlias = Sequence[tuple[int, int]]
"""First and last numbers of ranges, in any order, as they are said."""

REFUSE_USUAL_S = 5.0
YEAR_S = 365.0 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Info:
    """A `FrameworkInfo`.

    suppressed: those of the roles in which it begins suppressed.
    capabilities: beside MULTI_ROLE, which all have that are not `old`.
    labels: a list in Mesos: a key may come twice.
    minimum: its `offer_filters` by role: the amounts that an offer must reach, any one of them.
    excludes: its offer constraints bar all of its roles from every agent.
    old: without MULTI_ROLE, so with the first of the roles alone.
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
    """A disk of an agent's beside its root: 1 MiB of it, so that many fit anywhere.

    source: ``PATH``, ``MOUNT``, ``BLOCK`` or ``RAW``.
    which: the root of the first two, the id of the others.
    """

    source: str
    which: str
    profile: str = ""


@dataclass(frozen=True, slots=True)
class AgentWords:
    """What an agent registers with.

    reserved: CPUs by the role that the agent's flags reserve them to.
    ranges, sets: resources of these types by name; a set has its items.
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
    """Another framework subscribes (SUBSCRIBE); it has the next number."""

    info: Info


@dataclass(frozen=True, slots=True)
class Leave:
    """The framework is torn down (TEARDOWN)."""


@dataclass(frozen=True, slots=True)
class Update:
    """The framework is something else from now on (UPDATE_FRAMEWORK)."""

    info: Info


@dataclass(frozen=True, slots=True)
class Request:
    """What it needs (REQUEST)."""

    needs: tuple[Amounts, ...]


@dataclass(frozen=True, slots=True)
class Suppress:
    """No offers in these roles; none named: in all (SUPPRESS)."""

    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Revive:
    """Offers again in these roles; none named: in all (REVIVE)."""

    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reregister:
    """An agent comes back as something else; its number is that among the manner's."""

    words: AgentWords


Call: TypeAlias = Join | Leave | Update | Request | Suppress | Revive | Reregister

Said: TypeAlias = Sequence[tuple[int, Call]]
"""Who says what: the number of a framework of the manner, or of an agent of it."""


def _nobody() -> tuple[()]:
    return ()


def _nothing(_interval: int) -> Said:
    return ()


@dataclass(frozen=True, slots=True)
class Manner:
    """One way to be hostile.

    name, does: what it is called, and one line of what it does.
    frameworks, agents: those that register at the beginning.
    turn: what is said in the interval of this number, from 0.
    refuse_s: the filters that offers are declined with, one after the other.
    reserves: so many CPUs of the first offers are reserved one thousandth at a time, each with
        another label, before the rest is declined; 0: offers are declined.
    volumes: so many persistent volumes are made of the first offers in the same way, of a
        thousandth of a MiB of disk each.
    guarantees: by role, what an operator has guaranteed to it before they come.
    policy, mode: of those that the sidecar has, such as read what is said.
    """

    name: str
    does: str
    frameworks: Callable[[], Iterable[Info]] = _nobody
    agents: Callable[[], Iterable[AgentWords]] = _nobody
    turn: Callable[[int], Said] = _nothing
    refuse_s: tuple[float, ...] = (REFUSE_USUAL_S,)
    reserves: int = 0
    volumes: int = 0
    guarantees: Mapping[str, Amounts] = field(default_factory=dict)
    policy: str = "drf"
    mode: str = "oblivious"


def clean(text: str) -> str:
    """What a text is once each byte that is no UTF-8 was replaced, as a module does."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def thousandths(amount: float, most: int = AMOUNT_MAX) -> int:
    """An amount as the protocol has it, cut to what it takes; nothing where it makes no sense."""
    if math.isnan(amount) or amount <= 0:
        return 0
    return most if amount * 1000 >= most else round(amount * 1000)


def refusal_ms(seconds: float) -> int:
    """What a module makes of `Filters.refuse_seconds`.

    Examples
    --------
    >>> refusal_ms(float("nan")), refusal_ms(-1.0), refusal_ms(0.5), refusal_ms(1e308)
    (5000, 5000, 500, 31536000000)
    """
    if math.isnan(seconds) or seconds < 0:
        seconds = REFUSE_USUAL_S
    return math.ceil(min(seconds, YEAR_S) * 1000)

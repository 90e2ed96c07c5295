"""Tenants of a manner in an emulated master, with as little sanitizing as possible.

A real module limits input before it forwards it. Here only input that no message can carry is left
out, to test the sidecar's own limits. Deep roles are cut, too, as each of their ancestors has a
name of its own.
"""

from collections.abc import Iterable
from itertools import count, product

from allocator.core import AMOUNT_MAX, MILLI
from laboratory.frameworks.base import Conversion, Identity, Master, Offer, Task
from laboratory.master.emulated import EmulatedMaster
from laboratory.master.ledger import Quota
from laboratory.resources import AgentSpec, Resource, disk, reserved, volume
from tests.hostile.words import (
    AgentWords,
    Amounts,
    Call,
    Info,
    Join,
    Leave,
    Manner,
    Request,
    Reregister,
    Revive,
    Spans,
    Suppress,
    Update,
    clean,
    refusal_ms,
    thousandths,
)

PARTS_MAX = 500
RESERVED_AT_ONCE = VOLUMES_AT_ONCE = 100

_CPUS, _DISK = Resource("cpus"), Resource("disk")


class Tenant:
    """One framework: it declines its offers, or makes reservations or volumes from them."""

    def __init__(self, identity: Identity, manner: Manner) -> None:
        self.identity = identity
        self._refuse_s = manner.refuse_s
        self._reserves, self._volumes = manner.reserves, manner.volumes
        self._answers = count()

    def subscribed(self, master: Master) -> None:
        self._master = master

    def offered(self, offers: list[Offer]) -> None:
        """Decline each offer, or accept it for conversions alone if any are due."""
        for offer in offers:
            refuse_ms = refusal_ms(self._refuse_s[next(self._answers) % len(self._refuse_s)])
            conversions = self._reservations(offer) + self._made_volumes(offer)
            if conversions:
                self._master.accept(offer, [], refuse_ms, conversions)
            else:
                self._master.decline([offer], refuse_ms)

    def lost(self, tasks: list[Task]) -> None:
        """Do nothing: it runs no tasks."""

    def _reservations(self, offer: Offer) -> list[Conversion]:
        """Reservations of a thousandth of a CPU, each with its own label."""
        there = self._master.resources_of(offer.amount).get(_CPUS, 0)
        several = min(self._reserves, there, RESERVED_AT_ONCE)
        self._reserves -= several
        role = self._master.path(offer.role)
        return [
            Conversion({_CPUS: 1}, {reserved(_CPUS, role, labels=(("number", str(each)),)): 1})
            for each in range(self._reserves, self._reserves + several)
        ]

    def _made_volumes(self, offer: Offer) -> list[Conversion]:
        """Persistent volumes of a thousandth of a MiB, each with its own id."""
        there = self._master.resources_of(offer.amount).get(_DISK, 0)
        several = min(self._volumes, there, VOLUMES_AT_ONCE)
        self._volumes -= several
        mine = reserved(_DISK, self._master.path(offer.role))
        return [
            Conversion({_DISK: 1}, {volume(mine, f"v{each}"): 1})
            for each in range(self._volumes, self._volumes + several)
        ]


class Tenants:
    """All tenants of a manner, in one master.

    below: a parent role for all their roles, as an operator's ACL would impose: however many
        roles they have, they are one beside other top-level roles. Empty: none.
    most: limit in thousandths on each resource of an agent. The sidecar caps amounts as a module
        does, so the master must not have more if the two ledgers are compared.
    """

    def __init__(
        self, master: EmulatedMaster, manner: Manner, below: str = "", most: int = AMOUNT_MAX
    ) -> None:
        self.manner = manner
        self._master = master
        self._below = f"{below}/" if below else ""
        self._most = most
        self._tenants: list[Tenant] = []
        self._machines: list[tuple[int, str]] = []

    def arrive(self) -> None:
        for role, amounts in self.manner.guarantees.items():
            self._master.set_quota(self._top(role), Quota(_quantities(amounts)))
        for words in self.manner.agents():
            agent = self._master.add_agent(_spec(words, self._most))
            self._machines.append((agent, self._master.ledger.agents[agent].info.agent_id))
        for info in self.manner.frameworks():
            self._join(info)

    def turn(self, interval: int) -> None:
        for number, call in self.manner.turn(interval):
            self._say(number, call)

    def depart(self) -> None:
        """Remove all of them, in any state of the master."""
        for tenant in self._tenants:
            self._leave(tenant)
        for agent, agent_id in self._machines:
            self._remove(agent, agent_id)
        for role in self.manner.guarantees:
            self._master.set_quota(self._top(role), Quota())

    def _say(self, number: int, call: Call) -> None:
        match call:
            case Join():
                self._join(call.info)
            case Reregister():
                agent, agent_id = self._machines[number]
                if self._is_there(agent, agent_id):
                    self._master.reregister_agent(agent, _spec(call.words, self._most))
            case Leave():
                self._leave(self._tenants[number])
            case Update() | Request() | Suppress() | Revive():
                tenant = self._tenants[number]
                if self._master.knows(tenant):
                    self._call(tenant, call)

    def _call(self, tenant: Tenant, call: Update | Request | Suppress | Revive) -> None:
        own = set(tenant.identity.roles)
        match call:
            case Update():
                tenant.identity = self._identity(call.info)
                self._master.reconnect(tenant)
                self._exclude(tenant, excluded=call.info.excludes)
            case Request():
                self._master.request(tenant, *map(_quantities, call.needs))
            # A master rejects roles that are not the framework's.
            case Suppress() if own >= (roles := self._paths(call.roles)):
                self._master.suppress(tenant, sorted(roles))
            case Revive() if own >= (roles := self._paths(call.roles)):
                self._master.revive(tenant, sorted(roles))

    def _join(self, info: Info) -> None:
        tenant = Tenant(self._identity(info), self.manner)
        self._tenants.append(tenant)
        self._master.subscribe(tenant)
        self._master.excuse(tenant)
        if info.excludes:
            self._exclude(tenant, excluded=True)

    def _exclude(self, tenant: Tenant, *, excluded: bool) -> None:
        """Exclude a framework from every agent, or readmit it; send only what changes."""
        handle, ledger = self._master.member(tenant).handle, self._master.ledger
        before = ledger.excluded[handle]
        places = product(sorted(ledger.frameworks[handle].roles), sorted(ledger.agents))
        new = [(handle, *place) for place in places if (place in before) != excluded]
        self._master.exclude(new, excluded=excluded)

    def _leave(self, tenant: Tenant) -> None:
        self._master.return_framework(tenant)
        if self._master.knows(tenant):
            self._master.excuse(tenant, excused=False)
            self._master.unsubscribe(tenant)

    def _is_there(self, agent: int, agent_id: str) -> bool:
        row = self._master.ledger.agents.get(agent)
        return row is not None and row.info.agent_id == agent_id

    def _remove(self, agent: int, agent_id: str) -> None:
        if self._is_there(agent, agent_id):
            self._master.remove_agent(agent)

    def _identity(self, info: Info) -> Identity:
        """A framework's description, as the emulated master takes it."""
        roles = tuple(dict.fromkeys(map(self._path, info.roles[:1] if info.old else info.roles)))
        return Identity(
            name=clean(info.name),
            roles=roles or (("*",) if info.old else ()),
            capabilities=frozenset(info.capabilities),
            minimum={
                self._path(role): tuple(map(_quantities, any_of))
                for role, any_of in info.minimum.items()
            },
            several_roles=not info.old,
            user=clean(info.user),
            principal=clean(info.principal),
            more_labels={clean(key): clean(value) for key, value in info.labels},
        )

    def _paths(self, roles: Iterable[str]) -> set[str]:
        return set(map(self._path, roles))

    def _top(self, role: str) -> str:
        """The role that a guarantee can be given to."""
        return self._path(role).partition("/")[0]

    def _path(self, role: str) -> str:
        parts = clean(role).split("/", PARTS_MAX)[:PARTS_MAX]
        return self._below + "/".join(parts)


def _quantities(amounts: Amounts) -> dict[str, int]:
    return {clean(name): thousandths(amount) for name, amount in amounts.items()}


def _numbers(spans: Spans) -> int:
    """How many numbers are in ranges, which may overlap or be reversed."""
    numbers, seen = 0, -1
    for first, last in sorted(spans):
        numbers += max(0, last - max(first - 1, seen))
        seen = max(seen, last)
    return numbers


def _spec(words: AgentWords, most: int) -> AgentSpec:
    """An agent's registration, as the emulated master takes it."""
    special = {
        Resource(clean(name)): thousandths(each, most) for name, each in words.resources.items()
    }
    special |= {
        reserved(_CPUS, clean(role), static=True): thousandths(each)
        for role, each in words.reserved.items()
    }
    special |= {
        Resource(clean(name), scalar=False): min(_numbers(spans), most // MILLI) * MILLI
        for name, spans in words.ranges.items()
    }
    special |= {
        Resource(clean(name), scalar=False): len(set(items)) * MILLI
        for name, items in words.sets.items()
    }
    special |= {
        disk(each.source.lower(), clean(f"{each.which}:{each.profile}")): MILLI
        for each in words.disks
    }
    return AgentSpec(
        hostname=clean(words.hostname),
        capacity={},
        attributes={clean(name): clean(value) for name, value in words.attributes},
        special={each: amount for each, amount in special.items() if amount},
        region=clean(words.region),
        zone=clean(words.zone),
    )

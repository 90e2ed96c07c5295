"""A master's world with an honest framework, and the tenants of one manner beside it."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, product

from allocator.lab.hostile.words import (
    AgentWords,
    Info,
    Join,
    Leave,
    Manner,
    Reregister,
    Update,
    refusal_ms,
)
from tests.hostile import script

HONEST = Info(name="honest", roles=("honest",), labels=(("allocator.demand", "cpus:1;mem:512"),))
VOLUMES_AT_ONCE = 200
_OFFER = re.compile(r"offer (\S+) in (\S+) on (\S+): (.*)", re.DOTALL)


@dataclass
class Offer:
    """What a framework was offered, as the brain wrote it."""

    framework: str
    role: str
    agent: str
    amounts: str


@dataclass
class World:
    """What the simulation needs of a master's world, and what the tenants do.

    Attributes
    ----------
    tell : callable
        Tells the brain a line.
    guarantee : bool
        The honest framework has a guarantee, which comes before everybody; else nothing but its
        turn.
    served : int
        Offers to the honest framework so far.
    reserved : int
        Those of them with what it reserved.
    reserves_honestly : bool
        It reserves a CPU of its next offer.
    """

    manner: Manner
    tell: Callable[[str], list[str]]
    agents: int
    guarantee: bool = True
    facts: int = 0
    offers_made: int = 0
    served: int = 0
    reserved: int = 0
    reserves_honestly: bool = False
    refused: Counter[str] = field(default_factory=Counter)
    _offers: list[Offer] = field(default_factory=list)
    _ids: list[str] = field(default_factory=list)
    _infos: dict[str, Info] = field(default_factory=dict)
    _left: int = 0
    _volumes_left: int = 0

    def __post_init__(self) -> None:
        self._left = self.manner.reserves
        self._volumes_left = self.manner.volumes
        self._declined = count()
        self._names = count()
        self._machines: list[str] = []

    def begin(self) -> None:
        """Start a master with an honest cluster."""
        self._say(
            "initialize minimum=cpus:0.01|mem:32 interval=1000 fallback-after=1000"
            " slice-decisions=64"
        )
        guarantees = {"honest": {"cpus": 2.0, "mem": 1024.0}} if self.guarantee else {}
        quotas = (
            f" guarantee.{role}={script.amounts(amounts)}"
            for role, amounts in (guarantees | dict(self.manner.guarantees)).items()
        )
        self._say(f"recover agents=0{''.join(quotas)}")
        for number in range(self.agents):
            words = AgentWords(
                f"host-{number}", attributes=(("rack", f"r{number % 4}"),),
                resources={"cpus": 8.0, "mem": 8192.0, "disk": 1000.0},
            )  # fmt: skip
            self._say(f"add-agent A{number} {_behind(script.agent('', words))}")
        self._say(f"add-framework honest {_behind(script.framework('', HONEST))}")

    def arrive(self) -> None:
        """Let the tenants come."""
        for words in self.manner.agents():
            agent_id = f"H{len(self._machines)}"
            self._machines.append(agent_id)
            self._say(f"add-agent {script.agent(agent_id, words)}")
        for info in self.manner.frameworks():
            self._join(info)

    def turn(self, interval: int) -> None:
        """Let them say what they say in this interval."""
        for number, call in self.manner.turn(interval):
            match call:
                case Join():
                    self._join(call.info)
                case Leave():
                    self._leave(self._ids[number])
                case Update():
                    self._introduce("update", self._ids[number], call.info)
                case Reregister():
                    words = script.agent(self._machines[number], call.words)
                    self._say(f"update-agent {words} new-info=1")
                case _:
                    self._say(script.call(self._ids[number], call))

    def answer(self) -> None:
        """Give all offers back; the honest framework without a filter."""
        offers, self._offers = self._offers, []
        for offer in offers:
            if offer.framework == "honest":
                if self.reserves_honestly:
                    self.reserves_honestly = False
                    self._convert(offer, "", 1.0)
                self._release(offer, 0)
            elif offer.framework in self._infos:
                self._reserve(offer)
                self._make_volumes(offer)
                waits = self.manner.refuse_s
                self._release(offer, refusal_ms(waits[next(self._declined) % len(waits)]))

    # What the simulation asks for.

    def on_line(self, line: str) -> None:
        """Take an effect of the brain."""
        if found := _OFFER.fullmatch(line):
            offer = Offer(*found.groups())
            self._offers.append(offer)
            self.offers_made += 1
            self.served += offer.framework == "honest"
            self.reserved += offer.framework == "honest" and "cpus(honest)" in offer.amounts
        elif line.startswith("refused"):
            self.refused[line.partition(":")[0]] += 1

    def _join(self, info: Info) -> None:
        framework_id = f"T{next(self._names)}"
        self._ids.append(framework_id)
        self._introduce("add", framework_id, info)

    def _introduce(self, verb: str, framework_id: str, info: Info) -> None:
        # Offers in roles that it leaves come back, as in Mesos.
        for offer in [each for each in self._offers if each.framework == framework_id]:
            self._offers.remove(offer)
            self._release(offer, -1)
        before = self._infos.get(framework_id)
        self._infos[framework_id] = info
        self._say(f"{verb}-framework {script.framework(framework_id, info)}")
        if info.excludes or (before is not None and before.excludes):
            places = product(info.roles, (f"A{number}" for number in range(self.agents)))
            self._say(script.exclude(framework_id, places, excluded=info.excludes))

    def _leave(self, framework_id: str) -> None:
        for offer in [each for each in self._offers if each.framework == framework_id]:
            self._offers.remove(offer)
            self._release(offer, -1)
        del self._infos[framework_id]
        self._say(f"remove-framework {framework_id}")

    def _reserve(self, offer: Offer) -> None:
        """Reserve a thousandth of a CPU again and again.

        The labels make an object each in Mesos; here they are of one piece, as what is alike is.
        """
        whole = re.search(r"(?:^|;)cpus:([\d.]+)", offer.amounts)
        for _ in range(min(self._left, 200) if whole else 0):
            self._left -= 1
            self._convert(offer, self._infos[offer.framework].principal)

    def _make_volumes(self, offer: Offer) -> None:
        """Make persistent volumes, many with one call: each is an object of its own."""
        has_space = re.search(r"(?:^|;)disk:([\d.]+)", offer.amounts)
        several = min(self._volumes_left, VOLUMES_AT_ONCE) if has_space else 0
        if not several:
            return
        numbers = range(self._volumes_left - several, self._volumes_left)
        self._volumes_left -= several
        role = script.quoted(offer.role)
        volumes = [f"disk({role})[volume:v{number}]:0.001" for number in numbers]
        self._say(
            f"convert {offer.agent} {offer.framework} {role} offered={offer.amounts} "
            + " ".join(f"disk:0.001->{each}" for each in volumes)
        )
        left = _less(offer.amounts, "disk", 0.001 * several)
        offer.amounts = ";".join(filter(None, [left, *volumes]))

    def _convert(self, offer: Offer, principal: str, cpus: float = 0.001) -> None:
        role = script.quoted(offer.role)
        mine = f"cpus({role}@{script.quoted(principal)})" if principal else f"cpus({role})"
        self._say(
            f"convert {offer.agent} {offer.framework} {role} offered={offer.amounts}"
            f" cpus:{cpus}->{mine}:{cpus}"
        )
        offer.amounts = _reserved(offer.amounts, mine, cpus)

    def _release(self, offer: Offer, refuse_ms: int) -> None:
        self._say(
            f"release {offer.agent} {offer.framework} @{script.quoted(offer.role)}={offer.amounts}"
            f" refuse={refuse_ms}"
        )

    def _say(self, line: str) -> None:
        self.facts += 1
        self.tell(line)


def _behind(text: str) -> str:
    """Without the empty id."""
    return text.lstrip()


def _reserved(amounts: str, mine: str, cpus: float) -> str:
    """What an offer is once some of its CPUs are reserved."""
    return _less(_less(amounts, "cpus", cpus), mine, -cpus)


def _less(amounts: str, name: str, value: float) -> str:
    """What an offer is with so much less of a scalar, which there may be none of."""
    parts = dict(each.rsplit(":", 1) for each in filter(None, amounts.split(";")))
    left = float(parts.pop(name, 0)) - value
    if left > 0.0005:
        parts[name] = f"{left:.3f}"
    return ";".join(f"{each}:{amount}" for each, amount in parts.items())

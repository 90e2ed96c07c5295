"""A master's cluster with an honest framework, and the tenants of one manner of attack."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import count, product

from tests.hostile import script
from tests.hostile.words import (
    AgentWords,
    Info,
    Join,
    Leave,
    Manner,
    Reregister,
    Update,
    refusal_ms,
)
from tests.simulation.world import Held, World

HONEST = Info(name="honest", roles=("honest",), labels=(("allocator.demand", "cpus:1;mem:512"),))
VOLUMES_AT_ONCE = 200

Offer = Held[str]
"""An offer to a framework, as the brain wrote it."""


class Tenanted(World[str]):
    """A cluster of honest agents with an honest framework, and the actions of hostile tenants.

    guarantee: whether the honest framework has a guarantee, which is served first.
    served: number of offers to the honest framework so far.
    reserved: number of these offers that include its reservation.
    reserves_honestly: whether the honest framework reserves a CPU of its next offer.
    refused: number of lines that the brain refused, by verb.
    """

    def __init__(
        self, manner: Manner, tell: Callable[[str], list[str]], agents: int, *, guarantee: bool
    ) -> None:
        """Start empty; the brain receives lines."""
        super().__init__(tell)
        self.manner, self.agents, self.guarantee = manner, agents, guarantee
        self.served = self.reserved = 0
        self.reserves_honestly = False
        self.refused: Counter[str] = Counter()
        self._ids: list[str] = []
        self._infos: dict[str, Info] = {}
        self._left, self._volumes_left = manner.reserves, manner.volumes
        self._declined, self._names = count(), count()
        self._machines: list[str] = []

    def read(self, text: str) -> str:
        return text

    def write(self, amounts: str) -> str:
        return amounts

    def written_role(self, held: Offer) -> str:
        return script.quoted(held.role)

    def begin(self) -> None:
        """Start a master with an honest cluster."""
        self._tell(
            "initialize minimum=cpus:0.01|mem:32 interval=1000 fallback-after=1000"
            " slice-decisions=64"
        )
        guarantees = {"honest": {"cpus": 2.0, "mem": 1024.0}} if self.guarantee else {}
        quotas = (
            f" guarantee.{role}={script.amounts(amounts)}"
            for role, amounts in (guarantees | dict(self.manner.guarantees)).items()
        )
        self._tell(f"recover agents=0{''.join(quotas)}")
        for number in range(self.agents):
            words = AgentWords(
                f"host-{number}", attributes=(("rack", f"r{number % 4}"),),
                resources={"cpus": 8.0, "mem": 8192.0, "disk": 1000.0},
            )  # fmt: skip
            self._tell(f"add-agent A{number} {_behind(script.agent('', words))}")
        self._tell(f"add-framework honest {_behind(script.framework('', HONEST))}")

    def arrive(self) -> None:
        """Add the tenants."""
        for words in self.manner.agents():
            agent_id = f"H{len(self._machines)}"
            self._machines.append(agent_id)
            self._tell(f"add-agent {script.agent(agent_id, words)}")
        for info in self.manner.frameworks():
            self._join(info)

    def turn(self, interval: int) -> None:
        """Play the tenants' actions of this interval."""
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
                    self._tell(f"update-agent {words} new-info=1")
                case _:
                    self._tell(script.call(self._ids[number], call))

    def answer(self) -> None:
        """Decline all offers: for the honest framework without filters."""
        offers, self.offers = self.offers, []
        for offer in offers:
            if offer.framework == "honest":
                if self.reserves_honestly:
                    self.reserves_honestly = False
                    self._reserve_part(offer, "", 1.0)
                self.give_back(offer, 0)
            elif offer.framework in self._infos:
                self._reserve(offer)
                self._make_volumes(offer)
                waits = self.manner.refuse_s
                self.give_back(offer, refusal_ms(waits[next(self._declined) % len(waits)]))

    # Effects of the brain.

    def on_offer(self, offer: Offer) -> None:
        self.served += offer.framework == "honest"
        self.reserved += offer.framework == "honest" and "cpus(honest)" in offer.amounts

    def on_other(self, line: str) -> None:
        if line.startswith("refused"):
            self.refused[line.partition(":")[0]] += 1

    def _join(self, info: Info) -> None:
        framework_id = f"T{next(self._names)}"
        self._ids.append(framework_id)
        self._introduce("add", framework_id, info)

    def _introduce(self, verb: str, framework_id: str, info: Info) -> None:
        # Offers in roles that it leaves are rescinded, as in Mesos.
        self._rescind(framework_id)
        before = self._infos.get(framework_id)
        self._infos[framework_id] = info
        self._tell(f"{verb}-framework {script.framework(framework_id, info)}")
        if info.excludes or (before is not None and before.excludes):
            places = product(info.roles, (f"A{number}" for number in range(self.agents)))
            self._tell(script.exclude(framework_id, places, excluded=info.excludes))

    def _leave(self, framework_id: str) -> None:
        self._rescind(framework_id)
        del self._infos[framework_id]
        self._tell(f"remove-framework {framework_id}")

    def _rescind(self, framework_id: str) -> None:
        for offer in [each for each in self.offers if each.framework == framework_id]:
            self.offers.remove(offer)
            self.give_back(offer)

    def _reserve(self, offer: Offer) -> None:
        """Reserve a thousandth of a CPU again and again.

        In Mesos each set of labels makes a separate object; here equal ones add up.
        """
        whole = re.search(r"(?:^|;)cpus:([\d.]+)", offer.amounts)
        for _ in range(min(self._left, 200) if whole else 0):
            self._left -= 1
            self._reserve_part(offer, self._infos[offer.framework].principal)

    def _make_volumes(self, offer: Offer) -> None:
        """Make persistent volumes, many with one call: each is a separate object."""
        has_space = re.search(r"(?:^|;)disk:([\d.]+)", offer.amounts)
        several = min(self._volumes_left, VOLUMES_AT_ONCE) if has_space else 0
        if not several:
            return
        numbers = range(self._volumes_left - several, self._volumes_left)
        self._volumes_left -= several
        role = script.quoted(offer.role)
        volumes = [f"disk({role})[volume:v{number}]:0.001" for number in numbers]
        self.convert(offer, *(f"disk:0.001->{each}" for each in volumes))
        left = _less(offer.amounts, "disk", 0.001 * several)
        offer.amounts = ";".join(filter(None, [left, *volumes]))

    def _reserve_part(self, offer: Offer, principal: str, cpus: float = 0.001) -> None:
        role = script.quoted(offer.role)
        mine = f"cpus({role}@{script.quoted(principal)})" if principal else f"cpus({role})"
        self.convert(offer, f"cpus:{cpus}->{mine}:{cpus}")
        offer.amounts = _reserved(offer.amounts, mine, cpus)


def _behind(text: str) -> str:
    """Drop the empty id."""
    return text.lstrip()


def _reserved(amounts: str, mine: str, cpus: float) -> str:
    """The resources of an offer after some of its CPUs are reserved."""
    return _less(_less(amounts, "cpus", cpus), mine, -cpus)


def _less(amounts: str, name: str, value: float) -> str:
    """An offer minus this amount of a scalar, as far as it has it."""
    parts = dict(each.rsplit(":", 1) for each in filter(None, amounts.split(";")))
    left = float(parts.pop(name, 0)) - value
    if left > 0.0005:
        parts[name] = f"{left:.3f}"
    return ";".join(f"{each}:{amount}" for each, amount in parts.items())

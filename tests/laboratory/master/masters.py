"""Masters for tests: an allocator in the same process, or a link with scripted answers.

These clusters test the emulated master, which uses its own end of the protocol. `tests.world`
drives the core directly instead.
"""

from dataclasses import dataclass, field

from allocator.core import Allocator, Decisions, PolicySpec, Settings
from allocator.policies import build
from laboratory.event_heap import Priority
from laboratory.links.base import Batch, Opening
from laboratory.master.cycles import Timing
from laboratory.master.emulated import EmulatedMaster
from laboratory.master.session import Outbox
from laboratory.resources import AgentSpec, KindTable, ResourceTable
from tests.torture.wire_link import WireLink
from tests.world.rows import holdings


@dataclass
class Listener:
    """A link whose sidecar answers from `script` only."""

    script: list[list[tuple[int, int, int, tuple[int, ...]]]] = field(default_factory=list)
    gangs: tuple[tuple[int, int], ...] = ()
    openings: list[Opening] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    cycles: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    decided: int = 0

    def open(self, opening):
        self.openings.append(opening)

    def send(self, batch):
        self.batches.append(batch)

    def exchange(self, batch):
        self.batches.append(batch)
        self.cycles.append((batch.clock_ms, batch.agents))
        rows = self.script.pop(0) if self.script else []
        first = self.decided + 1
        self.decided += len(rows)
        group = holdings(*((*key, *amount) for *key, amount in rows))
        groups, gangs = ((group,), self.gangs) if rows else ((), ())
        return Decisions(len(self.cycles), first, groups, gangs=gangs)

    def close(self):
        pass

    @property
    def messages(self):
        return [message for batch in self.batches for message in batch.messages]

    def names(self):
        """Names of all messages so far, which are then forgotten."""
        names = [type(message).__name__ for message in self.messages]
        self.batches.clear()
        return names


def master_for(link, **options):
    """A master with one agent of 4 CPUs and 8 GiB, its session open."""
    master = EmulatedMaster(link, timing=Timing(answer_ms=10, **options))
    master.open()
    master.add_agent(AgentSpec("host", {"cpus": 4000, "mem": 8_192_000}))
    return master


def outbox_of(names):
    """An outbox of a master with this number of plain resources, and no others."""
    table = ResourceTable([f"resource-{number}" for number in range(names)])
    return Outbox(KindTable(table, names))


def run(master, until_ms):
    """Advance time, up to and including this moment."""
    master.event_heap.at(until_ms, lambda: None, Priority.OBSERVE)
    while master.step(until_ms):
        pass


def wire_link(name="drf", mode="oblivious", seed=0, *, limits=None, **settings):
    """A link to an allocator with this policy, through the whole protocol."""
    chosen = Settings(policy=PolicySpec(name, mode=mode), seed=seed, **settings)
    return WireLink(lambda kept: Allocator(build, kept, limits), chosen)

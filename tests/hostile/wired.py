"""Plays one manner of attack by an emulated master against a sidecar, by the full protocol.

There is no module that limits the input, so the sidecar's own bounds must suffice.
"""

from allocator.core import MILLI, Decisions
from allocator.server.engine.core_loop import CoreLoop
from allocator.v1 import session_pb2 as pb
from laboratory.frameworks.base import Identity, Master, Offer, Task
from laboratory.links.base import LinkDownError
from laboratory.master.emulated import EmulatedMaster
from laboratory.master.ledger import Quota
from laboratory.module_protocol import SessionEndedError
from laboratory.resources import AgentSpec
from tests.hostile.measuring import (
    AGENTS,
    BEFORE,
    INTERVALS,
    Figures,
    Meter,
    begin_peak,
    look,
    new_loop,
    peak_mib,
)
from tests.hostile.tenants import Tenants
from tests.hostile.words import Manner
from tests.torture.wire_link import WireLink

GIB = 1024 * MILLI
HONEST = Identity("honest", ("honest",), demand={"cpus": MILLI, "mem": GIB // 2})


class Honest:
    """An honest framework that declines everything, without a filter.

    served: offers so far.
    """

    identity = HONEST

    def __init__(self) -> None:
        self.served = 0

    def subscribed(self, master: Master) -> None:
        self._master = master

    def offered(self, offers: list[Offer]) -> None:
        self.served += len(offers)
        self._master.decline(offers, 0)

    def lost(self, tasks: list[Task]) -> None:
        """It has no tasks."""


class Link(WireLink):
    """A link to a sidecar in this process.

    ended: errors that ended sessions.
    """

    def __init__(self, loop: CoreLoop) -> None:
        super().__init__(loop._new_allocator, loop.allocator.settings)
        self.sidecar = loop._sidecar
        self.ended: list[str] = []

    def _say(self, request: pb.SessionRequest) -> list[pb.Welcome | Decisions]:
        try:
            return super()._say(request)
        except SessionEndedError as error:
            self.ended.append(str(error)[:200])
            self._stream = 0
            raise LinkDownError(str(error)) from None


def play(
    manner: Manner,
    agents: int = AGENTS,
    intervals: int = INTERVALS,
    *,
    guarantee: bool = True,
    pages: bool = True,
) -> Figures:
    """Play intervals with the tenants, and request pages; returns the effects."""
    core, loop = Meter(), new_loop(manner)
    loop._sidecar.receive = core.metered(loop._sidecar.receive)  # type: ignore[method-assign]
    link = Link(loop)
    master = EmulatedMaster(link, ("cpus", "mem", "disk"))
    master.session.patience_s = -1.0  # a session that cannot start is a finding
    if guarantee:
        master.set_quota("honest", Quota({"cpus": 2 * MILLI, "mem": GIB}))
    honest = Honest()
    for number in range(agents):
        capacity = {"cpus": 8 * MILLI, "mem": 8 * GIB, "disk": GIB}
        master.add_agent(AgentSpec(f"host-{number}", capacity, {"rack": f"r{number % 4}"}))
    master.open()
    master.subscribe(honest)
    _run(master, BEFORE)
    assert honest.served
    core.begin()
    before_mib = begin_peak()
    figures = Figures()
    try:
        figures.wait = _with_tenants(master, honest, Tenants(master, manner), intervals)
    except LinkDownError:
        figures.wait = intervals
    loop.allocator.check()
    figures.ended = len(link.ended)
    figures.core_s, figures.core_most_s = core.whole_s, core.most_s
    figures.set_aside.update(loop.counts.mended)
    figures.set_aside.update({f"ended: {why}": 1 for why in link.ended})
    if pages:
        look(loop, figures, "framework-000002")
    figures.memory_mib = peak_mib() - before_mib
    return figures


def _with_tenants(master: EmulatedMaster, honest: Honest, tenants: Tenants, intervals: int) -> int:
    """Return the maximum of consecutive intervals without an offer to the honest framework."""
    waits = longest = 0
    tenants.arrive()
    for interval in range(intervals):
        served = honest.served
        tenants.turn(interval)
        _run(master, 1)
        waits = 0 if honest.served > served else waits + 1
        longest = max(longest, waits)
    return longest


def _run(master: EmulatedMaster, intervals: int) -> None:
    end_ms = master.event_heap.now_ms + intervals * master.options.allocation_interval_ms
    while master.step(end_ms):
        pass
    master.event_heap.at(end_ms, lambda: None)
    master.step(end_ms)

"""Small pieces of work that show whether the sidecar has become slower; the gate runs them.

Each is a real part of a sidecar's work, small enough to run some thousand times a minute.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, count, repeat
from typing import Any, NamedTuple

import numpy as np

from allocator.core import (
    Allocator,
    Decisions,
    Event,
    Holdings,
    PolicySpec,
    RemoveAgent,
    SetQuota,
    Settings,
    Trail,
    Transition,
)
from allocator.policies import build
from allocator.v1 import session_pb2 as pb
from allocator.wire import PROTOCOL_VERSION, Greeting
from allocator.wire.session.sidecar_session import SidecarSession
from laboratory.module_protocol import ModuleSession
from tests.bench import bench_events
from tests.bench.bench_one_agent import hold_everything, release_all
from tests.bench.cluster import cluster, settle
from tests.bench.grid import Bench
from tests.bench.yardstick import Meter, clock_ms
from tests.hostile import at_scale
from tests.world.rows import given_back, holdings_of, settled

OFFERS = 128
"""Launches in a batch, and as many ends of tasks: these are most of a module's messages."""

WELCOME = pb.Welcome(protocol_version=PROTOCOL_VERSION, sidecar_id="bench", kinds_max=512)

Turns = Iterator[Any]
"""Does the same work repeatedly; yields the meter's result of each turn."""


class Gauge(NamedTuple):
    """A piece of work, and the sizes (agents, frameworks) of the clusters to measure it in.

    work: takes the size of the cluster and a meter. In `one agent has many kinds`, the second size
        is the number of kinds.
    timed, counted: sizes at which its time is measured, and at which its steps are counted.
    growth: maximum growth of its cost when the number of agents, or of frameworks, doubles.
    """

    work: Callable[[int, int, Meter], Turns]
    timed: tuple[int, int]
    counted: tuple[int, int]
    growth: tuple[float, float]

    def __call__(self) -> Turns:
        """Measure times."""
        return self.work(*self.timed, clock_ms)


def reoffer_drf(agents: int, frameworks: int, meter: Meter) -> Turns:
    """Everything is free, and is offered again."""
    return _reoffer(agents, frameworks, PolicySpec("drf", selection="random"), meter)


def reoffer_ps_dsf(agents: int, frameworks: int, meter: Meter) -> Turns:
    """As `reoffer_drf`, but in whole tasks, by a policy that ranks clients on each agent."""
    return _reoffer(agents, frameworks, PolicySpec("ps-dsf", mode="characterised"), meter)


def _reoffer(agents: int, frameworks: int, spec: PolicySpec, meter: Meter) -> Turns:
    bench = Bench(agents, frameworks, spec, meter)
    made, _ = bench.cycle()
    while True:
        bench.give_back(made)
        made, cost = bench.cycle()
        assert len(made), "no client was served"
        yield cost


def used_up(agents: int, frameworks: int, meter: Meter) -> Turns:
    """Every role has used up its limit, so no client may have the free half of the cluster."""
    spec = PolicySpec("drf", selection="random")
    allocator = cluster(agents, frameworks, spec, roles=frameworks)
    half = int(allocator.state.agents.capacity[0].sum()) // (2 * frameworks)
    for role in range(1, frameworks + 1):
        allocator.step(SetQuota(f"role-{role}", {}, {"cpus": half}))
    for now_ms in count(1000, 1000):
        made, cost = meter(allocator.allocate, now_ms)
        settle(allocator, made)
        if now_ms > 3000:
            assert not len(made), "a client was served"
            yield cost


def one_agent(agents: int, frameworks: int, meter: Meter) -> Turns:
    """One agent is freed while all others are full."""
    allocator = cluster(agents, frameworks, PolicySpec("drf"))
    filled = hold_everything(allocator, 20_000, agents, frameworks)
    chance = np.random.default_rng(1)
    for now_ms in count(1000, 10):
        agent = int(chance.choice(filled))
        release_all(allocator, agent)
        made, cost = meter(allocator.allocate, now_ms, np.array([agent]))
        assert len(made), "no client was served"
        settle(allocator, made)
        yield cost


def events(agents: int, frameworks: int, meter: Meter) -> Turns:
    """A batch of single events of three types in turn, read and applied."""
    session, client = _session(bench_events.cluster(agents, frameworks))
    for batch in bench_events.accepts(300):
        data = client.batch(1, batch).SerializeToString()
        yield meter(_answered, session, data)[1]


def launches(agents: int, frameworks: int, meter: Meter) -> Turns:
    """A module's batch of ACCEPT calls that launch a task, and of tasks that end.

    For an ACCEPT the master reports first the release of the rest of the offer, then the use of the
    task's part. If no other events wait, a module sends these as two single rows: use before
    release, or release before use if it sent the release before the master reported the use.
    Offers are made in between.
    """
    session, client = _session(bench_events.cluster(agents, frameworks, disk=2**30))
    ended: list[Event] = []
    for now_ms in count(10_000, 10_000):
        some = 1 + (np.arange(OFFERS) + now_ms // 10_000 * OFFERS) % agents
        offers = _offered(session, client, now_ms, some)
        said: list[Event] = []
        running: list[Event] = []
        for row in range(OFFERS):
            offer = offers.cut(slice(row, row + 1))
            task = replace(offer, kind=np.array([0, 1]), amount=np.array([[1000, 1_048_576]]))
            rest = replace(offer, amount=offer.amount - np.array([1000, 1_048_576, 0]))
            launch: list[Event] = [Transition(task), given_back(rest, 5000)]
            said += launch if row % 2 else launch[::-1]
            said += ended[row : row + 1]
            running.append(given_back(task, used=True))
        ended = running
        data = client.batch(now_ms, said).SerializeToString()
        answer, cost = meter(_answered, session, data)
        client.receive(answer)
        yield cost


def _offered(
    session: SidecarSession, client: ModuleSession, now_ms: int, agents: np.ndarray
) -> Holdings:
    """Offer some agents, each as a whole."""
    asked = client.batch(now_ms, cycle=True, agents=agents.tolist())
    made = client.receive(_answered(session, asked.SerializeToString()))
    assert isinstance(made, Decisions)
    assert (len(made), made.kind.tolist()) == (len(agents), [0, 1, 2])
    client.settle(len(made))
    told = client.batch(now_ms, [settled(made)])
    client.receive(_answered(session, told.SerializeToString()))
    return holdings_of(made)


def arrivals(agents: int, frameworks: int, meter: Meter) -> Turns:
    """A new master adds its frameworks and agents."""
    state = bench_events.cluster(agents, frameworks)
    while True:
        client = ModuleSession(Greeting("bench", "bench", 1))
        session = new_session()
        client.receive(session.receive(client.hello().SerializeToString())[0])
        said = [each.SerializeToString() for each in client.snapshot(state, sequence=0, clock_ms=1)]
        yield meter(_hear, session, said)[1]


def agent_returns(agents: int, frameworks: int, meter: Meter) -> Turns:
    """An agent returns under another name, while constraints of tenants name 128 hosts each."""
    allocator = at_scale.cluster(agents)
    for _ in at_scale.names_hosts(allocator, agents, frameworks):
        assert allocator.state.eligibility.excluded.row.any()

    def returns(number: int) -> np.ndarray:
        allocator.step(RemoveAgent(5))
        allocator.step(at_scale.agent_of(5, number))
        return np.flatnonzero(allocator.state.eligibility.excluded.row[:, 5])

    for number in count(agents):
        barred, cost = meter(returns, number)
        assert len(barred)
        yield cost


def made_up_kinds(agents: int, kinds: int, meter: Meter) -> Turns:
    """Everything is offered again; one agent has many kinds of resources that no other has."""
    allocator = at_scale.cluster(agents)
    # The tenant's intervals end; the gauge's turns do not.
    for _ in chain(at_scale.makes_up_kinds(allocator, agents, kinds), repeat(-1)):
        made, cost = meter(allocator.allocate, allocator.state.now_ms + 1000)
        assert len(made) == agents
        settle(allocator, made)
        for rows in made.groups:
            allocator.step(given_back(rows))
        yield cost


def _session(state: bench_events.State) -> tuple[SidecarSession, ModuleSession]:
    session, client = new_session(), ModuleSession(Greeting("bench", "bench", 1))
    client.receive(session.receive(client.hello().SerializeToString())[0])
    for request in client.snapshot(state, sequence=0, clock_ms=1):
        session.receive(request.SerializeToString())
    return session, client


def new_session() -> SidecarSession:
    """Make the sidecar's side of a session, with DRF."""
    settings = Settings(policy=PolicySpec("drf"))
    return SidecarSession(lambda _: Allocator(build, settings, trail=Trail()), WELCOME)


def _hear(session: SidecarSession, said: list[bytes]) -> bytes:
    answers = [answer for each in said for answer in session.receive(each)]
    assert not any(answer.HasField("error") for answer in answers), answers
    return b"".join(answer.SerializeToString() for answer in answers)


def _answered(session: SidecarSession, data: bytes) -> bytes:
    (answer,) = session.receive(data)
    assert answer.HasField("decisions"), answer
    return answer.SerializeToString()


GAUGES = {
    "re-offer, drf": Gauge(reoffer_drf, (2000, 200), (200, 20), (2.1, 1.1)),
    "re-offer, ps-dsf, whole tasks": Gauge(reoffer_ps_dsf, (500, 50), (50, 5), (2.1, 2.0)),
    "limits used up": Gauge(used_up, (2000, 200), (200, 20), (1.7, 1.4)),
    "one agent freed": Gauge(one_agent, (10_000, 1000), (5000, 100), (1.05, 1.6)),
    "single events": Gauge(events, (10_000, 1000), (10_000, 1000), (1.05, 1.05)),
    "launches": Gauge(launches, (10_000, 1000), (1000, 100), (1.05, 1.05)),
    "agents arrive": Gauge(arrivals, (2000, 1000), (200, 100), (1.9, 2.0)),
    "an agent returns, named hosts": Gauge(agent_returns, (5000, 500), (100, 50), (1.05, 1.1)),
    "made-up kinds": Gauge(made_up_kinds, (2000, 256), (20, 64), (2.1, 2.1)),
}

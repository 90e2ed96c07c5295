"""How long the core's thread is held by each question and change, in the largest cluster.

python tests/bench/bench_holds.py [AGENTS FRAMEWORKS HOLDINGS FILTERS]

All is processor time: of the core's thread, each time that it was held; of whoever asked; and of
processes that were forked. Each is done twice, for some things happen once.
"""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from allocator.core import (
    OperatorChange,
    Policy,
    PolicySpec,
    Problem,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetPolicy,
    SetWeight,
)
from allocator.policies import build
from allocator.policies.plan_guided import PlanGuided
from allocator.server.config import Config, Loaded
from allocator.server.config.sections import PolicySection
from allocator.server.engine import commands, fair_shares
from allocator.server.engine.commands import Ask, Command
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.fair_shares import FairnessWatch
from allocator.server.engine.planning import PlanningThread
from allocator.server.metrics.scraping import Scrapes
from allocator.server.operators.operators import Operators
from allocator.server.operators.rule_checks import copy_cluster
from allocator.server.views import dump
from allocator.server.views.views import Views
from allocator.server.web.page import agent_map, drained, look
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2
from tests.bench.bench_checkpoint import fill
from tests.bench.cluster import arrivals

_T = TypeVar("_T")

WAIT_S = 600.0


def without_plans(spec: PolicySpec) -> Policy:
    """Make a policy; one that plans finds none, for here only its problem is of interest."""

    def fail(_problem: Problem) -> NoReturn:
        raise ArithmeticError

    policy = build(spec)
    return replace(policy, plan_function=fail) if isinstance(policy, PlanGuided) else policy


class Held:
    """A core whose thread tells how long each command held it."""

    def __init__(self, agents: int, frameworks: int, held: int, refused: int) -> None:
        commands.SAVED_S = 1e6  # no question waits here for time of its own
        section = PolicySection(name="drf", mode="characterised")
        self.loop = CoreLoop(Config(policy=section), build_policy=without_plans)
        self.took_s: list[float] = []
        allocator = self.loop.allocator
        for event in arrivals(agents, frameworks):
            allocator.step(event)
        allocator.allocate(1000, np.arange(1, 3))  # its loops are loaded
        fill(allocator, agents, frameworks, held, refused)
        taken = self.loop.commands.taken
        self.loop.commands.taken = lambda: self._metered(taken())  # type: ignore[method-assign]
        self.loop.start()

    def _metered(self, taken: Iterator[Command]) -> Iterator[Command]:
        for command in taken:
            yield command._replace(do=partial(self._timed, command.do))

    def _timed(self, do: Callable[[], None]) -> None:
        begun_s = time.thread_time()
        do()
        self.took_s.append(time.thread_time() - begun_s)

    def ask(self, work: Callable[[], _T]) -> _T:
        return self.loop.ask(work).result(WAIT_S)

    def told(self, name: str, work: Callable[[], object]) -> None:
        """Do something twice, and say what it took."""
        for _ in range(2):
            self.took_s.clear()
            begun_s, before_s = time.thread_time(), children_s()
            work()
            mine_s = time.thread_time() - begun_s
            apart_s = children_s() - before_s
            self.loop.call(lambda: None).result(WAIT_S)
            held = "  ".join(f"{1000 * each:6.1f}" for each in self.took_s if each > 0.0005)
            more = f"asker {1000 * mine_s:8.1f} apart {1000 * apart_s:8.1f}"
            print(f"{name:28} held for ms {held or '-':30} {more}", flush=True)


def main(agents: int, frameworks: int, holdings: int, filters: int) -> None:
    print(f"{agents} agents, {frameworks} frameworks, {holdings} holdings, {filters} filters")
    held = Held(agents, frameworks, holdings, filters)
    loop, ask, told = held.loop, held.ask, held.told
    operators = Operators(loop, Loaded(Config(), {}))
    asked = Views(loop, operators)
    told("status", lambda: asked.status(ask, pb.GetStatusRequest()))
    told("scrape", Scrapes(loop).latest)
    told("status page", lambda: look.take(asked))
    told("agents of the page", lambda: ask(lambda: agent_map.take(loop.allocator)))
    told("drained of the page", lambda: ask(lambda: drained.take(loop.allocator)))
    told("shares", lambda: asked.shares(ask, pb.GetSharesRequest(), scored=False))
    told("shares with scores", lambda: asked.shares(ask, pb.GetSharesRequest()))
    for kind, name in (("agent", "agent-7"), ("framework", "framework-7"), ("role", "role-7")):
        request = explain_pb2.ExplainRequest()
        setattr(request, kind, name)
        told(f"explain {kind}", partial(asked.explain, ask, request))
    told("settings", lambda: asked.settings(ask, every=True))
    for of in ("agent", "framework"):
        told(f"names of {of}s", partial(asked.names, ask, pb.ListNamesRequest(of=of)))
    told("dump", lambda: sum(map(len, dump_pieces(loop, ask))))
    told("snapshot", lambda: next(snapshot_pieces(loop, ask)))
    told("copy for fair shares", lambda: loop.apart.ask(ask, loop.copied))
    watch = FairnessWatch(loop, every_s=1.0)
    # To deal takes minutes, and none of them is the core's.
    fair_shares.dealt_anew = fail_to_deal  # type: ignore[assignment]
    told("fairness", watch.sample)
    told("copy for a change", lambda: ask(lambda: copy_cluster(loop.allocator)))
    changes: tuple[OperatorChange, ...] = (
        SetWeight("role-7", "", 2.0),
        SetDemand("role-7", "", {"cpus": 1000}),
        SetConstraint("role-7", "", "zone=a|b"),
        SetConstraint("role-8", "", ";".join(f"!nobody-has-{number}" for number in range(128))),
        SetWeight("", "", 2.0),
        SetDemand("", "", {"cpus": 1000}),
        SetConstraint("", "", "zone=a|b"),
        SetDrain("agent-7"),
    )
    for change in changes:
        name = f"{type(change).__name__} {change.key[1] or 'of all'}"
        told(name, lambda: loop.call(partial(loop.step, change)).result(WAIT_S))  # noqa: B023
    cmmf = SetPolicy(PolicySpec("cmmf"))
    told("change of the policy", lambda: loop.call(partial(loop.step, cmmf)).result(WAIT_S))
    planning = PlanningThread(loop, budget_s=60.0, interval_s=0.0)
    loop.after_message, loop.first_plan = planning.look, planning.first
    planning.start()

    def plan() -> None:
        loop.allocator.cycle += 1
        loop.call(lambda: planning.look(loop.allocator)).result(WAIT_S)
        while planning.running_s:
            time.sleep(0.05)

    told("problem of a plan", plan)
    planning.stop()
    loop.stop()


def children_s() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def dump_pieces(loop: CoreLoop, ask: Ask) -> Iterator[bytes]:
    return dump.pieces(loop.apart.ask(ask, lambda: dump.read(loop)))


def snapshot_pieces(loop: CoreLoop, ask: Ask) -> Iterator[bytes]:
    return loop.new_snapshot(ask, anonymise=False)


def fail_to_deal(*_: object) -> NoReturn:
    raise ArithmeticError


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ["50000", "6000", "1000000", "1000000"]))

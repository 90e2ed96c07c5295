"""Choosy's macrobenchmark with the policies themselves: an hour of jobs on the allocator.

``python -m tests.plans.macro [--trials 5] [--machines 200]`` prints for each policy by how much
jobs stay longer than under Choosy (percent, the mean over jobs of each seed, and over seeds with a
95 % interval), and the distance of machine counts from those of the ideal with preemption.

Whole machines are offered once a second, as Mesos does; plans are made after each cycle, as by the
sidecar, so that they are a second old when they are used.
"""

import argparse
import heapq
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from allocator.core import PlanProblem, PolicySpec, Suppress
from laboratory.papers.choosy.ideals import History
from laboratory.papers.choosy.macro import SAMPLE_S, SPAN_S, Hour, draw_hour, rmse_percent
from laboratory.papers.choosy.macro import play as play_ideal
from laboratory.papers.online import ROLE, Online
from laboratory.papers.report import averaged

POLICIES = ("choosy", "cmmf")

_WHOLE = np.array([[1000]])


@dataclass
class Played:
    """An hour on an allocator; time is in whole seconds."""

    hour: Hour
    online: Online
    ends: list[tuple[int, int, int]] = field(default_factory=list)
    left: dict[int, list[float]] = field(default_factory=dict)
    running: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    planned: PlanProblem | None = None

    def __post_init__(self) -> None:
        agent = 0
        for kind, count in enumerate(self.hour.count):
            for _ in range(count):
                agent += 1
                self.online.add_agent(agent, (1000,), {"type": str(kind)})

    def play(self) -> History:
        """Let all jobs come, run and leave."""
        jobs, moments = self.hour.jobs, np.arange(0.0, SPAN_S, SAMPLE_S)
        coming = sorted((int(np.ceil(job.at)), n) for n, job in enumerate(jobs))[::-1]
        stay = np.full(len(jobs), np.nan)
        held = np.zeros((len(moments), len(jobs)), np.int64)
        there = np.zeros(held.shape, np.bool_)
        looked = 0
        while coming or self.ends:
            now = min([coming[-1][0]] if coming else [], default=10**9)
            now = min([now, self.ends[0][0]] if self.ends else [now])
            while looked < len(moments) and moments[looked] < now:
                for user in self.left:
                    held[looked, user] = self.running[user]
                    there[looked, user] = True
                looked += 1
            self._end(now)
            for user in [user for user, rest in self.left.items() if not rest]:
                if not self.running[user]:
                    stay[user] = now - jobs[user].at
                    del self.left[user]
                    self.online.remove_framework(user + 1)
            while coming and coming[-1][0] <= now:
                user = coming.pop()[1]
                self.left[user] = list(jobs[user].durations)[::-1]
                constraint = "type=" + "|".join(map(str, jobs[user].types))
                self.online.add_framework(user + 1, f"job-{user}", "", constraint)
            self._offer(now)
        return History(stay, held, there)

    def _end(self, now: int) -> None:
        over = []
        while self.ends and self.ends[0][0] <= now:
            over.append(heapq.heappop(self.ends)[1:])
        if over:
            users, agents = np.array(over).T
            self.online.release(users + 1, agents, np.repeat(_WHOLE, len(over), axis=0))
            for user in users.tolist():
                self.running[user] -= 1

    def _offer(self, now: int) -> None:
        """Offer free machines until no user is offered more than it can use."""
        allocator = self.online.allocator
        while self.left:
            taken = self.online.allocate(1000 * now)
            too_many = []
            for framework, agent in zip(
                taken.framework.tolist(), taken.agent.tolist(), strict=True
            ):
                rest = self.left[framework - 1]
                if not rest:
                    too_many.append((framework, agent))
                    continue
                self.running[framework - 1] += 1
                ends = now + max(1, round(rest.pop()))
                heapq.heappush(self.ends, (ends, framework - 1, agent))
            for user, rest in self.left.items():
                if not rest:
                    allocator.step(Suppress(user + 1, (ROLE,)))
            if not too_many:
                break
            frameworks, agents = np.array(too_many).T
            self.online.release(frameworks, agents, np.repeat(_WHOLE, len(too_many), axis=0))
        planning_policy, problem = allocator.planning_policy, allocator.problem()
        if planning_policy is None or problem is None:
            return
        if self.planned is None or not planning_policy.stands(self.planned, problem):
            allocator.step(allocator.plan_for(problem))
            self.planned = problem


def played(hour: Hour, policy: PolicySpec, seed: int) -> History:
    """Play an hour under a policy."""
    online = Online(policy, ("cpus",), seed)
    online.allocator.plan_source.plans_here = False
    return Played(hour, online).play()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--machines", type=int, default=200)
    options = parser.parse_args()
    longer: dict[str, list[float]] = {name: [] for name in POLICIES}
    apart: dict[str, list[float]] = {name: [] for name in POLICIES}
    for seed in range(options.trials):
        hour = draw_hour(seed, options.machines)
        ideal = play_ideal(hour, "preemption", seed).history
        found = {name: played(hour, PolicySpec(name), seed) for name in POLICIES}
        for name, history in found.items():
            ratio = history.stay / found["choosy"].stay
            longer[name].append(100 * float(np.exp(np.log(ratio).mean())) - 100)
            apart[name].append(float(rmse_percent(history, ideal, options.machines).mean()))
            print(seed, name, f"{longer[name][-1]:.2f} % {apart[name][-1]:.3f} %", flush=True)
    print("| policy | jobs stay longer than under choosy (%) | from the ideal (RMSE, %) |")
    print("|---|---|---|")
    for name in POLICIES:
        cells = (averaged(longer[name]), averaged(apart[name]))
        text = " | ".join(f"{cell.computed:.3f} ± {cell.half or 0:.3f}" for cell in cells)
        print(f"| {name} | {text} |")


if __name__ == "__main__":
    main()

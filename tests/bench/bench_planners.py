"""Cost of planning policies on the openb cluster: their plans, and cycles that follow these.

``python -m tests.bench.bench_planners [--frameworks 100] [--repeats 20]`` prints a table: for each
policy the processor time of a plan, of a cycle over all agents while everything is free, and of a
cycle over a single freed agent; medians, in ms. Without the trace, its stand-in is used.
"""

import argparse

import numpy as np

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Decisions,
    Define,
    FrameworkInfo,
    Holdings,
    Kind,
    Options,
    Outcomes,
    PolicySpec,
    Release,
    Settings,
    Transition,
)
from allocator.policies import build
from laboratory.experiments.demo_runs import NODES_FILE, PODS_FILE, trace_directory
from laboratory.workloads import traces
from laboratory.workloads.traces import read_nodes, read_pods
from tests.bench.yardstick import clock_ms

NUMBER = {"cpus": 0, "mem": 1, "gpus": 2}

POLICIES = (
    PolicySpec("choosy"),
    PolicySpec("cmmf"),
    PolicySpec("cmmf", parameters={"steer": "machines"}),
    PolicySpec("ps-dsf"),
    PolicySpec("ps-dsf-exact"),
    PolicySpec("pf"),
    PolicySpec("pf-exact"),
    PolicySpec("drf"),
    PolicySpec("quincy"),
)


def cluster(policy: PolicySpec, frameworks: int) -> tuple[Allocator, str]:
    """All nodes of openb, and frameworks whose tasks are its pods, with their GPUs and models."""
    nodes_path, pods_path = trace_directory() / NODES_FILE, trace_directory() / PODS_FILE
    there = nodes_path.is_file() and pods_path.is_file()
    nodes = read_nodes(nodes_path) if there else traces.openb_nodes(1523)
    pods = read_pods(pods_path) if there else traces.openb_pods(0, 1000)
    spec = PolicySpec(policy.name, mode="characterised", parameters=policy.parameters)
    allocator = Allocator(build, Settings(policy=spec, learn_demand=False))
    allocator.step(Options())
    kinds = {number: Kind(name) for name, number in NUMBER.items()}
    allocator.step(Define(kinds, {1: "users"}))
    for row, node in enumerate(nodes, 1):
        info = AgentInfo(f"a{row}", f"host{row}", {"model": node.model, "rack": f"r{row // 40}"})
        has = {NUMBER[name]: amount for name, amount in node.capacity.items() if amount}
        allocator.step(AddAgent(row, info, has))
    for row, pod in enumerate(pods[:: len(pods) // frameworks][:frameworks], 1):
        demand = ";".join(f"{name}:{amount / 1000:g}" for name, amount in pod.need.items())
        labels = {"allocator.demand": demand, "allocator.preference": f"rack=r{row % 38}"}
        if pod.models:
            labels["allocator.constraint"] = "model=" + "|".join(sorted(pod.models))
        capable = frozenset(["GPU_RESOURCES"] if pod.need.get("gpus") else [])
        info_of = FrameworkInfo(f"f{row}", f"f{row}", labels=labels, capabilities=capable)
        allocator.step(AddFramework(row, info_of, (1,)))
    return allocator, "openb" if there else "stand-in"


def taken(allocator: Allocator, made: Decisions) -> Holdings:
    """Use everything that was decided."""
    allocator.step(Outcomes.all_or_nothing(made.first_decision, np.ones(len(made), np.bool_)))
    used = Holdings(made.framework, made.role, made.agent, made.kind, made.amount)
    allocator.step(Transition(used))
    return used


def measure(policy: PolicySpec, frameworks: int, repeats: int) -> tuple[float, float, float, int]:
    """Return the times of a plan, a full cycle and a cycle over one agent; and the offers."""
    allocator, _ = cluster(policy, frameworks)
    problem = allocator.problem()
    assert problem is not None
    plan_ms = 0.0
    if allocator.planning_policy is not None:
        allocator.plan_for(problem)  # compiles the loops
        planned, plan_ms = clock_ms(allocator.plan_for, problem)
        allocator.step(planned)
    made, full_ms = clock_ms(allocator.allocate, 1000)
    group = taken(allocator, made)
    singles, now_ms = [], 1000
    for row in range(repeats):
        pick = slice(row, row + 1)
        part = Holdings(
            group.framework[pick], group.role[pick], group.agent[pick], group.kind,
            group.amount[pick],
        )  # fmt: skip
        allocator.step(Release(part, np.full(1, -1), np.zeros(1, np.bool_)))
        now_ms += 10
        again, took = clock_ms(allocator.allocate, now_ms, part.agent)
        singles.append(took)
        if len(again):
            taken(allocator, again)
    return plan_ms, full_ms, float(np.median(singles)), len(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frameworks", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    measure(PolicySpec("drf"), 5, 2)  # loads the loops
    print(f"{cluster(PolicySpec('drf'), 1)[1]}, {options.frameworks} frameworks")
    print("| policy | plan | cycle over all agents | over one | offers |")
    print("|---|---|---|---|---|")
    for policy in POLICIES:
        plan, full, single, offers = measure(policy, options.frameworks, options.repeats)
        name = " ".join([policy.name, *policy.parameters.values()])
        print(f"| {name} | {plan:.1f} | {full:.1f} | {single:.2f} | {offers} |", flush=True)


if __name__ == "__main__":
    main()

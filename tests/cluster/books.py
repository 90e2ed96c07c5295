"""Holdings by framework, role and agent: as the master sees them, and as the sidecar does.

The sidecar's information comes from the module only: after a snapshot its books are the module's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.amounts import Amounts, amounts_of, kind_of, ranges_of, without_zeros
from tests.cluster.api import OLD_AGENTS, Operator
from tests.cluster.framework import TERMINAL
from tests.cluster.sidecar import Sidecar

Place = tuple[str, str, str]
"""Framework id, role, agent id."""


@dataclass
class Books:
    """Totals and holdings, in thousandths by kind.

    total: amounts by agent id.
    held: offered and in use.
    offered: the part of it that is offered.
    """

    total: dict[str, Amounts] = field(default_factory=dict)
    held: dict[Place, Amounts] = field(default_factory=dict)
    offered: dict[Place, Amounts] = field(default_factory=dict)

    def differences(self, other: "Books") -> list[str]:
        """List the differences between the two.

        A snapshot does not say which holdings are only offered, so `other` may have fewer of these.
        Nor must it distinguish what makes no difference to a decision.
        """
        found = []
        for name in ("total", "held"):
            mine, theirs = getattr(self, name), getattr(other, name)
            for key in sorted(mine.keys() | theirs.keys(), key=str):
                one, two = _coarse(mine.get(key, {})), _coarse(theirs.get(key, {}))
                if one != two:
                    found.append(f"{name} {key}: {dict(one)} here, {dict(two)} there")
        for place, offered in other.offered.items():
            if more := _coarse(offered) - _coarse(self.offered.get(place, {})):
                found.append(f"offered {place}: {dict(more)} there only")
        return found

    def by_agent(self) -> dict[str, Amounts]:
        """Holdings by agent."""
        agents: dict[str, Amounts] = {}
        for (_, _, agent_id), amounts in self.held.items():
            agents.setdefault(agent_id, Counter()).update(amounts)
        return agents


def _coarse(amounts: Mapping[str, int]) -> Amounts:
    """Merge kinds that decisions do not distinguish.

    Volumes of one reservation are alike, and so are stacks of reservations with the same last role
    and depth.
    """
    sums: Amounts = Counter()
    for kind, amount in amounts.items():
        text = re.sub(r"\[.*\]", "[volume]", kind)
        sums[re.sub(r"[^(,]+, ", "_, ", text)] += amount
    return sums


def _by_role(resources: Iterable[Any]) -> dict[str, list[Any]]:
    roles: dict[str, list[Any]] = {}
    for resource in resources:
        roles.setdefault(resource.get("allocation_info", {}).get("role", ""), []).append(resource)
    return roles


def of_master(state: Any) -> Books:
    """Parse the answer to GET_STATE."""
    books = Books()

    def hold(framework: str, agent: str, resources: Iterable[Any], offered: bool) -> None:
        for role, part in _by_role(resources).items():
            place = framework, role, agent
            books.held.setdefault(place, Counter()).update(amounts_of(part))
            if offered:
                books.offered.setdefault(place, Counter()).update(amounts_of(part))

    for agent in state["get_agents"].get("agents", []):
        agent_id = agent["agent_info"]["id"]["value"]
        books.total[agent_id] = amounts_of(agent["total_resources"])
    for framework in state["get_frameworks"].get("frameworks", []):
        framework_id = framework["framework_info"]["id"]["value"]
        for offer in framework.get("offers", []):
            hold(framework_id, offer["agent_id"]["value"], offer["resources"], True)
    for task in state["get_tasks"].get("tasks", []):
        if task["state"].removeprefix("TASK_") not in TERMINAL:
            hold(task["framework_id"]["value"], task["agent_id"]["value"], task["resources"], False)
    for executor in state["get_executors"].get("executors", []):
        info = executor["executor_info"]
        resources = info.get("resources", [])
        hold(info["framework_id"]["value"], executor["agent_id"]["value"], resources, False)
    return _tidy(books)


def _tidy(books: Books) -> Books:
    for name in ("held", "offered"):
        rows = {key: without_zeros(each) for key, each in getattr(books, name).items()}
        setattr(books, name, {key: each for key, each in rows.items() if each})
    return books


def _kind_text(kind: Any) -> str:
    """A kind of the sidecar in the terms of `amounts.kind_of`."""
    text: str = kind["name"]
    if kind["depth"]:
        text += "(" + "_, " * (kind["depth"] - 1) + kind["reserved_role"] + ")"
    if kind["form"] == "volume":
        text += "[volume]"
    for flag in ("revocable", "shared"):
        if kind[flag]:
            text += f" {flag}"
    return text


def of_sidecar(dump: Any) -> Books:
    """Parse the sidecar's dump."""
    kinds = [_kind_text(kind) if kind else "" for kind in dump["kinds"]]
    roles = {row["role"]: row["path"] for row in dump["roles"]}
    agents = {row["agent"]: row["agent_id"] for row in dump["agents"]}
    frameworks = {
        row["framework"]: row["framework_id"] for row in dump["clients"] if row["framework_id"]
    }

    def amounts(sparse: dict[str, int]) -> Amounts:
        sums: Amounts = Counter()
        for index, amount in sparse.items():
            sums[kinds[int(index)]] += amount
        return without_zeros(sums)

    books = Books()
    for row in dump["agents"]:
        books.total[row["agent_id"]] = amounts(row["capacity"])
    for row in dump["holdings"]:
        place = (
            frameworks.get(row["framework"], str(row["framework"])),
            roles.get(row["role"], str(row["role"])),
            agents.get(row["agent"], str(row["agent"])),
        )
        books.held[place] = amounts(row["held"])
        books.offered[place] = amounts(row["offered"])
    return _tidy(books)


def over_committed(state: Any) -> list[str]:
    """List agents whose offers and tasks exceed their total, by the master's GET_STATE."""
    books, found = of_master(state), []
    for agent_id, held in books.by_agent().items():
        total = books.total.get(agent_id, Counter())
        for kind, amount in held.items():
            if " shared" not in kind and amount > total[kind]:
                found.append(f"agent {agent_id}: {amount} of {kind} held, {total[kind]} there")
    for agent in state["get_agents"].get("agents", []):
        found += _twice_given(agent)
    return found


def _twice_given(agent: Any) -> list[str]:
    """List numbers of ranges (ports) that are given twice, or are not the agent's."""
    agent_id = agent["agent_info"]["id"]["value"]
    given: dict[str, list[int]] = {}
    for name in ("allocated_resources", "offered_resources"):
        for resource in agent.get(name, []):
            for first, last in ranges_of(resource):
                given.setdefault(kind_of(resource), []).extend(range(first, last + 1))
    own: dict[str, set[int]] = {}
    for resource in agent["total_resources"]:
        for first, last in ranges_of(resource):
            own.setdefault(kind_of(resource), set()).update(range(first, last + 1))
    return [
        f"agent {agent_id}: {kind} given twice, or not there"
        for kind, numbers in given.items()
        if len(set(numbers)) != len(numbers) or not set(numbers) <= own.get(kind, set())
    ]


def all_differences(operator: Operator, sidecar: Sidecar) -> list[str]:
    """Compare the sidecar with the master's state (v1 and older) and metrics.

    Nothing may change meanwhile: the frameworks have to keep their offers.
    """
    state, old = operator.state(), operator.old_state()
    metrics, dump = operator.metrics(), sidecar.dump()
    books = of_master(state)
    found = books.differences(of_sidecar(dump))
    found += _old_state_differences(books, old)
    found += _metric_differences(books, state, metrics, dump)
    return found


def _of_name(amounts: Amounts, name: str) -> int:
    """Sums by name over all kinds, including reservations and volumes."""
    return sum(each for kind, each in amounts.items() if re.split(r"[(\[ ]", kind)[0] == name)


def _old_state_differences(books: Books, old: Any) -> list[str]:
    """`/state` has sums of the amounts in use for each agent, by name of scalars."""
    found = []
    for agent in old[OLD_AGENTS]:
        held = books.by_agent().get(agent["id"], Counter())
        for name in ("cpus", "mem", "disk"):
            mine = _of_name(held, name)
            theirs = agent["used_resources"].get(name, 0) + agent["offered_resources"].get(name, 0)
            if mine != round(theirs * 1000):
                found.append(f"/state, agent {agent['id']}: {mine} of {name} here, {theirs} there")
    return found


def _metric_differences(books: Books, state: Any, metrics: Any, dump: Any) -> list[str]:
    agents = len(state["get_agents"].get("agents", []))
    frameworks = len(state["get_frameworks"].get("frameworks", []))
    in_use: Amounts = Counter()
    for place, held in books.held.items():
        in_use.update(held - books.offered.get(place, Counter()))
    expected: dict[str, float] = {
        f"master/{OLD_AGENTS}_active": agents,
        "allocator/sidecar/agents": agents,
        "allocator/sidecar/frameworks": frameworks,
        "allocator/sidecar/connected": 1,
        "master/outstanding_offers": sum(
            len(each.get("offers", [])) for each in state["get_frameworks"].get("frameworks", [])
        ),
    }
    for name in ("cpus", "mem", "disk"):
        there = sum((each for each in books.total.values()), Counter())
        expected[f"master/{name}_total"] = _of_name(there, name) / 1000
        expected[f"master/{name}_used"] = _of_name(in_use, name) / 1000
    found = [
        f"metric {name}: {metrics.get(name)} there, {value} here"
        for name, value in expected.items()
        if metrics.get(name) is None or abs(metrics[name] - value) > 1e-6
    ]
    if len(dump["agents"]) != agents:
        found.append(f"{len(dump['agents'])} agents in the sidecar, {agents} in the master")
    return found

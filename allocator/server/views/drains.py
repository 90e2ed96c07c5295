"""The rules that drain agents."""

from collections.abc import Iterable, Sequence

from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2


def drain_of(
    names: Iterable[str], settings: Iterable[settings_pb2.Setting]
) -> settings_pb2.Setting | None:
    """Find the rule that drains an agent with these names; of several, the one set first."""
    wanted = {f"agent {name}" for name in names}
    of_agent = [each for each in settings if each.key == "drain" and each.scope in wanted]
    return min(of_agent, key=lambda each: each.set_at_ms, default=None)


def say_why(agents: Iterable[pb.ListedAgent], drains: Sequence[settings_pb2.Setting]) -> None:
    by_scope: dict[str, list[settings_pb2.Setting]] = {}
    for each in drains:
        by_scope.setdefault(each.scope, []).append(each)
    for agent in agents:
        names = (agent.agent_id, agent.hostname)
        mine = [rule for name in names for rule in by_scope.get(f"agent {name}", ())]
        if (rule := drain_of(names, mine)) is not None:
            agent.drain.CopyFrom(rule)

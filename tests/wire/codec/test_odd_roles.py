"""Roles that are too deep or too long: any framework may use one, without harm to others."""

from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    FrameworkInfo,
    SessionLimits,
    SetQuota,
)
from allocator.v1 import session_pb2 as pb
from allocator.wire import SessionState
from allocator.wire.codec.sanitizing import mend_event
from allocator.wire.codec.validation import TEXT_LENGTH_MAX
from tests.wire.dialogue import STATE, Module, new_sidecar

DEEP = 12
DEPTH_MAX = 4


def chain(depth: int, first: int = 3, name: str = "r") -> dict[int, str]:
    """A role and its ancestors, as a module binds them: parents first."""
    return {first + level: "/".join([name] * (level + 1)) for level in range(depth)}


DEEPEST = 3 + DEEP - 1


def new_module() -> Module:
    return Module(new_sidecar(limits=SessionLimits(role_depth=DEPTH_MAX)))


def begun() -> Module:
    """Frameworks in plain roles, one in a deep one, and an agent for each."""
    module = new_module().begin(STATE[:3])
    agents = [
        AddAgent(n, AgentInfo(f"a{n}", capabilities=frozenset({"HIERARCHICAL_ROLE"})), {0: 1000})
        for n in (1, 2, 3)
    ]
    deep = AddFramework(3, FrameworkInfo("deep"), (DEEPEST,))
    module.batch(Define(roles=chain(DEEP)), deep, *agents)
    return module


def served(module: Module) -> list[tuple[int, int]]:
    made = module.batch(cycle=True)
    return sorted(zip(made.framework.tolist(), made.role.tolist(), strict=True))


def test_a_framework_in_a_role_that_is_too_deep_is_served_like_all_others():
    module = begun()
    assert served(module) == [(1, 1), (2, 2), (3, DEEPEST)]
    state = module.sidecar.allocator.state
    assert state.roles.path[DEEPEST] == f"r/r/r/role {DEEPEST}"
    assert module.sidecar.counts.mended == {"role.path": DEEP - DEPTH_MAX}
    assert module.sidecar.sessions[module.number].state is SessionState.STREAMING
    module.sidecar.allocator.check()


def test_holdings_count_against_the_quota_of_ancestors():
    module = begun()
    module.batch(SetQuota("r", {}, {"cpus": 0}))
    assert {framework for framework, _ in served(module)} == {1, 2}


def test_a_snapshot_may_have_such_roles():
    module = new_module()
    module.begin([Define(roles=chain(DEEP, 1)), AddFramework(1, FrameworkInfo("deep"), (DEEP,))])
    assert len(module.batch(cycle=True)) == 0  # it has no agent
    assert module.sidecar.sessions[module.number].state is SessionState.STREAMING


NAMES = st.sampled_from(["a", "b", "x" * 5, "y" * (TEXT_LENGTH_MAX // 2), "z" * TEXT_LENGTH_MAX])


@given(st.lists(st.lists(NAMES, min_size=1, max_size=8), max_size=4), st.integers(1, 6))
def test_any_roles_of_frameworks_can_be_bound(subscribed, depth_max):
    """Each replacement is below a bound role, has a unique name, and is not too deep."""
    paths = dict.fromkeys(
        "/".join(names[: end + 1]) for names in subscribed for end in range(len(names))
    )
    message = pb.DefineHandles()
    for handle, path in enumerate(paths, 1):
        message.roles.add(role=handle, path=path)
    marks = mend_event("define", message, depth_max)
    taken = [role.path for role in message.roles]
    assert len(set(taken)) == len(taken)
    assert len(marks) == sum(one != path for one, path in zip(taken, paths, strict=True))
    allocator = new_sidecar(limits=SessionLimits(role_depth=depth_max)).allocator
    allocator.step(Define(roles=dict(enumerate(taken, 1))))
    assert all(len(path) <= TEXT_LENGTH_MAX for path in taken)
    # Correcting it again changes nothing.
    assert mend_event("define", message, depth_max) == []

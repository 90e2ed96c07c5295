"""A checkpoint contains all state that later decisions depend on, in known types only.

After any history, an allocator restored from a checkpoint continues like the original: each event
has the same result, each cycle makes the same decisions, and the next checkpoint is equal.
"""

import copy
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from allocator.core import (
    AgentInfo,
    Allocator,
    Decisions,
    EventError,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    SetConstraint,
    SetDemand,
    SetQuota,
    Settings,
)
from allocator.core.books.agent_rules import AgentTraits, Rule
from allocator.core.books.state import State
from allocator.core.checkpoint import (
    CheckpointError,
    Column,
    Detached,
    nbytes_of,
    restore,
    to_columns,
)
from allocator.core.checkpoint.classes import derived, never_changes
from allocator.policies import build
from tests.core.session import Session
from tests.differential.history import POLICY_VERBS, History
from tests.differential.playing import SEEDS, agree, fresh, happenings
from tests.tiers import EVERYTHING

# Every type of value that a state may contain.

numbers = st.integers(-(2**70), 2**70)
texts = st.text(max_size=5)
dtypes = st.sampled_from([np.int64, np.int32, np.bool_, np.uint64, np.float64])
arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(
        dtype, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=4)
    )
)
kinds = st.builds(Kind, texts, st.booleans(), st.lists(texts, max_size=3).map(tuple))
atoms = st.one_of(
    st.none(), st.booleans(), numbers, st.floats(), texts, kinds, st.frozensets(texts)
)
keys = st.one_of(texts, numbers, st.tuples(numbers, numbers), kinds)
values = st.recursive(
    st.one_of(atoms, arrays, st.sets(numbers), st.sets(texts)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
    ),
    max_leaves=30,
)


def same(one: Any, other: Any) -> bool:
    """Strict equality: includes types and contents of arrays, and treats NaN as equal to itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, float):
        return np.float64(one).tobytes() == np.float64(other).tobytes()
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(values)
def test_everything_saved_is_restored(value):
    assert same(restore(to_columns([value]), [])[0], value)
    assert same(Detached(value).value, value)


@given(st.lists(values, max_size=4))
def test_equal_values_have_equal_columns(some):
    again = copy.deepcopy(some)
    assert same(columns(to_columns(again)), columns(to_columns(some)))


def columns(column: Column) -> tuple:
    """A column as plain values."""
    parts = [columns(part) for part in column.parts]
    return column.kind, column.count, list(column.texts), list(column.arrays), parts


def kept(allocator: Allocator) -> tuple:
    return columns(to_columns(allocator.kept()))


def resumed(allocator: Allocator) -> Allocator:
    """Another allocator, restored from a checkpoint of this one."""
    other = Allocator(build, Settings())
    other.resume(restore(to_columns(Detached(allocator.kept()).value), other.kept()))
    return other


def refusal(allocator: Allocator, event) -> str:
    """The error by which an allocator refuses an event; empty if it applies it."""
    try:
        allocator.step(event)
    except EventError as error:
        return str(error)
    return ""


class Doubled:
    """An allocator and a restored one; both receive the same events."""

    def __init__(self, allocator: Allocator) -> None:
        self.first = allocator
        self.second = resumed(allocator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.first, name)

    def step(self, event) -> None:
        said = [refusal(allocator, event) for allocator in (self.first, self.second)]
        assert said[0] == said[1]

    def advance(self, now_ms: int) -> None:
        self.first.advance(now_ms)
        self.second.advance(now_ms)

    def allocate(self, now_ms: int, agents: np.ndarray | None) -> Decisions:
        made, again = (each.allocate(now_ms, agents) for each in (self.first, self.second))
        assert (made.cycle, made.first_decision) == (again.cycle, again.first_decision)
        for name in ("framework", "role", "agent", "kind", "amount"):
            assert (getattr(made, name) == getattr(again, name)).all()
        return made


class KeptHistory(History):
    """A random history with a second allocator, which is restored from time to time."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, special=True, any_policy=True)
        self.pair.core.settings.learn_demand = True
        self.both: Any = Doubled(self.pair.core)
        both: Any = self.both
        self.pair.core = both
        # Looking at filters would change one of the two.
        self.pair.snapshots = None

    def a_policy(self) -> PolicySpec:
        name, selection = self.one("drf", "rps-dsf", "tsf"), self.one("random", "joint")
        return PolicySpec(name, selection=selection, flat=self.chance(0.5))

    def tell(self, verb: str, *arguments: Any) -> None:
        super().tell(verb, *arguments)
        if isinstance(self.pair.core, Doubled):
            assert same(kept(self.both.first), kept(self.both.second))

    def restore_it(self) -> None:
        self.both.second = resumed(self.both.first)

    def limit_unknown_resource(self) -> None:
        """The resource gets a column, and limits no client."""
        limit = self.random.randint(0, 5)
        self.both.step(SetQuota(self.one("a", "b"), {}, {f"gold{limit}": limit * 1000}))

    def set_demand(self) -> None:
        if self.both.settings.demands:
            self.both.step(SetDemand("nobody", "", self.one({}, None, {"disk": 1000})))


KEPT_VERBS = {**POLICY_VERBS, "restore_it": 4, "limit_unknown_resource": 2, "set_demand": 1}


@settings(fresh, max_examples=20 if EVERYTHING else 4)
@given(seed=SEEDS, happening=happenings(KEPT_VERBS))
def test_a_restored_allocator_continues_like_the_original(seed, happening):
    agree(partial(KeptHistory, seed), happening)


# The checkpoint as a copy of the state.


def busy() -> Session:
    """A session with some of every feature."""
    session = Session(PolicySpec("drf", mode="characterised"), {1: "a", 2: "b"}, {"region": "here"})
    for agent in range(1, 9):
        session.agent(agent, 4, 8, attributes={"zone": f"z{agent % 2}"})
    for framework in range(1, 5):
        session.framework(framework, 1 + framework % 2, minimum={"a": ["cpus:0.1"]})
    session.allocator.step(SetConstraint("a", "", "zone=z0"))
    session.allocator.step(SetDemand("", "", {"cpus": 1000}))
    session.allocator.step(SetQuota("a", {"cpus": 1000}, {"cpus": 9000}))
    go_on(session, 1000)
    return session


def go_on(session: Session, now_ms: int) -> list:
    made = session.cycle(now_ms)
    for offer in made[::2]:
        session.give_back(offer, 5000)
    for offer in made[1::2]:
        session.use(offer)
    return made


def test_a_copy_does_not_change_with_the_core():
    """A checkpoint by a deep copy: the slow way."""
    session = busy()
    slow = copy.deepcopy(session.allocator.kept())
    detached = Detached(session.allocator.kept())
    before = columns(to_columns(detached.value))
    assert same(before, columns(to_columns(slow)))
    session.agent(20, 4, 8)
    session.framework(9, 1)
    session.allocator.step(SetConstraint("a", "", None))
    assert go_on(session, 9000)
    assert same(columns(to_columns(detached.value)), before)
    assert not same(columns(to_columns(session.allocator.kept())), before)
    total = sum(array.nbytes for array in arrays_in(detached.value))
    assert 0 < nbytes_of(detached.value) == total


def arrays_in(value: Any) -> list[np.ndarray]:
    """All arrays that an object refers to, directly or not."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [array for pair in value.items() for each in pair for array in arrays_in(each)]
    if isinstance(value, list | tuple | set | frozenset):
        return [array for each in value for array in arrays_in(each)]
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    names = [name for name in names if name not in derived(type(value))]
    return [array for name in names for array in arrays_in(getattr(value, name))]


def test_a_copy_shares_no_array_and_no_two_places_share_one():
    """Otherwise a change that both see would reach only one of them after a restore."""
    state = busy().allocator.kept()
    own = [array for array in arrays_in(state) if array.size and array.flags.writeable]
    copies = [array for array in arrays_in(Detached(state).value) if array.size]
    assert len(own) > 50
    for index, array in enumerate(own):
        assert not any(np.shares_memory(array, other) for other in own[:index])
        assert not any(np.may_share_memory(array, other) for other in copies)


@given(
    st.lists(st.tuples(st.integers(0, 2**18 + 99), st.sampled_from([1.0, -0.0])), max_size=3),
    st.integers(0, 2**18 + 99),
)
def test_a_copy_of_a_large_array_is_a_copy(written, more):
    """Runs of zeros are left out of a checkpoint; negative zeros must be kept."""
    array = np.zeros(2**18 + more)
    for place, value in written:
        array[place % len(array)] = value
    assert same(Detached(array).value, array)
    assert same(Detached(array.reshape(1, -1)[:, ::2]).value, array.reshape(1, -1)[:, ::2])


@pytest.mark.parametrize("kind", [Kind, AgentInfo, FrameworkInfo, AgentTraits, Rule])
def test_immutable_types_are_not_copied(kind):
    assert never_changes(kind)


@pytest.mark.parametrize("kind", [list, dict, set, np.ndarray, Settings, PolicySpec, State, Any])
def test_mutable_types_are_copied(kind):
    assert not never_changes(kind)


def test_every_attribute_of_an_allocator_is_saved_or_rebuilt():
    """A new attribute must be listed here, because later decisions may depend on it."""
    session = busy()
    kept_here = {"cycle", "last_cycle", "state"}
    of_the_settings = {"_build", "_policy", "_planning_policy"}
    of_the_host = {"_around_cycle", "_decide", "_overruled", "trail"}
    made_of_the_state = {"_snapshots"}
    of_one_message = {"_overruled"}  # a replay sets it before each message
    of_planning = {"plan_source"}  # plans that were adopted are part of the state
    of_one_cycle = {"decided"}  # for recording only
    anew = of_the_settings | of_the_host | made_of_the_state | of_one_message | of_planning
    assert set(vars(session.allocator)) == kept_here | anew | of_one_cycle


def test_derived_data_is_not_saved_and_is_recomputed():
    session = busy()
    before = kept(session.allocator)
    session.state.agents.version += 1
    changed_once = kept(session.allocator)
    assert session.state.total_by_kind()[0] == 32_000
    assert same(kept(session.allocator), changed_once), "whoever asks changes nothing"
    assert not same(before, changed_once)
    other = resumed(session.allocator)
    assert other.state.total_by_kind()[0] == 32_000
    assert [level.tolist() for level in other.state.roles.by_depth()] == [[1, 2]]


def test_queries_do_not_change_the_books():
    session = busy()
    session.world.roles("a/new")
    before = kept(session.allocator)
    assert session.allocator.problem() is not None
    session.allocator.quota_use()
    session.allocator.consumed_in("a")
    assert same(kept(session.allocator), before)


# State that cannot be saved or restored.


@dataclass
class Foreign:
    """A class outside the core."""

    value: int = 0


@pytest.mark.parametrize(
    "unknown",
    [
        Foreign(),
        threading.Lock(),
        lambda: 0,
        object,
        b"bytes",
        OrderedDict(),
        1j,
        np.array(["text"]),
        np.array([object()]),
        {frozenset({1}), frozenset({2})} | {("a", 1), (1, "a")},
        Options,
        Allocator(build, Settings()),
    ],
    ids=lambda each: type(each).__name__,
)
def test_unknown_values_are_refused(unknown):
    allocator = busy().allocator
    allocator.state.new_thing = unknown  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError):
        to_columns(allocator.kept())


def test_a_table_may_get_a_new_array():
    allocator = busy().allocator
    allocator.state.clients.colour = np.arange(7)  # type: ignore[attr-defined]
    other = Allocator(build, Settings())
    with pytest.raises(CheckpointError, match=r"ClientTable' differs in colour"):
        other.resume(restore(to_columns(allocator.kept()), other.kept()))
    other.state.clients.colour = np.arange(0)  # type: ignore[attr-defined]
    other.resume(restore(to_columns(allocator.kept()), other.kept()))
    assert (other.state.clients.colour == np.arange(7)).all()  # type: ignore[attr-defined]


def changed(column: Column, title: str, **change: Any) -> Column:
    """A checkpoint with changed columns of one class."""
    if column.kind == "object" and column.texts[0].endswith(title):
        return replace(column, **change)
    return replace(column, parts=[changed(part, title, **change) for part in column.parts])


def wrong_type(column: Column, name: str, array: np.ndarray) -> Column:
    """A checkpoint with a changed array for one attribute."""
    if column.kind == "object" and name in column.texts[1:]:
        parts = list(column.parts)
        parts[list(column.texts).index(name) - 1] = Column("array", column.count, arrays=[array])
        return replace(column, parts=parts)
    return replace(column, parts=[wrong_type(part, name, array) for part in column.parts])


NONE = Column("none", 1)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda root: changed(root, ":State", texts=["builtins:eval"]),
            "unknown class 'builtins:eval'",
        ),
        (lambda root: changed(root, ":State", texts=["os:system"]), "unknown class 'os:system'"),
        (
            lambda root: changed(root, ":State", texts=["allocator.core.books.state:np"]),
            "unknown class",
        ),
        (
            lambda root: changed(root, ":State", texts=["allocator.core.allocator:Allocator"]),
            "a checkpoint must not contain ",
        ),
        (
            lambda root: changed(root, ":Ledger", kind="pickle"),
            "unknown kind of column 'pickle'; is it of another version?",
        ),
        (
            lambda root: changed(root, ":Ledger", parts=[NONE]),
            "Ledger._rows is a NoneType, it must be a KeyMap",
        ),
        (
            lambda root: changed(root, ":OpenDecisions", parts=[]),
            "the checkpoint is inconsistent: ",
        ),
        (lambda root: changed(root, ":Books", count=2), "expected 2 values, found 1"),
        (lambda root: changed(root, ":State", kind="none"), "expected State, found NoneType"),
        (
            lambda root: wrong_type(root, "capacity", np.zeros((1, 1), np.int32)),
            "AgentTable.capacity is an array of .*int32",
        ),
        (
            lambda root: wrong_type(root, "held", np.zeros(3, np.int64)),
            "Books.held is an array of ",
        ),
        (
            lambda root: wrong_type(root, "_spare", np.zeros(3, np.int64)),
            "_spare is a ndarray, it must be a ",
        ),
        (lambda _root: Column("none", 2**64 - 1), "the checkpoint is inconsistent: "),
        (lambda _root: to_columns("text"), "expected tuple, found str"),
        (
            lambda _root: Column("text", 1, ["x"], [np.array([5])]),
            "has an index out of range",
        ),
        (
            lambda _root: Column("list", 1, arrays=[np.array([-1])], parts=[NONE]),
            "expected -1 items, found 1",
        ),
        (lambda _root: Column("int", 1, arrays=[np.array([0.5])]), "a column of int holds float64"),
    ],
)
def test_a_wrong_checkpoint_is_rejected_and_changes_nothing(damage, said):
    root = to_columns(busy().allocator.kept())
    other = Allocator(build, Settings())
    before = kept(other)
    with pytest.raises(CheckpointError, match=said):
        other.resume(restore(damage(root), other.kept()))
    assert same(kept(other), before)

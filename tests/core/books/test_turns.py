"""Turns among equal scores: the role whose framework has waited longest is served first."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    AddFramework,
    FrameworkInfo,
    PolicySpec,
    RemoveFramework,
    Revive,
    SetConstraint,
    Suppress,
    UpdateFramework,
)
from allocator.core.books.turns import behind, line_up
from tests.core.session import Session

SEVERAL = FrameworkInfo("several")


@given(st.data())
def test_the_line_is_what_its_slow_twin_says(data: st.DataObject):
    leaves, inner = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    root = leaves + inner - 1
    parent = [data.draw(st.integers(max(node + 1, leaves), root)) for node in range(root)] + [-1]
    own = [data.draw(st.integers(0, 5)) for _ in range(root)] + [5]
    framework = [data.draw(st.integers(own[leaf], 8)) for leaf in range(leaves)]
    place = line_up(np.array(parent), np.array(framework), np.array(own)).tolist()
    last = max(5, *framework)

    def below(node: int) -> list[int]:
        children = [each for each in range(root) if parent[each] == node]
        found = [turn for child in children for turn in below(child)]
        return [framework[node]] if node < leaves else found

    # First is the role of the framework that waits longest, counted from the role's own last turn.
    key = [(max(own[node], min(below(node), default=last)), own[node]) for node in range(root)]
    assert place[root] == 0 == max(place)
    assert sorted(range(root), key=lambda node: (place[node], node)) == sorted(
        range(root), key=lambda node: (key[node], node)
    )


LEAVES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=12
)


@given(leaves=LEAVES)
def test_each_role_of_a_framework_stands_behind_those_that_wait_for_longer(leaves):
    belongs_to, top, own = map(np.array, zip(*leaves, strict=True))
    found = behind(belongs_to, top, own, np.arange(len(own))).tolist()
    most = len({framework for framework, *_ in leaves})
    for role, (framework, *turns) in enumerate(leaves):
        before = [
            other
            for other, (others, *other_turns) in enumerate(leaves)
            if others == framework and (other_turns, other) < (turns, role)
        ]
        assert found[role] == min(len(before), most)


class Cluster(Session):
    """One agent; framework 1 has a role of its own, and declines every offer."""

    def __init__(self, *roles: str, flat: bool = False) -> None:
        paths = dict(enumerate(("honest", *roles), start=1))
        super().__init__(PolicySpec("drf", "listed", flat=flat), roles=paths)
        self.agent(1, 4, 8, capabilities=("HIERARCHICAL_ROLE",))
        self.framework(1, 1)
        self._turn = 0

    def comes(self, framework: int, *roles: int) -> None:
        """Add a framework, possibly with several roles."""
        self.allocator.step(AddFramework(framework, SEVERAL, roles))

    def is_in(self, framework: int, *roles: int) -> None:
        """Change the roles of a framework."""
        self.allocator.step(UpdateFramework(framework, SEVERAL, roles))

    def serves(self) -> tuple[int, int]:
        """Offer the agent, which is declined; returns the framework and the role."""
        self._turn += 1
        (offer,) = self.cycle(1000 * self._turn)
        self.give_back(offer)
        return offer[:2]

    def longest_wait(self, do: Callable[[int], None], turns: int = 60) -> int:
        """The maximum number of consecutive cycles without an offer to framework 1."""
        longest = waits = 0
        for turn in range(turns):
            do(turn)
            waits = 0 if self.serves()[0] == 1 else waits + 1
            longest = max(longest, waits)
        return longest


MODES = pytest.mark.parametrize("flat", [False, True], ids=["by roles", "flat"])
MANY = tuple(f"r{number}" for number in range(60))
ROLES = tuple(range(2, 62))


@MODES
def test_a_framework_of_many_roles_has_one_turn_at_a_time(flat):
    cluster = Cluster(*MANY, flat=flat)
    cluster.comes(2, *ROLES)
    assert cluster.longest_wait(lambda _turn: None) == 1


@MODES
def test_its_roles_have_their_turns_one_after_the_other(flat):
    cluster = Cluster(*MANY[:3], flat=flat)
    cluster.comes(2, 2, 3, 4)
    served = [cluster.serves() for _ in range(12)]
    assert [role for framework, role in served if framework == 2] == [2, 3, 4, 2, 3, 4]


def test_of_its_roles_those_below_one_role_have_their_turns_together():
    cluster = Cluster("a", "a/b", "c")
    cluster.comes(2, 2, 3, 4)
    served = [cluster.serves() for _ in range(16)]
    assert [role for framework, role in served if framework == 2] == [2, 4, 3, 4, 2, 4, 3, 4]


@MODES
def test_reviving_does_not_move_a_client_to_the_front(flat):
    cluster = Cluster(*MANY, flat=flat)
    cluster.comes(2, *ROLES)

    def role_by_role(_turn: int) -> None:
        for role in ROLES:
            cluster.allocator.step(Suppress(2, (role,)))
            cluster.allocator.step(Revive(2, (role,)))

    assert cluster.longest_wait(role_by_role) == 1


@MODES
def test_nor_by_other_roles(flat):
    cluster = Cluster(*MANY, flat=flat)
    cluster.comes(2, 2)
    assert cluster.longest_wait(lambda turn: cluster.is_in(2, ROLES[turn])) == 1


@MODES
def test_nor_by_coming_again_and_again(flat):
    cluster = Cluster("r", flat=flat)
    cluster.comes(2, 2)

    def come_again(_turn: int) -> None:
        cluster.allocator.step(RemoveFramework(2))
        cluster.comes(2, 2)

    assert cluster.longest_wait(come_again) <= 1


def test_nor_for_one_in_the_role_that_takes_nothing():
    """Holds while it waits ever longer, and others without history join and leave."""
    cluster = Cluster("r")
    cluster.framework(3, 2, name="nowhere")
    cluster.allocator.step(SetConstraint("", "nowhere", "zone=nowhere"))
    cluster.comes(2, 2)

    def come_again(_turn: int) -> None:
        cluster.allocator.step(RemoveFramework(2))
        cluster.comes(2, 2)

    assert cluster.longest_wait(come_again) <= 1


def test_a_newcomer_in_a_role_does_not_move_others_back():
    cluster = Cluster("r")
    cluster.comes(2, 2)

    def come_again(turn: int) -> None:
        if turn:
            cluster.allocator.step(RemoveFramework(3))
        cluster.comes(3, 1)

    assert cluster.longest_wait(come_again) <= 2


@MODES
def test_a_newcomer_counts_as_just_served(flat):
    cluster = Cluster(*MANY[:3], flat=flat)
    for framework in (2, 3):
        cluster.comes(framework, framework)
    served = [cluster.serves()[0] for _ in range(7)]
    cluster.comes(4, 4)
    assert served == [1, 2, 3, 1, 2, 3, 1]
    assert [cluster.serves()[0] for _ in range(5)] == [2, 3, 4, 1, 2]


def test_a_role_with_many_waiting_clients_has_one_turn():
    cluster = Cluster("r")
    for framework in (2, 3):
        cluster.comes(framework, 2)
    assert [cluster.serves()[0] for _ in range(6)] == [1, 2, 1, 3, 1, 2]


class Places(Session):
    """Two agents; framework 1 has many roles, three others one each. All decline for a while."""

    def __init__(self, *, flat: bool, **settings: Any) -> None:
        paths = dict(enumerate(("a", "b", "c", *MANY), start=1))
        super().__init__(PolicySpec("drf", "listed", flat=flat), roles=paths, **settings)
        for agent in (1, 2):
            self.agent(agent, 4, 8)
        self.allocator.step(AddFramework(1, SEVERAL, tuple(range(4, 64))))
        for framework in (2, 3, 4):
            self.framework(framework, framework - 1)

    def longest_wait(self) -> int:
        """The maximum number of consecutive cycles without an offer to one of the others."""
        waits, longest = dict.fromkeys((2, 3, 4), 0), 0
        for turn in range(1, 40):
            offers = self.cycle(1000 * turn)
            for offer in offers:
                self.give_back(offer)
            served = {offer[0] for offer in offers}
            waits = {each: 0 if each in served else count + 1 for each, count in waits.items()}
            longest = max(longest, *waits.values())
        return longest


@MODES
def test_a_framework_of_many_roles_takes_one_of_several_places(flat):
    assert Places(flat=flat).longest_wait() == 1


@MODES
def test_roles_that_refused_everything_change_nothing_for_the_others(flat):
    cluster = Places(flat=flat, patience_cycles=0)
    for turn in range(1, 200):
        offers = cluster.cycle(1000 * turn)
        for offer in offers:
            refuses = offer[0] == 1 and offer[1] < 34
            cluster.give_back(offer, 10_000_000 if refuses else -1)
        served = [offer[0] for offer in offers]
        assert len(served) == len(set(served)) == 2

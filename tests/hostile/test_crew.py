"""No manner of attack does harm: sessions continue, honest tenants are served, cost is bounded.

Each is played against the module's brain with the core, and against the sidecar alone.
"""

import resource
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import pytest

from tests.hostile import wired
from tests.hostile.crew import CREW
from tests.hostile.measuring import INTERVALS, Figures
from tests.hostile.simulated import Stage
from tests.hostile.words import Manner, refusal_ms

MORE_BYTES = 2 * 2**30
"""Address space limit, so that unbounded growth fails the test instead of the machine."""

WAIT_MAX = 3
MEMORY_MIB_MAX = 100
ALONE_MIB_MAX = 300
"""For the sidecar alone, which receives 70,000 roles; a module forwards 7,000 at most."""

LINES_MAX = 20_000
CORE_S_MAX = 10.0
"""Limit of processor time for six intervals with the tenants; the most expensive manners take a
sixth of it.
"""

PAGES_S_MAX = 15.0
"""Limit of processor time for the status page, `/metrics` and an explanation; the most expensive
take a sixth, on a slow and busy machine two fifths. Unbounded ones take minutes.
"""

FEW_AGENTS, LONGER = 2, 12
"""Number of agents, too few for all frameworks, and number of intervals."""

ONE_TENANT = [each for each in CREW if len([*each.frameworks()]) == 1 and not [*each.agents()]]

DEAR = frozenset(
    {
        "agents-enormous", "coming-and-going", "constraints-everywhere", "decline-for-a-year",
        "demand-overflow", "filter-roles", "names-alike", "revive-often", "revive-role-by-role",
        "roles-deep", "roles-more-than-fit", "roles-reserved", "roles-wide", "update-constraints",
        "update-roles",
    }
)  # fmt: skip
"""Manners that cost half a second of processor time or more; in the first tier `roles-many`
represents them.
"""

ALONE = frozenset(
    {
        "agent-invented-kinds", "agent-ranges", "agents-tiny", "constraint-values",
        "decline-odd", "filter-amounts", "labels-odd", "names-alike", "reserve-labelled",
        "role-long",
    }
)  # fmt: skip
"""Manners of the first tier against the sidecar alone: one for each type of input."""


def each_of(crew: Iterable[Manner], first: Container[str]) -> pytest.MarkDecorator:
    """Parametrize a test with manners; all but the named ones are of the second tier."""
    rows = [
        pytest.param(each, id=each.name, marks=[] if each.name in first else [pytest.mark.long])
        for each in crew
    ]
    return pytest.mark.parametrize("manner", rows)


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + MORE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_there_are_enough_manners():
    assert {each.name for each in CREW} > DEAR | ALONE
    assert len({each.name for each in CREW}) == len(CREW) >= 30
    assert all(each.does for each in CREW)


@each_of(CREW, {each.name for each in CREW} - DEAR)
def test_module_and_core_withstand_it(manner: Manner, brain_library: Path):
    stage = Stage(manner, brain_library)
    _hold(stage.play())
    stage.close()


@each_of(CREW, ALONE)
def test_the_sidecar_alone_withstands_it(manner: Manner):
    _hold(wired.play(manner), ALONE_MIB_MAX)


@each_of(ONE_TENANT, {"filter-of-others", "request-odd", "reserve-labelled"})
def test_an_honest_framework_has_its_turns_beside_one_tenant(manner: Manner, brain_library: Path):
    """Without a guarantee and without holdings, they take turns."""
    stage = Stage(manner, brain_library, FEW_AGENTS, guarantee=False)
    assert stage.play(LONGER, pages=False).wait <= WAIT_MAX
    stage.close()


@each_of(ONE_TENANT, {"filter-deep", "labels-many", "revive-foreign"})
def test_an_honest_framework_has_its_turns_where_no_module_bounds_the_tenant(manner: Manner):
    figures = wired.play(manner, FEW_AGENTS, LONGER, guarantee=False, pages=False)
    assert figures.wait <= WAIT_MAX


OWED = [each for each in CREW if each.guarantees]


@pytest.mark.parametrize("manner", OWED, ids=lambda manner: manner.name)
def test_an_honest_framework_has_its_turns_beside_unmet_guarantees(
    manner: Manner, brain_library: Path
):
    """Headroom for them must not exceed the unmet guarantees, whatever the total."""
    stage = Stage(manner, brain_library, guarantee=False)
    assert stage.play(pages=False).wait <= WAIT_MAX
    stage.close()
    assert wired.play(manner, guarantee=False, pages=False).wait <= WAIT_MAX


GREEDY = [each for each in CREW if "reserv" in each.name or "kinds" in each.name]


@each_of(GREEDY, {"agent-reservations", "reserve-labelled"})
def test_honest_reservations_beside_hostile_tenants_are_served(manner: Manner, brain_library: Path):
    """A reservation made after the tenants came stays a separate kind, and is offered as usual."""
    stage = Stage(manner, brain_library)
    _hold(stage.play())
    stage.world.reserves_honestly = True
    assert stage.play_on(range(INTERVALS, INTERVALS + 8)) <= WAIT_MAX
    assert not stage.ended
    assert not stage.brain.run("check")
    stage.sidecar.allocator.check()
    kinds = [each for each in stage.sidecar.allocator.state.space.kinds if each is not None]
    own = [each for each in kinds if each.reserved_role == "honest"]
    assert [(each.name, each.rest) for each in own] == [("cpus", False)]
    assert stage.world.reserved >= 2
    stage.close()


def test_some_manners_are_greedy():
    assert len(GREEDY) >= 6


def test_some_manners_have_an_unmet_guarantee():
    assert OWED


def _hold(figures: Figures, memory_mib_max: int = MEMORY_MIB_MAX) -> None:
    assert not figures.ended, figures.set_aside
    assert figures.wait <= WAIT_MAX, "the honest framework waits"
    assert figures.memory_mib <= memory_mib_max
    assert max(figures.lines.values()) < LINES_MAX, figures.lines
    assert not figures.negative
    assert figures.core_s <= CORE_S_MAX
    assert figures.brain_s <= CORE_S_MAX
    assert figures.page_s <= PAGES_S_MAX


def test_odd_durations_of_refusals_are_taken_as_a_module_takes_them():
    said = [float("nan"), -1.0, 0.5, 1e308]
    assert list(map(refusal_ms, said)) == [5000, 5000, 500, 31_536_000_000]

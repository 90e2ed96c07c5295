"""Operators and frameworks observe the same with our allocator as with Mesos's own."""

import pytest

from tests.cluster import (
    scenarios_agents,
    scenarios_frameworks,
    scenarios_metrics,
    scenarios_operator,
    scenarios_places,
    scenarios_tasks,
)
from tests.cluster.mesos import Mesos, NotFoundError
from tests.cluster.scenario import ALLOCATORS, SCENARIOS, Outcome, observe

pytestmark = pytest.mark.long
ROOMS = (
    scenarios_agents,
    scenarios_frameworks,
    scenarios_metrics,
    scenarios_operator,
    scenarios_places,
    scenarios_tasks,
)
FILES = {each.__name__ for each in ROOMS}
NAMES = [name for name, each in SCENARIOS.items() if each.function.__module__ in FILES]
_usual: dict[str, Outcome] = {}


def usual(mesos: Mesos, name: str) -> Outcome:
    """Observations with Mesos's own allocator."""
    if name not in _usual:
        _usual[name] = observe(mesos, name, "built-in")
    return _usual[name]


@pytest.mark.parametrize("allocator", ALLOCATORS[1:])
@pytest.mark.parametrize("name", NAMES)
def test_observations_equal_those_with_the_built_in_allocator(mesos, name, allocator):
    try:
        expected = usual(mesos, name)
    except NotFoundError as error:
        pytest.skip(str(error))
    assert observe(mesos, name, allocator) == expected

"""A real master with our module: every policy, faults of the sidecar, a hostile one; short runs.

`python -m tests.cluster.storm` does the same for any length of time.
"""

import pytest

from allocator.policies import MODES, POLICIES
from tests.cluster.crowd import crowd
from tests.cluster.experiments import be_hostile, storm, try_policies

pytestmark = pytest.mark.long


@pytest.mark.timeout(3600)  # 26 combinations, half a minute each on two busy processors
def test_books_agree_under_every_policy(mesos):
    figures = try_policies(mesos, seconds=4)
    assert len(figures) == len(POLICIES) * len(MODES)
    assert all(each.tasks and each.executed for each in figures)


def test_a_storm_of_faults_does_no_harm(mesos):
    figures = storm(mesos, rounds=6)
    assert figures.samples > 50
    assert figures.states["FINISHED"] > 10
    # A stopped sidecar does not answer a cycle, which is lost; the module decides the next one.
    assert max(each.gap_s for each in figures.faults) < 2.5


def test_a_hostile_sidecar_does_no_harm(mesos):
    figures = be_hostile(mesos, seconds=40)
    assert figures.rows > 500
    assert figures.samples > 50
    # A tenth or more must pass all gates, so that the code behind the gates is tested, too.
    assert figures.outcomes["offered"] + figures.outcomes["partial"] > figures.rows / 10
    assert sum(figures.ends.values()) > 1
    asked_for = {"RESERVE", "UNRESERVE", "CREATE", "DESTROY", "GROW_VOLUME", "SHRINK_VOLUME"}
    assert asked_for <= figures.operations.keys()


def test_a_crowd_shares_one_machine(mesos):
    figures = crowd(mesos, agents=40, frameworks=10, seconds=30)
    assert figures.states["FINISHED"] > 2
    assert figures.samples > 10
    assert figures.most - figures.fewest <= 1

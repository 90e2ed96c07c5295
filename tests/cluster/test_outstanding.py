"""A framework that keeps its offers does not make others' offers useless."""

import pytest

from tests.cluster.amounts import Amounts, amounts_of
from tests.cluster.framework import Framework
from tests.cluster.scenario import all_out
from tests.cluster.world import World

pytestmark = pytest.mark.long
TASK = {"allocator.demand": "cpus:1;mem:128;ports:2"}


def _offers(framework: Framework) -> list[Amounts]:
    with framework.lock:
        return [amounts_of(offer["resources"]) for offer in framework.offers.values()]


@pytest.mark.parametrize("mode", ["oblivious", "characterised"])
def test_ports_are_left_to_others(mesos, mode):
    configuration = f'[policy]\nmode = "{mode}"\n[starvation]\noutstanding_max = 0.25\n'
    with World(mesos, agents=4, interval="500ms", configuration=configuration) as world:
        hoarder = world.framework("hoarder", "ads", labels=TASK)
        kept = all_out([hoarder])
        other = world.framework("other", "eng", labels=TASK)
        offered = all_out([other])
        world.check_master()
        assert 0 < kept["cpus"] <= 4000
        assert 0 < kept["ports"] <= 100_000
        assert offered["cpus"] > 0
        assert all(each["ports"] > 0 for each in _offers(other) if each["cpus"] > 0)

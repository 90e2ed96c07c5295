"""The order in which roles are served, as in Mesos's tests of its sorter."""

import pytest

from tests.conformance.mesos import mesos
from tests.conformance.ranking import Ranking
from tests.world.amounts import resources, revocable, volume
from tests.world.world import World


@pytest.mark.parametrize(
    "paths",
    [
        {},
        {name: f"{name}/{name}" for name in "abcdef"},
        {
            "a": "a/a/a/a/a",
            "b": "b/b/b/b",
            "c": "c/c/c",
            "d": "d/d",
            "e": "e/e/e/e/e/e",
            "f": "f/f",
        },
    ],
    ids=["flat", "shallow", "deep"],
)
@mesos("DRFSorterTest.DRF", "DRFSorterTest.ShallowHierarchy", "DRFSorterTest.DeepHierarchy")
def test_roles_come_in_order_of_their_dominant_shares(paths):
    ranking = Ranking()
    path = {name: paths.get(name, name) for name in "abcdef"}

    def order() -> str:
        return "".join(role[0] for role in ranking.order())

    assert order() == ""
    ranking.add(path["a"], "cpus:5;mem:5")
    ranking.add(path["b"], "cpus:6;mem:6")
    assert order() == "ab"
    ranking.add(path["c"], "cpus:1;mem:1")
    ranking.add(path["d"], "cpus:3;mem:1")
    assert order() == "cdab"
    ranking.remove(path["a"])
    ranking.free(path["b"], "cpus:4;mem:4")
    assert order() == "cbd"
    ranking.add(path["e"], "cpus:1;mem:5")
    ranking.resize("cpus:50;mem:100")
    assert order() == "cbed"
    ranking.resize("cpus:50;mem:200")
    ranking.add(path["f"], "cpus:5;mem:1")
    ranking.allocate(path["c"], "mem:15")
    assert order() == "ebdcf"
    ranking.deactivate(path["d"])
    assert order() == "ebcf"
    ranking.activate(path["d"])
    assert order() == "ebdcf"


@mesos("DRFSorterTest.WDRF")
def test_shares_are_divided_by_weights():
    ranking = Ranking()
    ranking.add("a", "cpus:5;mem:5")
    ranking.add("b", "cpus:6;mem:6", weight=2)
    assert ranking.order() == ["b", "a"]
    ranking.add("c", "cpus:4;mem:4")
    assert ranking.order() == ["b", "c", "a"]
    ranking.add("d", "cpus:10;mem:20", weight=10)
    assert ranking.order() == ["d", "b", "c", "a"]
    ranking.remove("b")
    assert ranking.order() == ["d", "c", "a"]
    ranking.allocate("d", "cpus:10;mem:25")
    assert ranking.order() == ["c", "d", "a"]
    ranking.add("e", "cpus:1;mem:1", weight=0.1)
    assert ranking.order() == ["c", "d", "a", "e"]
    ranking.remove("a")
    assert ranking.order() == ["c", "d", "e"]


@mesos("DRFSorterTest.UpdateWeight")
def test_a_new_weight_changes_the_order():
    ranking = Ranking()
    ranking.add("a", "cpus:5;mem:5")
    ranking.add("b", "cpus:6;mem:6")
    assert ranking.order() == ["a", "b"]
    ranking.world.weights(b=2)
    assert ranking.order() == ["b", "a"]


@mesos("DRFSorterTest.AllocationCountTieBreak")
def test_of_equal_shares_the_one_served_longest_ago_comes_first():
    """Mesos counts allocations instead, so a framework that keeps reregistering is always first."""
    ranking = Ranking()
    for role in "abcde":
        ranking.add(role, "cpus:3;mem:3")
    ranking.serve("c", 2)
    ranking.serve("d", 1)
    assert ranking.order() == ["a", "b", "e", "c", "d"]
    ranking.free("c", "cpus:3;mem:3")
    assert ranking.order() == ["c", "a", "b", "e", "d"]
    ranking.serve("c", 1)
    ranking.allocate("c", "cpus:3;mem:3")
    assert ranking.order() == ["a", "b", "e", "d", "c"]
    ranking.deactivate("c")
    ranking.activate("c")
    assert ranking.order() == ["a", "b", "e", "d", "c"]
    ranking.serve("a", 1)
    assert ranking.order() == ["b", "e", "d", "c", "a"]


@mesos("DRFSorterTest.HierarchicalAllocation")
def test_a_subtree_competes_with_all_that_is_held_below_it():
    ranking = Ranking()
    for role in ("a", "b/c", "b/d"):
        ranking.add(role)
    assert ranking.order() == ["a", "b/c", "b/d"]
    ranking.allocate("a", "cpus:6;mem:6")
    assert ranking.order() == ["b/c", "b/d", "a"]
    ranking.allocate("b/c", "cpus:4;mem:4")
    ranking.allocate("b/d", "cpus:3;mem:3")
    assert ranking.order() == ["a", "b/d", "b/c"]
    ranking.allocate("a", "cpus:2;mem:2")
    assert ranking.order() == ["b/d", "b/c", "a"]
    ranking.add("b/e/f")
    assert ranking.order() == ["b/e/f", "b/d", "b/c", "a"]
    ranking.allocate("b/e/f", "cpus:3.5;mem:3.5")
    assert ranking.order() == ["a", "b/d", "b/e/f", "b/c"]
    ranking.remove("b/e/f")
    assert ranking.order() == ["b/d", "b/c", "a"]
    ranking.free("b/c", "cpus:3;mem:3")
    assert ranking.order() == ["b/c", "b/d", "a"]
    ranking.add("b/e/f", "cpus:3.5;mem:3.5")
    assert ranking.order() == ["b/c", "b/d", "b/e/f", "a"]


@mesos("DRFSorterTest.HierarchicalIterationOrder")
def test_all_below_a_role_come_before_its_next_sibling():
    ranking = Ranking()
    for role in ("a/b", "c", "d", "d/e"):
        ranking.add(role)
    assert sorted(ranking.order()) == ["a/b", "c", "d", "d/e"]
    ranking.allocate("c", "cpus:8;mem:8")
    assert ranking.order()[-1] == "c"
    ranking.allocate("d", "cpus:3;mem:3")
    ranking.allocate("d/e", "cpus:2;mem:2")
    assert ranking.order() == ["a/b", "d/e", "d", "c"]
    ranking.allocate("a/b", "cpus:6;mem:6")
    assert ranking.order() == ["d/e", "d", "a/b", "c"]


@mesos("DRFSorterTest.AddChildToLeaf")
def test_a_role_competes_as_a_sibling_with_its_new_child():
    ranking = Ranking()
    ranking.add("a", "cpus:10;mem:10")
    ranking.add("b", "cpus:6;mem:6")
    assert ranking.order() == ["b", "a"]
    ranking.add("a/c", "cpus:5;mem:5")
    assert ranking.order() == ["b", "a/c", "a"]
    ranking.remove("a")
    assert ranking.order() == ["a/c", "b"]
    ranking.add("a", "cpus:10;mem:10")
    assert ranking.order() == ["b", "a/c", "a"]
    ranking.world.weights(**{"a/c": 0.2})
    assert ranking.order() == ["b", "a", "a/c"]
    ranking.world.weights(a=3)
    assert ranking.order() == ["a", "a/c", "b"]
    ranking.world.weights(**{"a/c": 1})
    assert ranking.order() == ["a/c", "a", "b"]


@mesos("DRFSorterTest.AddChildToInternal")
def test_a_role_with_children_gets_a_framework_of_its_own():
    ranking = Ranking()
    ranking.add("x/a", "cpus:10;mem:10")
    ranking.add("x/b", "cpus:6;mem:6")
    assert ranking.order() == ["x/b", "x/a"]
    ranking.add("x", "cpus:7;mem:7")
    assert ranking.order() == ["x/b", "x", "x/a"]
    ranking.add("z", "cpus:20;mem:20")
    assert ranking.order() == ["z", "x/b", "x", "x/a"]
    ranking.remove("x")
    assert ranking.order() == ["x/b", "x/a", "z"]


@mesos("DRFSorterTest.AddChildToInactiveLeaf")
def test_holdings_of_an_inactive_parent_count_against_its_child():
    ranking = Ranking()
    ranking.add("a", "cpus:10;mem:10")
    ranking.add("b", "cpus:6;mem:6")
    ranking.deactivate("a")
    assert ranking.order() == ["b"]
    ranking.add("a/c", "cpus:5;mem:5")
    assert ranking.order() == ["b", "a/c"]


@mesos(
    "CommonSorterTest.RemoveLeafCollapseParent", "CommonSorterTest.RemoveLeafCollapseParentInactive"
)
@pytest.mark.parametrize("inactive", [False, True])
def test_a_role_that_loses_its_child_is_as_it_was(inactive):
    ranking = Ranking()
    ranking.add("a", "cpus:10;mem:10")
    ranking.add("b", "cpus:6;mem:6")
    ranking.add("a/c", "cpus:5;mem:5")
    if inactive:
        ranking.deactivate("a")
    assert sorted(ranking.order()) == (["a/c", "b"] if inactive else ["a", "a/c", "b"])
    ranking.remove("a/c")
    assert ranking.order() == (["b"] if inactive else ["b", "a"])


@mesos("CommonSorterTest.AllocationForInactiveClient")
def test_holdings_of_an_inactive_framework_are_known():
    ranking = Ranking()
    ranking.add("a", "cpus:2;mem:2")
    ranking.add("b", "cpus:3;mem:3")
    ranking.deactivate("a")
    assert ranking.world.held(ranking.clients["a"]) == resources("cpus:2;mem:2")
    assert ranking.world.held(ranking.clients["b"]) == resources("cpus:3;mem:3")


@mesos("DRFSorterTest.ChangeWeightOnSubtree")
def test_the_weight_of_a_role_is_that_of_all_below_it():
    ranking = Ranking()
    ranking.world.weights(a=2, b=3)
    ranking.add("a/x")
    ranking.add("b/y")
    assert ranking.order() == ["a/x", "b/y"]
    ranking.allocate("a/x", "cpus:10;mem:10")
    ranking.allocate("b/y", "cpus:10;mem:10")
    assert ranking.order() == ["b/y", "a/x"]
    ranking.add("b/z", "cpus:5;mem:5")
    # Both roles have a share of 0.05: 10 / 2 and 15 / 3.
    assert sorted(ranking.order()) == ["a/x", "b/y", "b/z"]
    ranking.add("b", "cpus:4;mem:4")
    assert ranking.order() == ["a/x", "b", "b/z", "b/y"]
    ranking.add("a/zz", "cpus:2;mem:2")
    assert ranking.order() == ["a/zz", "a/x", "b", "b/z", "b/y"]


@mesos("DRFSorterTest.SplitResourceShares")
def test_volumes_of_a_resource_add_up():
    disks = volume("10")
    ranking = Ranking(resources("cpus:100;mem:100;disk:90") + disks)
    ranking.add("a", "cpus:9;mem:9;disk:9")
    ranking.add("b", resources("cpus:9;mem:9") + disks)
    assert ranking.order() == ["a", "b"]


@mesos("DRFSorterTest.UpdateTotal")
def test_another_total_makes_another_resource_dominant():
    ranking = Ranking("cpus:10;mem:100")
    ranking.add("a", "cpus:2;mem:1")
    ranking.add("b", "cpus:1;mem:2")
    assert ranking.order() == ["b", "a"]
    ranking.resize("cpus:100;mem:10")
    assert ranking.order() == ["a", "b"]


@mesos("DRFSorterTest.MultipleAgentsUpdateTotal")
def test_the_order_changes_when_one_of_several_agents_grows():
    ranking = Ranking("cpus:5;mem:50")
    second = ranking.world.agent("cpus:5;mem:50")
    ranking.world.deactivate_agent(second)
    ranking.add("a", "cpus:2;mem:1")
    ranking.add("b")
    ranking.world.hold(ranking.clients["b"], "b", second, "cpus:1;mem:3")
    assert ranking.order() == ["b", "a"]
    ranking.resize("cpus:95;mem:50")
    assert ranking.order() == ["a", "b"]


@mesos("DRFSorterTest.RemoveResources")
def test_resources_removed_from_total_and_role_change_the_order():
    ranking = Ranking("cpus:11;mem:1")
    ranking.add("a", "cpus:6")
    ranking.add("b", "cpus:4")
    assert ranking.order() == ["b", "a"]
    ranking.free("a", "cpus:5")
    ranking.resize("cpus:6;mem:1")
    assert ranking.order() == ["a", "b"]


@mesos("DRFSorterTest.RevocableResources")
def test_revocable_resources_count_in_shares():
    ranking = Ranking(resources("cpus:10;mem:100") + revocable("cpus:10"))
    ranking.add("a", "cpus:2;mem:1")
    ranking.add("b", resources("cpus:1;mem:1") + revocable("cpus:9"))
    assert ranking.order() == ["a", "b"]


@mesos("DRFSorterTest.SharedResources", "DRFSorterTest.SameDominantSharedResourcesAcrossClients")
def test_a_shared_volume_counts_for_each_who_holds_it():
    disk = volume("100", role="role1", shared=True)
    ranking = Ranking(resources("cpus:100;mem:100;disk(role1):900") + disk)
    ranking.add("a", resources("cpus:5;mem:5") + disk)
    ranking.add("b", "cpus:6;mem:6")
    assert ranking.order() == ["b", "a"]
    ranking.add("c", resources("cpus:1;mem:1") + disk)
    # Among equal shares the newcomer, which has had no offer, is served first.
    assert ranking.order() == ["b", "c", "a"]
    ranking.remove("a")
    ranking.free("b", "cpus:4;mem:4")
    assert ranking.order() == ["b", "c"]
    ranking.add("d", resources("cpus:1;mem:5") + disk)
    assert ranking.order()[0] == "b"


@mesos("DRFSorterTest.SameSharedResourcesSameClient", "DRFSorterTest.SharedResourcesUnallocated")
def test_a_shared_volume_that_is_held_often_counts_once():
    disk = volume("50", role="role1", shared=True)
    ranking = Ranking(resources("cpus:100;mem:100;disk(role1):950") + disk)
    ranking.add("a", resources("cpus:2;mem:2") + disk)
    ranking.add("b", "cpus:6;mem:6")
    assert ranking.order() == ["a", "b"]
    ranking.allocate("a", disk + disk + disk)
    assert ranking.order() == ["a", "b"]
    ranking.allocate("a", "cpus:2;mem:2")
    ranking.free("b", "cpus:1.5;mem:1.5")
    # 50 of 1000 against 4.5 of 100, until all four copies are released.
    assert ranking.order() == ["b", "a"]
    ranking.free("a", disk + disk + disk)
    assert ranking.order() == ["b", "a"]
    ranking.free("a", disk)
    assert ranking.order() == ["a", "b"]


@mesos("CommonSorterTest.UpdateAllocation", "CommonSorterTest.UpdateAllocationNestedClient")
@pytest.mark.parametrize("role", ["a", "a/x"])
def test_a_conversion_leaves_the_share_as_it_is(role):
    world = World()
    framework = world.framework(role)
    world.agent("cpus:10;mem:10;disk:10")
    (offer,) = world.cycle()
    offer = world.convert(offer, "disk:5", volume("5"))
    assert world.held(framework) == resources("cpus:10;mem:10;disk:5") + volume("5")
    world.convert(offer, offer.resources, "")
    assert not world.held(framework)


@mesos("CommonSorterTest.MultipleAgents", "CommonSorterTest.MultipleAgentsUpdateAllocation")
def test_holdings_on_several_agents_are_summed_and_kept_separately():
    world = World()
    framework = world.framework("role")
    for _ in range(2):
        world.agent("cpus:2;mem:512;disk:10;ports:1001")
    offers = [world.convert(offer, "disk:5", volume("5")) for offer in world.cycle()]
    one = resources("cpus:2;mem:512;disk:5;ports:1001") + volume("5")
    assert [offer.resources for offer in offers] == [one, one]
    assert world.held(framework) == one + one
    world.decline(offers[0])
    assert world.held(framework) == one
    assert world.cycle() == [offers[0]]

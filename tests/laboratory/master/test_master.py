"""The emulated master sends the messages of Mesos's master, in the same order."""

from dataclasses import replace

import pytest

from allocator.core import (
    ActivateFramework,
    AddAgent,
    AddFilters,
    AddFramework,
    Hold,
    Outcomes,
    PolicySpec,
    Reason,
    Release,
    RemoveAgent,
    Settings,
    Transition,
    UpdateFramework,
)
from allocator.policies import build
from laboratory.frameworks.base import Identity
from laboratory.links.base import DirectLink
from laboratory.master import emulated
from laboratory.random_cluster.checks import differences, of_ledger
from laboratory.resources import AgentSpec
from tests.laboratory.master.books import of_state
from tests.laboratory.master.masters import Listener, master_for, run

WHOLE = (4000, 8_192_000)
HALF = (2000, 4_096_000)


class Recorder:
    """A framework that does nothing by itself."""

    def __init__(self, *roles):
        self.identity = Identity("recorder", roles or ("r",))
        self.offers = []
        self.lost_tasks = []

    def subscribed(self, master):
        self.master = master

    def offered(self, offers):
        self.offers += offers

    def lost(self, tasks):
        self.lost_tasks += tasks


@pytest.fixture
def link():
    return Listener()


def offer_whole(link, master, framework):
    """Register a framework, and offer it the whole agent."""
    link.script = [[], [(1, 1, 1, WHOLE)]]
    run(master, master.event_heap.now_ms)
    handle = master.subscribe(framework)
    run(master, master.event_heap.now_ms + 20)
    assert handle == 1
    link.names()
    return framework.offers[-1]


def test_a_new_agent_and_a_new_framework_trigger_cycles(link):
    master = master_for(link)
    run(master, 500)
    master.subscribe(Recorder())
    run(master, 2500)
    assert link.cycles == [(0, ()), (500, ()), (1000, ()), (2000, ())]
    first = [type(message) for message in link.messages]
    assert first[0] is AddAgent
    assert AddFramework in first


def test_an_agent_that_comes_later_triggers_a_cycle_for_itself(link):
    master = master_for(link)
    run(master, 300)
    for name in ("second", "third"):
        master.add_agent(AgentSpec(name, {"cpus": 1000}))
    run(master, 300)
    assert link.cycles[-1] == (300, (2, 3))


def test_the_end_of_a_task_and_a_decline_trigger_nothing(link):
    master = master_for(link)
    framework = Recorder()
    offer = offer_whole(link, master, framework)
    before = len(link.cycles)
    (task,) = master.accept(offer, [HALF], 5000)
    master.end(task)
    run(master, 900)
    assert len(link.cycles) == before


@pytest.mark.parametrize(("gangs", "made"), [((), [0, 1]), (((0, 2),), []), (((1, 1),), [0])])
def test_a_gang_that_cannot_be_offered_whole_is_not_offered(link, gangs, made):
    """The second decision finds only half of the agent free, and is reduced."""
    link.script, link.gangs = [[], [(1, 1, 1, HALF), (1, 1, 1, WHOLE)]], gangs
    master, framework = master_for(link), Recorder()
    run(master, 0)
    master.subscribe(framework)
    run(master, 20)
    offered = [offer.amount for offer in framework.offers]
    assert offered == [HALF for _ in made]
    master.send()
    (outcomes,) = [each for each in link.messages if isinstance(each, Outcomes)]
    refused = Reason.INCOMPLETE_GANG
    late = Reason.PARTIAL if 1 in made else refused
    assert outcomes.reason.tolist() == [Reason.OFFERED if made else refused, late]
    master.ledger.check()
    assert master.ledger.available(1) == tuple(
        whole - len(made) * half for whole, half in zip(WHOLE, HALF, strict=True)
    )


def test_an_accept_is_a_transition_and_a_release(link):
    master = master_for(link)
    framework = Recorder()
    offer = offer_whole(link, master, framework)
    master.accept(offer, [HALF], 5000)
    master.send()
    transition, release = link.messages
    assert isinstance(release, Release)
    assert release.released.amount.tolist() == [list(HALF)]
    assert release.refuse_ms.tolist() == [5000]
    assert release.allocated.tolist() == [False]
    assert isinstance(transition, Transition)
    assert transition.used.amount.tolist() == [list(HALF)]
    assert master.ledger.used == list(HALF)


def test_an_offer_that_is_used_up_leaves_nothing_to_release(link):
    master = master_for(link)
    offer = offer_whole(link, master, Recorder())
    master.accept(offer, [HALF, HALF], 5000)
    master.send()
    assert link.names() == ["Transition"]


def test_offers_and_tasks_of_a_lost_agent_are_removed(link):
    master = master_for(link)
    framework = Recorder()
    offer = offer_whole(link, master, framework)
    (task,) = master.accept(offer, [HALF], -1)
    master.remove_agent(1)
    master.send()
    assert link.messages[-1] == RemoveAgent(1)
    assert framework.lost_tasks == [task]
    assert not task.live
    assert master.ledger.used == [0, 0]


def test_a_framework_that_drops_out_gets_its_offers_taken_back_and_keeps_its_tasks(link):
    master = master_for(link)
    framework = Recorder()
    offer = offer_whole(link, master, framework)
    (task,) = master.accept(offer, [HALF], -1)
    link.script = [[(1, 1, 1, HALF)]]
    run(master, 1000)
    master.send()
    link.names()
    master.disconnect(framework)
    master.send()
    inactive, rescinded = link.messages
    assert inactive == ActivateFramework(1, active=False)
    assert isinstance(rescinded, Release)
    assert rescinded.refuse_ms.tolist() == [-1]
    assert task.live
    assert master.ledger.used == list(HALF)


def test_a_failover_updates_then_activates_and_triggers(link):
    master = master_for(link)
    framework = Recorder("a", "b")
    master.subscribe(framework)
    master.disconnect(framework)
    run(master, 100)
    link.names()
    framework.identity = Identity("recorder", ("b", "c"))
    master.reconnect(framework)
    run(master, 100)
    update, activate = link.messages[-2:]
    assert isinstance(update, UpdateFramework)
    assert set(update.roles) == {master.roles.handle["b"], master.roles.handle["c"]}
    assert activate == ActivateFramework(1, active=True)
    assert link.cycles[-1] == (100, ())


def test_a_framework_that_leaves_gives_everything_back_before_it_is_removed(link):
    master = master_for(link)
    framework = Recorder()
    offer = offer_whole(link, master, framework)
    master.accept(offer, [HALF], -1)
    master.send()
    link.names()
    master.unsubscribe(framework)
    master.send()
    assert link.names() == ["ActivateFramework", "Release", "RemoveFramework"]
    assert master.ledger.agents[1].available() == list(WHOLE)


def test_a_decision_for_the_bearer_before_is_stale(link):
    master = master_for(link, decision_ms=200)
    first = Recorder()
    master.subscribe(first)
    link.script = [[(1, 1, 1, HALF)]]
    run(master, 0)
    master.unsubscribe(first)
    master.subscribe(Recorder())
    run(master, 250)
    assert master.record.outcomes == {Reason.STALE: 1}
    outcomes = [message for message in link.messages if isinstance(message, Outcomes)]
    assert [o.reason.tolist() for o in outcomes] == [[Reason.STALE]]
    assert master.record.offers == 0


def test_a_wrong_decision_is_recorded_in_words(link):
    link.script = [[], [(1, 1, 1, HALF)], [(1, 1, 1, HALF)]]
    master, framework = master_for(link), Recorder()
    run(master, 0)
    master.subscribe(framework)
    run(master, 20)
    master.decline(framework.offers, 5000)
    run(master, 1000)
    assert master.record.defects == {Reason.FILTERED: 1}
    (told,) = master.record.rejections
    assert "FILTERED: Decision(framework=1" in told
    assert f"OfferFilter(amount={HALF}" in told


def test_an_offer_that_was_taken_back_is_not_delivered(link):
    master = master_for(link)
    framework = Recorder()
    link.script = [[(1, 1, 1, HALF)]]
    master.subscribe(framework)
    run(master, 5)
    master.activate_agent(1, active=False)
    run(master, 500)
    assert framework.offers == []
    assert master.record.offers == 1
    assert not master.ledger.holdings[1]


def test_a_session_begins_with_all_that_is_there(link):
    master = master_for(link)
    framework = Recorder()
    offer = offer_whole(link, master, framework)
    master.accept(offer, [HALF], 60_000)
    master.session.open()
    state = link.openings[-1].state(0)
    (agent,) = [event for event in state if isinstance(event, AddAgent)]
    assert agent.capacity == dict(enumerate(WHOLE))
    (hold,) = [event for event in state if isinstance(event, Hold)]
    assert hold.holdings.amount.tolist() == [list(HALF)]
    (refused,) = [event for event in state if isinstance(event, AddFilters)]
    assert refused.expires_ms.tolist() == [master.event_heap.now_ms + 59_999]
    assert len(master.outbox) == 0


def test_idle_roles_are_removed_with_a_new_session(monkeypatch):
    """As in the module; a session would otherwise need ever more handles."""
    monkeypatch.setattr(emulated, "ROLES_SPARE", 10)
    link = DirectLink(build, Settings(PolicySpec("drf", mode="oblivious")))
    master, framework = master_for(link), Recorder()
    run(master, 0)
    master.subscribe(framework)
    run(master, 20)
    master.accept(framework.offers[0], [HALF], 60_000)
    for number in range(100):
        framework.identity = replace(framework.identity, roles=(f"r{number}/a", f"r{number}/b"))
        master.reconnect(framework)
        run(master, master.event_heap.now_ms + 1)
        assert len(master.roles.handle) <= 30
        assert "r" in master.roles.handle, "it still has a task in this role"
    assert max(master.roles.path) <= 30
    assert master.session.number > 10
    master.settle()
    now_ms = master.event_heap.now_ms
    ours, theirs = of_ledger(master.ledger, now_ms), of_state(link.allocator.state, now_ms)
    assert not differences(ours, theirs, offered=False)

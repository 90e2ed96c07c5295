"""Several masters, one allocator: which one has it, and settings that outlive sessions."""

import pytest

from allocator.core import EventError, PolicySpec, SetConstraint, SetDemand, SetPolicy, Transition
from allocator.core.checkpoint import Detached, to_columns
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting, Sidecar, WireError, supersedes
from laboratory.module_protocol import SessionEndedError
from tests.wire.dialogue import Module, holding, new_sidecar


@pytest.mark.parametrize(
    ("newcomer", "bearer", "wins"),
    [
        ((2, "a"), (1, "b"), True),
        ((1, "a"), (2, "b"), False),
        ((1, "a"), (1, "a"), True),  # the same instance reconnects
        ((1, "b"), (1, "a"), True),  # a tie in time is decided by the id ...
        ((1, "a"), (1, "b"), False),  # ... and so never both ways
    ],
)
def test_which_session_supersedes_which(newcomer, bearer, wins):
    greetings = [Greeting("master", instance, started) for started, instance in (newcomer, bearer)]
    assert supersedes(*greetings) is wins


def test_a_newer_master_takes_over():
    sidecar = new_sidecar()
    old = Module(sidecar, "old", 1).begin()
    old.batch(cycle=True)
    new = Module(sidecar, "new", 2)
    new.begin()
    ((number, response),) = new.others
    assert number == old.number
    assert response.error.code == pb.ERROR_CODE_SUPERSEDED
    assert "instance 'new' of master 'master' took this sidecar over" in response.error.message
    assert response.error.sequence == 1
    assert sidecar.active == new.number
    assert old.say(pb.SessionRequest(events=pb.EventBatch(sequence=2))) == []
    assert len(new.batch(cycle=True)) == 2


def test_an_older_master_is_refused_and_the_newer_continues():
    sidecar = new_sidecar()
    new = Module(sidecar, "new", 2).begin()
    old = Module(sidecar, "old", 1)
    with pytest.raises(SessionEndedError, match=r"superseded: instance_started_us: is 1, older"):
        old.tell(old.client.hello())
    assert old.others == []
    assert len(new.batch(cycle=True)) == 2


def test_the_same_instance_may_call_again():
    """It lost its stream, but the sidecar has not noticed."""
    sidecar = new_sidecar()
    first = Module(sidecar).begin()
    first.batch(cycle=True)
    second = Module(sidecar).begin()
    assert [number for number, _ in second.others] == [first.number]
    again = second.batch(cycle=True)
    assert (again.first_decision, len(again)) == (1, 2), "a new session, from its snapshot"


def test_an_older_master_is_welcome_once_the_newer_left():
    """A standby that began earlier may be elected later."""
    sidecar = new_sidecar()
    new = Module(sidecar, "new", 2).begin()
    sidecar.close(new.number)
    assert sidecar.active == 0
    assert len(Module(sidecar, "old", 1).begin().batch(cycle=True)) == 2
    assert sidecar.counts.sessions_closed == {"left": 1}


def test_a_broken_session_frees_the_allocator():
    sidecar = new_sidecar()
    new = Module(sidecar, "new", 2).begin()
    new.say(b"garbage")
    assert sidecar.active == 0
    assert len(sidecar.allocator.state.agents) == 0
    Module(sidecar, "old", 1).begin()


def test_another_stream_does_not_affect_the_session():
    """Messages of another stream before its hello have no effect."""
    sidecar = new_sidecar()
    module = Module(sidecar).begin()
    other = Module(sidecar)
    (answer,) = other.say(pb.SessionRequest(events=pb.EventBatch(sequence=1)))
    assert answer.error.code == pb.ERROR_CODE_PROTOCOL
    sidecar.close(other.number)
    assert len(module.batch(cycle=True)) == 2


def test_a_refused_greeting_does_not_supersede():
    sidecar = new_sidecar()
    module = Module(sidecar, "old", 1).begin()
    newer = Module(sidecar, "new", 2)
    hello = newer.client.hello()
    hello.hello.protocol_version = 3
    (answer,) = newer.say(hello)
    assert answer.error.code == pb.ERROR_CODE_VERSION
    assert sidecar.active == module.number


def test_closing_with_an_error_tells_the_module():
    sidecar = new_sidecar()
    module = Module(sidecar).begin()
    shutdown = WireError(pb.ERROR_CODE_SHUTDOWN, "", "the end")
    ((number, response),) = sidecar.close(module.number, shutdown)
    assert (number, response.error.message) == (module.number, "the end")
    assert sidecar.close(module.number, shutdown) == []
    assert sidecar.sessions == {}


def test_operators_settings_outlive_sessions():
    sidecar = new_sidecar()
    rule = SetDemand("eng", "", {"cpus": 1000})
    only = SetConstraint("", "spark", "zone=a")
    sidecar.step(rule)
    module = Module(sidecar).begin()
    sidecar.step(SetPolicy(PolicySpec("tsf", mode="characterised")))
    sidecar.step(only)
    sidecar.close(module.number)
    Module(sidecar).begin()
    settings = sidecar.allocator.settings
    assert settings.policy == PolicySpec("tsf", mode="characterised")
    assert settings.demands == {("eng", ""): rule}
    assert settings.constraints == {("", "spark"): only}


def test_a_setting_takes_effect_between_two_batches():
    """From the next cycle on, no framework may use an agent without the attribute."""
    sidecar = new_sidecar()
    module = Module(sidecar).begin()
    sidecar.step(SetConstraint("", "", "ssd"))
    assert len(module.batch(cycle=True)) == 0
    sidecar.step(SetConstraint("", "", None))
    assert len(module.batch(cycle=True)) == 2


def test_a_setting_that_is_none_changes_nothing():
    sidecar = new_sidecar()
    with pytest.raises(EventError, match="there is no policy 'drff'"):
        sidecar.step(SetPolicy(PolicySpec("drff")))
    assert sidecar.allocator.settings.policy.name == "drf"


def test_learnt_demands_outlive_sessions_and_are_in_checkpoints():
    sidecar = new_sidecar(PolicySpec("drf", "listed", "characterised"))
    first = Module(sidecar, "old", 1).begin()
    taken = Transition(holding(1, 1, 1, cpus=1000, mem=512_000))
    first.batch(first.all_offered(first.batch(cycle=True)), taken, taken, taken)
    # The demand is known after the session ended, in a new session, and from a checkpoint.
    sidecar.close(first.number)
    second = Module(sidecar, "new", 2).begin()
    assert demand_of_spark(sidecar) == ("prior", {"cpus": 1000, "mem": 512_000})
    resumed = new_sidecar(PolicySpec("drf", "listed", "characterised"))
    resumed.resume(to_columns(Detached(sidecar.kept()).value))
    assert resumed.active == second.number
    assert demand_of_spark(resumed) == ("prior", {"cpus": 1000, "mem": 512_000})
    again = Module(resumed, "newest", 3).begin()
    assert resumed.active == again.number
    assert demand_of_spark(resumed) == ("prior", {"cpus": 1000, "mem": 512_000})


def demand_of_spark(sidecar: Sidecar) -> tuple[str, dict[str, int]]:
    state = sidecar.allocator.state
    client = state.clients.row(1, 1)
    return state.clients.demand_source[client], state.space.named(state.clients.demand[client])

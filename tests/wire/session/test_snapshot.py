"""A state as a file: it decides the same wherever it is replayed, with or without real names."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    CONSTRAINT_LABEL,
    DEMAND_LABEL,
    AddAgent,
    AddFramework,
    AgentInfo,
    Define,
    Detached,
    FrameworkInfo,
    Grants,
    Kind,
    PolicySpec,
    Renamer,
    SessionLimits,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    SetQuota,
    SetShadow,
    SetWeight,
    SetWeights,
    SetWhitelist,
)
from allocator.core.checkpoint import restore, to_columns
from allocator.policies import build, substitute
from allocator.wire import read_records
from allocator.wire.journal.checkpoint import mark, write_snapshot
from allocator.wire.journal.records import start_record
from allocator.wire.journal.replay import Replay
from allocator.wire.session.sidecar import Sidecar
from tests.rules.cases import Case
from tests.rules.random_cases import cases
from tests.rules.small_core import begun
from tests.rules.small_master import SmallMaster
from tests.wire.dialogue import WELCOME, Module, new_sidecar

SECRETS = (
    "acme",
    "secret-team",
    "jobs-of-bob",
    "bob",
    "svc-principal",
    "host-17",
    "rack-9",
    "fpga-x",
    "agent-id-5",
    "fw-id-3",
    "eu-west",
)


STATE = (
    Define(
        {0: Kind("cpus"), 1: Kind("mem"), 2: Kind("cpus", reserved_role="acme", depth=1)},
        {1: "acme", 2: "acme/secret-team"},
    ),
    SetWeights({"acme/secret-team": 2.0}),
    SetQuota("acme", {"cpus": 1000}, {"cpus": 90_000}),
    SetWhitelist(frozenset({"host-17"})),
    AddFramework(
        1,
        FrameworkInfo(
            "fw-id-3",
            name="jobs-of-bob",
            user="bob",
            principal="svc-principal",
            labels={
                DEMAND_LABEL: "cpus:1;mem:1",
                CONSTRAINT_LABEL: "rack=rack-9|rack-8; fpga-x",
                "bob": "acme",
            },
            capabilities=frozenset({"MULTI_ROLE"}),
        ),
        (2,),
    ),
    AddAgent(
        1,
        AgentInfo(
            "agent-id-5",
            hostname="host-17",
            attributes={"rack": "rack-9", "fpga-x": ""},
            zone="eu-west",
            capabilities=frozenset({"MULTI_ROLE", "HIERARCHICAL_ROLE"}),
        ),
        {0: 8000, 1: 8000, 2: 1000},
    ),
)


def written(sidecar: Sidecar, *, pseudonyms: bool = False, policy=build) -> bytes:
    """The file of a sidecar's state."""
    settings = sidecar.allocator.settings
    start = start_record(settings, SessionLimits(), WELCOME, sessions_before=sidecar.sessions_begun)
    kept = Detached(sidecar.kept())
    return b"".join(write_snapshot(start, kept, policy, substitute(), pseudonyms=pseudonyms))


def replayed(data: bytes, policy=build) -> Replay:
    player = Replay(policy, substitute())
    for record in read_records(io.BytesIO(data)):
        player.take(record)
    player.finish()
    return player


def named() -> tuple[Sidecar, Module]:
    """A session in which everything that can have a name has one."""
    sidecar = new_sidecar()
    module = Module(sidecar).begin(STATE)
    for change in (
        SetDemand("acme/*", "jobs-of-*", {"cpus": 1000, "mem": 1000}),
        SetConstraint("", "jobs-of-bob", "zone=eu-west; rack!=rack-8"),
        SetLimit("acme", {"cpus": 50_000}),
        SetDrain("host-18-acme"),
        SetWeight("acme", "", 2.0),
        SetShadow(PolicySpec("tsf", mode="characterised")),
    ):
        sidecar.step(change)
    return sidecar, module


@pytest.mark.parametrize("pseudonyms", [False, True])
def test_its_next_cycle_is_decided_again(pseudonyms):
    sidecar, _ = named()
    before = mark(to_columns(sidecar.kept()))
    found = replayed(written(sidecar, pseudonyms=pseudonyms)).found
    assert (found.checked, found.differing, found.cycles) == (1, 0, 1)
    assert found.decisions > 0
    assert mark(to_columns(sidecar.kept())) == before, "the sidecar itself has changed"


def test_a_state_that_decides_differently_is_reported():
    class Nothing:
        def allocate(self, snapshot, seed):
            return Grants.none(len(snapshot.resources))

    class Failing:
        def allocate(self, snapshot, seed):
            raise ZeroDivisionError

    sidecar, _ = named()
    found = replayed(written(sidecar), lambda _spec: Nothing()).found
    assert (found.checked, found.differing) == (1, 1)
    # If the policy failed, the file says so, and the substitute decides again.
    data = written(sidecar, policy=lambda _spec: Failing())
    assert replayed(data, lambda _spec: Nothing()).found.differing == 0


def test_without_a_session_there_is_no_cycle_to_decide():
    found = replayed(written(new_sidecar())).found
    assert (found.checked, found.cycles) == (0, 0)


def test_no_name_is_left():
    sidecar, _ = named()
    plain, other = (texts(written(sidecar, pseudonyms=flag)) for flag in (False, True))
    for secret in SECRETS:
        assert secret in plain, secret
        assert secret not in other, secret
    for word in ("cpus", "MULTI_ROLE", "HIERARCHICAL_ROLE", "drf"):
        assert word in other


def texts(data: bytes) -> str:
    """All contents of a file, decompressed."""
    player = replayed(data)
    records = list(read_records(io.BytesIO(data)))
    found = [str(record) for record in records if not record.HasField("checkpoint_piece")]
    assert player._sidecar is not None
    return "\n".join([*found, str(to_columns(player._sidecar.kept()))])


@given(case=cases(), seed=st.integers(0, 3))
def test_under_other_names_the_same_is_decided(case: Case, seed: int):
    master = SmallMaster(case)
    one, other = begun(master), begun(master)
    one.settings.seed = other.settings.seed = seed
    renamed = Renamer.of(other.state).value(Detached(other.kept()).value)
    other.resume(restore(to_columns(renamed), other.kept()))
    for _ in range(2):
        made, again = (each.allocate(master.now_ms) for each in (one, other))
        for name in ("framework", "role", "agent", "kind", "amount"):
            np.testing.assert_array_equal(getattr(made, name), getattr(again, name), case.text())
    other.check()

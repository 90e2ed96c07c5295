"""The hostile sidecar is as hostile as intended, and valid where the session should survive."""

import random

import pytest

from allocator.v1 import session_pb2 as pb
from tests.cluster.experiments import PREFIX, told
from tests.cluster.hostile import BELIEVED, ENDING, HostileSidecar, World


@pytest.fixture
def hostile(tmp_path):
    return HostileSidecar(f"unix:{tmp_path}/s.sock", seed=1)


@pytest.fixture
def world():
    request = pb.SessionRequest()
    chunk = request.snapshot
    chunk.kinds.add(kind=0, name="cpus")
    chunk.kinds.add(kind=1, name="mem")
    chunk.roles.add(role=1, path="eng")
    chunk.frameworks.add(framework=1, roles=[1])
    capacity = chunk.agents.add(agent=1).capacity
    capacity.kind.extend([0, 1])
    capacity.amount.extend([4000, 4_096_000])
    world = World()
    world.hear(request)
    return world


@pytest.mark.parametrize("manner", sorted(set(BELIEVED)))
def test_every_manner_makes_whole_rows(hostile, world, manner, monkeypatch):
    monkeypatch.setattr(random.Random, "choice", _prefer(manner))
    hostile.offered = 1  # many enough for any manner
    answer = pb.DecisionBatch()
    hostile._believed(answer, world)
    (grants,) = answer.grants
    rows = len(grants.framework)
    assert rows > 0
    assert len(grants.role) == len(grants.agent) == rows
    assert len(grants.amount) == rows * len(grants.kind)
    assert min(grants.amount) >= 0
    assert hostile.said == {manner: 1}


def _prefer(manner):
    """Choose the manner if the choice is among manners, else the first item."""
    return lambda self, options: manner if manner in options else options[0]


@pytest.mark.parametrize("manner", [each for each in ENDING if each != "silent"])
def test_every_end_differs_from_the_honest_answer(hostile, world, manner):
    answer = pb.SessionResponse()
    answer.decisions.sequence = 7
    hostile._believed(answer.decisions, world)
    honest = answer.SerializeToString()
    said = list(getattr(hostile, "_" + manner)(answer, honest, [b"older"]))
    assert said != [honest]


def test_outcomes_that_never_happened_are_not_in_the_figures():
    metrics = {f"{PREFIX}outcomes/partial": 3.0, f"{PREFIX}outcomes/offered": 0.0, "other": 1.0}
    outcomes = told(metrics, "outcomes/")
    assert dict(outcomes) == {"partial": 3}
    assert outcomes["offered"] == outcomes["limit"] == 0


def test_a_hostile_sidecar_is_modest_until_enough_becomes_offers(hostile, world):
    answer = pb.DecisionBatch()
    hostile._believed(answer, world)
    assert hostile.said == {"modest": 1}
    (grants,) = answer.grants
    assert list(grants.amount) == [100, 48_000] * len(grants.framework)

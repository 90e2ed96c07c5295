"""Every text from operators is accepted, or rejected with the field, the value and the fix."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.plugins.guarded_policy import GuardedRegistry
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2
from allocator.v1 import settings_pb2 as spb
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from allocator.v1.types_pb2 import Quantities
from tests.server.in_process import asking, running

ODD = [
    *("", "\0", "a//b", "/", "a/" * 2000, "*" * 500, "[!" * 300, "9e999999", "x" * 9000),
    *("é" * 2000, "drf", "choosy", "quincy", "eng=drf", ":=,", "zone=a", "zone<3", "a|b;" * 3000),
]
texts = st.one_of(st.text(max_size=30), st.sampled_from(ODD))
integers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, 2**53 + 1]))
floats = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 1e308, 5e-324]))
amounts = st.builds(
    lambda names, numbers: Quantities(name=names, amount=numbers),
    st.lists(texts, max_size=3),
    st.lists(integers, max_size=3),
)
policy = st.builds(
    spb.Policy,
    name=texts,
    selection=texts,
    mode=texts,
    parameters=st.dictionaries(texts, texts, max_size=2),
    subtrees=st.dictionaries(texts, texts, max_size=2),
)
whom = {"role": texts, "framework_name": texts}
rules = {
    "demand": st.builds(spb.Demand, demand=amounts, **whom),
    "constraint": st.builds(spb.Constraint, expression=texts, **whom),
    "weight": st.builds(spb.FrameworkWeight, weight=floats, **whom),
    "gang": st.builds(spb.Gang, tasks=st.integers(0, 2**32 - 1), **whom),
    "pause": st.builds(spb.Pause, role=texts),
    "limit": st.builds(spb.Limit, role=texts, limit=amounts),
    "budget": st.builds(
        spb.Budget,
        role=texts,
        budget=amounts,
        per=st.sampled_from(["month", "week", "day", "year", ""]),
        credit=texts,
        credit_from=texts,
    ),
    "claim": st.builds(spb.Claim, role=texts, claim=amounts),
    "cap": st.builds(spb.Cap, role=texts, per=texts, cap=amounts),
    "drain": st.builds(spb.Drain, agent=texts),
}
changes = st.one_of(
    *(
        st.builds(spb.OperatorChange, remove=st.booleans(), **{name: each})
        for name, each in {"policy": policy, "shadow": policy, **rules}.items()
    ),
    st.just(spb.OperatorChange()),
)
settings = st.builds(spb.KeptChange, change=changes)
names = st.lists(texts, max_size=2)
requests = st.one_of(
    st.builds(
        pb.ChangeRuleRequest,
        change=changes,
        all=st.booleans(),
        dry_run=st.booleans(),
        force=st.booleans(),
        also=st.lists(texts, max_size=2),
    ),
    st.builds(pb.ChangeRuleRequest, change=changes, instead_of=changes),
    st.builds(pb.SetShadowRequest, policy=policy, dry_run=st.booleans()),
    st.builds(pb.ListRulesRequest, kind=st.one_of(texts, st.sampled_from(list(rules)))),
    st.builds(
        pb.ApplySettingsRequest,
        changes=st.lists(settings, max_size=3),
        prune=st.booleans(),
        dry_run=st.booleans(),
    ),
    st.builds(
        pb.ListAgentsRequest,
        names=names,
        framework=texts,
        role=texts,
        attributes=texts,
        state=texts,
        limit=st.integers(0, 2**32 - 1),
    ),
    st.builds(pb.ListFrameworksRequest, names=names, role=texts, agent=texts, state=texts),
    st.builds(pb.ListRolesRequest, names=names, role=texts),
    st.builds(pb.SetPolicyRequest, policy=policy, dry_run=st.booleans()),
    st.builds(pb.RevertSettingsRequest, number=st.integers(0, 2**64 - 1), dry_run=st.booleans()),
    st.builds(pb.ListHistoryRequest, limit=st.integers(0, 2**32 - 1)),
    st.builds(pb.ResetSettingsRequest, what=st.lists(texts, max_size=2)),
    st.builds(pb.GetSharesRequest, role=texts, newcomer_role=texts, newcomer_demand=amounts),
    st.builds(explain_pb2.ExplainRequest, framework=texts, cycles=st.integers(0, 2**32 - 1)),
    st.builds(explain_pb2.ExplainRequest, role=texts),
    st.builds(explain_pb2.ExplainRequest, agent=texts),
)


REGISTRY = GuardedRegistry(1.0)


@pytest.fixture(scope="module")
def loop() -> Iterator[CoreLoop]:
    with running(CoreLoop(Config(), build_policy=REGISTRY.build)) as core:
        yield core


@pytest.fixture(scope="module")
def stub(loop) -> Iterator[AdminServiceStub]:
    with asking(loop, try_policy=REGISTRY.try_out) as found:
        yield found


@given(request=requests)
def test_any_request_is_done_or_refused(stub, loop, request):
    method = type(request).__name__.removesuffix("Request")
    before = loop.call(loop.allocator.settings.copied).result(60)
    try:
        getattr(stub, method)(request, timeout=60)
    except grpc.RpcError as error:
        refused: Any = error
    else:
        stub.ResetSettings(pb.ResetSettingsRequest(), timeout=60)  # otherwise rules would pile up
        return
    assert refused.code() == grpc.StatusCode.INVALID_ARGUMENT, refused.details()
    assert refused.details().strip()
    assert loop.call(loop.allocator.settings.copied).result(60) == before


NO_TEXT = "\udcff"
"""How Python represents a byte that is not UTF-8."""


@pytest.mark.parametrize(
    "words",
    [
        f"limit set {NO_TEXT} cpus:1",
        f"drain set a1 a{NO_TEXT}",
        f"policy set drf -p unit={NO_TEXT}",
        "demand set cpus:1 --role \udced\udca0\udc80",
        f"constraint set zone={NO_TEXT} --all",
        f"explain framework {NO_TEXT}",
        f"check-config --set http.host={NO_TEXT}",
        f"check-config --set {NO_TEXT}=1",
        f"check-config {NO_TEXT}",
        f"serve --config {NO_TEXT}",
        "limit set eng cpus:9e999999",
        "demand set cpus:sNaN --all",
        f"check-config --set policy.plugins={NO_TEXT}",
    ],
)
def test_invalid_text_is_an_error_of_one_line(words):
    done = CliRunner().invoke(app, words.split(), env={"MESOS_ALLOCATOR_TARGET": "unix:/none"})
    assert done.exit_code in (2, 78), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")


def test_bytes_that_are_no_text_are_one_line_of_a_process():
    command: list[str | bytes] = [sys.executable, "-m", "allocator", "check-config", "--set"]
    done = subprocess.run([*command, b"\xff=1"], capture_output=True, check=False, timeout=200)
    assert done.returncode == 78
    (line,) = done.stderr.decode("utf-8", "backslashreplace").splitlines()
    assert line.startswith("error: ")

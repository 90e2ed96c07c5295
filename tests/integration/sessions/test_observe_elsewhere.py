"""An observer as on another machine: real processes over TCP and TLS, killed and restarted."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc, explain_pb2, settings_pb2, types_pb2
from tests.rule_changes import listed, rule_change
from tests.server.grpc.certificates import Authority
from tests.server.metrics.scraping import value
from tests.server.processes import free_port
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true

Stub = admin_pb2_grpc.AdminServiceStub


def observed(*flags: str) -> SidecarProcess:
    """Make a sidecar that others may follow."""
    return SidecarProcess("observer.listen=127.0.0.1:0", *flags)


def followed_at(sidecar: SidecarProcess) -> str:
    (target,) = sidecar.await_said("serving followers")["targets"]
    return str(target)


@contextmanager
def elsewhere(*sources: str, flags: tuple[str, ...] = ()) -> Iterator[SidecarProcess]:
    """Start an observer that follows these addresses."""
    given = f"observer.sources={','.join(sources)}", *flags
    with SidecarProcess(*given, command="observe") as observer:
        yield observer


@contextmanager
def asking(process: SidecarProcess) -> Iterator[Stub]:
    with process.channel() as channel:
        yield Stub(channel)


def snapshot(process: SidecarProcess) -> bytes:
    """The state as bytes; empty if there is none yet."""
    with asking(process) as stub, suppress(grpc.RpcError):
        return b"".join(each.data for each in stub.Snapshot(pb.SnapshotRequest(), timeout=60))
    return b""


def await_equal(sidecar: SidecarProcess, *observers: SidecarProcess) -> None:
    """Wait until all have the same books, byte for byte."""
    sidecar.catch_up()
    for each in observers:
        await_true(partial(_are_equal, sidecar, each))


def _are_equal(one: SidecarProcess, other: SidecarProcess) -> bool:
    return snapshot(one) == snapshot(other) != b""


def status(process: SidecarProcess) -> pb.GetStatusResponse:
    with asking(process) as stub:
        return stub.GetStatus(pb.GetStatusRequest(), timeout=60)


LIMIT = settings_pb2.Limit(role="r", limit=types_pb2.Quantities(name=["cpus"], amount=[1000]))


def test_an_observer_answers_all_queries_and_names_the_sidecar_for_changes():
    with observed() as sidecar, sidecar.channel() as channel, ExitStack() as stack:
        module = GrpcModule(channel).begin()
        module.batch(cycle=True)
        source = followed_at(sidecar)
        observer = stack.enter_context(elsewhere(source))
        second = stack.enter_context(elsewhere(observer.targets[0]))  # follows the first
        module.batch(cycle=True)
        Stub(channel).ChangeRule(rule_change(limit=LIMIT), timeout=60)
        await_equal(sidecar, observer, second)
        found = status(observer)
        assert (found.cycles, found.in_session, found.agents) == (2, True, 2)
        assert (found.followed.source, found.followed.connected) == (source, True)
        assert found.sidecar_id == status(sidecar).sidecar_id
        stub = stack.enter_context(asking(observer))
        assert stub.GetShares(pb.GetSharesRequest(fair=True), timeout=60).fair
        told = stub.Explain(explain_pb2.ExplainRequest(framework="spark"), timeout=60)
        assert told.ByteSize()
        assert listed(stub.ListRules(pb.ListRulesRequest(kind="limit"), timeout=60)) == [LIMIT]
        assert b"".join(each.json for each in stub.Dump(pb.DumpRequest(), timeout=60))
        tried = pb.SetPolicyRequest(policy=settings_pb2.Policy(name="tsf"), dry_run=True)
        assert stub.SetPolicy(tried, timeout=60).change.dry_run
        with pytest.raises(grpc.RpcError) as refused:
            stub.ChangeRule(rule_change(limit=LIMIT), timeout=60)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        there = f"send changes there, to {sidecar.targets[0].rpartition(':')[0]}:0 on 127.0.0.1"
        assert f"an observer of {source}, which changes nothing: {there}" in str(
            refused.value.details()
        )
        with pytest.raises(grpc.RpcError) as refused:
            stub.ResetSettings(pb.ResetSettingsRequest(what="all"), timeout=60)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert observer.page_now("/readyz") == (200, "ok\n")
        assert f"observer of {source}" in observer.page_now("/")[1]
        scraped = observer.scraped()
        assert value(scraped, "observer_connected") == 1
        assert 0 <= value(scraped, "observer_lag_seconds") < 60
        assert value(sidecar.scraped(), "observer_followers") == 1
        shown = CliRunner().invoke(app, ["status", "--target", observer.targets[0]])
        assert f"{source}, 0." in shown.stdout


@pytest.mark.long
def test_a_follower_that_is_killed_costs_no_decision_and_leaves_nothing():
    with observed() as sidecar, sidecar.channel() as channel:
        module = GrpcModule(channel).begin()
        with elsewhere(followed_at(sidecar)) as observer:
            await_equal(sidecar, observer)
            assert value(sidecar.scraped(), "observer_followers") == 1
            observer.process.kill()
        assert len(module.batch(cycle=True)) == 2
        await_true(lambda: value(sidecar.scraped(), "observer_followers") == 0)


def test_a_decider_that_is_killed_is_missed_and_followed_again():
    listen = f"observer.listen=127.0.0.1:{free_port()}"
    with observed(listen) as sidecar:
        source = followed_at(sidecar)
        with elsewhere(source) as observer:
            with sidecar.channel() as channel:
                module = GrpcModule(channel).begin()
                module.batch(cycle=True)
                await_equal(sidecar, observer)
            sidecar.process.kill()
            await_true(lambda: observer.page_now("/readyz")[0] == 503)
            assert f"not connected to {source}" in observer.page_now("/readyz")[1]
            assert observer.page_now("/healthz")[0] == 200
            found = status(observer)  # the last known state
            assert (found.cycles, found.followed.connected) == (1, False)
            (warning,) = [each for each in found.warnings if each.what == "not connected"]
            assert source in warning.text
            assert "not connected" in observer.page_now("/")[1]
            assert value(observer.scraped(), "observer_connected") == 0
            with observed(listen) as again, again.channel() as channel:
                module = GrpcModule(channel).begin()
                module.batch(cycle=True)
                await_equal(again, observer)
                await_true(lambda: observer.page_now("/readyz") == (200, "ok\n"))
                assert status(observer).sidecar_id == status(again).sidecar_id


@pytest.mark.long
def test_the_one_that_leads_is_followed():
    with observed() as one, observed() as other, ExitStack() as stack:
        sources = followed_at(one), followed_at(other)
        channels = [stack.enter_context(each.channel()) for each in (one, other)]
        leading = GrpcModule(channels[1]).begin()
        leading.batch(cycle=True)
        other.catch_up()
        observer = stack.enter_context(elsewhere(*sources))
        await_equal(other, observer)
        assert status(observer).followed.source == sources[1]
        other.process.kill()
        leading = GrpcModule(channels[0], "later", 2).begin()
        leading.batch(cycle=True)
        await_equal(one, observer)
        assert status(observer).followed.source == sources[0]


@pytest.fixture(scope="module")
def pems(tool, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("pems")
    Authority(tool("openssl"), directory).sign("sidecar")
    return directory


def test_with_tls_a_token_that_may_read_is_needed(pems, tmp_path):
    known, given = tmp_path / "known", tmp_path / "given"
    known.write_text("reads\n")
    given.write_text("wrong\n")
    tls = f"listen.tls_cert={pems}/sidecar.pem", f"listen.tls_key={pems}/sidecar.key"
    rights = f"access.admin_read_token={known}", f"access.admin_write_token={pems}/sidecar.key"
    ours = f"observer.tls_ca={pems}/ca.pem", f"observer.token={given}"
    with observed(*tls, *rights) as sidecar, elsewhere(followed_at(sidecar)) as bare:
        bare_said = bare.await_said(f"{followed_at(sidecar)} cannot be followed")
        assert bare_said["error"]
        with elsewhere(followed_at(sidecar), flags=ours) as observer:
            said = observer.await_said(f"{followed_at(sidecar)} cannot be followed")
            assert "the token is wrong" in said["error"]
            assert observer.page_now("/readyz")[0] == 503
            assert status(observer).sidecar_id == ""
            given.write_text("reads\n")
            await_true(lambda: status(observer).sidecar_id != "")
            assert observer.page_now("/readyz") == (200, "ok\n")
            assert "reads" not in "".join(observer.raw)


def test_the_observer_to_follow_must_be_named_and_serve_followers():
    done = CliRunner().invoke(app, ["observe"])
    assert done.exit_code == 78
    assert "--from HOST:PORT" in done.stderr
    with SidecarProcess() as sidecar, elsewhere(sidecar.targets[0]) as observer:
        said = observer.await_said(f"{sidecar.targets[0]} cannot be followed")
        assert "name an address of observer.listen there" in said["error"]
        assert observer.terminate() == 0

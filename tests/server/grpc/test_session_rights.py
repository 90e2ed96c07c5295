"""Permission to take the sidecar from its master: tokens, clocks, insecure configurations."""

import contextlib
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.server.config.sections import AccessSection
from allocator.server.grpc.access import ADMIN, READS, Access, right_of
from allocator.v1 import admin_pb2, admin_pb2_grpc
from allocator.v1 import session_pb2 as pb
from laboratory.cli.app import app as lab_app
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true
from tests.tiers import long

NOW_US = time.time_ns() // 1000
YEAR_US = 31_536_000_000_000
SERVICE = admin_pb2.DESCRIPTOR.services_by_name["AdminService"]


@pytest.fixture
def token(tmp_path) -> Path:
    path = tmp_path / "token"
    path.write_text("a-masters-secret\n")
    return path


def refused(module: GrpcModule) -> tuple[grpc.StatusCode, str]:
    module.say(module.client.hello())
    with pytest.raises(grpc.RpcError) as caught:
        module.hear()
    return caught.value.code(), str(caught.value.details())


def test_a_master_without_a_token_cannot_take_over_the_sidecar(token):
    with SidecarProcess(f"access.session_token={token}") as sidecar, sidecar.channel() as channel:
        master = GrpcModule(channel, "master", 1, "a-masters-secret").begin()
        assert len(master.batch(cycle=True)) == 2
        for intruder in (
            GrpcModule(channel, "later", NOW_US),
            GrpcModule(channel, "later", NOW_US, "another"),
            GrpcModule(channel, "later", NOW_US, ""),
        ):
            code, text = refused(intruder)
            assert code == grpc.StatusCode.PERMISSION_DENIED
            assert "right session" in text
        master.batch(cycle=True)
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        assert stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=60).sessions == 1
        token.write_text("changed\n")
        later = GrpcModule(channel, "later", 2, "changed").begin()
        assert len(later.batch(cycle=True)) == 2
        assert "secret" not in "".join(sidecar.raw)


class Call:
    """A call by TCP without a certificate; `refused` is the reason of its end."""

    def peer(self) -> str:
        return "ipv4:127.0.0.1:4711"

    def auth_context(self) -> dict[str, list[bytes]]:
        return {}

    def abort(self, _code: grpc.StatusCode, text: str) -> None:
        self.refused = text


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("", "callers without a certificate have no right admin_write"),
        ("Bearer ", "the token is empty"),
        ("Bearer", "the token is empty"),
        ("Basic YTpi", "the header authorization is not 'Bearer TOKEN'"),
        ("Bearer wrong", "the token is wrong: it has no right admin_write"),
        ("Bearer a-masters-secret", "the token has the right session, and not admin_write"),
    ],
)
def test_a_refusal_states_what_is_wrong_with_the_token(token, tmp_path, given, part):
    (tmp_path / "write").write_text("an-operators-secret\n")
    section = AccessSection(session_token=str(token), admin_write_token=str(tmp_path / "write"))
    call: Any = Call()
    Access(section).check(call, f"{ADMIN}SetPolicy", given)
    assert call.refused.startswith(part)
    assert "secret" not in call.refused


def test_an_unreadable_token_is_reported_once(token):
    with SidecarProcess(f"access.session_token={token}") as sidecar, sidecar.channel() as channel:

        def try_it(times: int) -> None:
            for _ in range(times):
                code, _ = refused(GrpcModule(channel, "later", NOW_US, "a-masters-secret"))
                assert code == grpc.StatusCode.PERMISSION_DENIED

        token.unlink()
        try_it(5)
        token.mkdir()
        try_it(5)
        token.rmdir()
        token.write_text("a-masters-secret\n")
        assert len(GrpcModule(channel, "master", 1, "a-masters-secret").begin().batch()) == 0
        sidecar.await_said("a token is readable again", path=str(token), calls=10)
        told = [each["error"] for each in sidecar.said("a token cannot be read")]
        assert len(told) == 2
        assert "No such file" in told[0]
        assert "is not a regular file" in told[1]
        # Nor does the check itself leak a descriptor.
        assert not [each for each in open_files(sidecar.process.pid) if str(token) in each]


def open_files(pid: int) -> list[str]:
    """Open descriptors of a process; those closed while we look are skipped."""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(str(each.readlink()))
    return found


NOT_UTF_8 = b"\xff\xfe"


def test_a_token_that_is_empty_or_no_text_lets_no_master_in(token):
    access = Access(AccessSection(session_token=str(token)))
    assert access.problem() == ""
    for content in (b"\n", NOT_UTF_8):
        token.write_bytes(content)
        assert f"the token in {token} cannot be read, or is empty" in access.problem()


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        *long(lambda path: path.write_text("\n"), lambda path: path.write_bytes(NOT_UTF_8)),
    ],
)
def test_readyz_says_that_no_master_can_be_let_in(token, spoil):
    """Each call is refused then, whatever its token."""
    with SidecarProcess(f"access.session_token={token}") as sidecar:
        assert sidecar.page("/readyz")[0] == 200
        spoil(token)
        await_true(lambda: sidecar.page("/readyz")[0] == 503)
        _, text = sidecar.page("/readyz")
        assert text.startswith(f"no session can begin: the token in {token} cannot be read")
        token.write_text("a-masters-secret\n")
        await_true(lambda: sidecar.page("/readyz")[0] == 200)


@pytest.mark.long
def test_an_emulated_master_sends_its_token(token, monkeypatch):
    words = ["demo", "soak", "--seconds", "5", "--size", "2"]
    with SidecarProcess(f"access.session_token={token}") as sidecar:
        words += ["--target", sidecar.targets[0]]
        without = CliRunner().invoke(lab_app, words)
        assert without.exit_code != 0
        assert "right session" in without.output + str(without.exception)
        monkeypatch.setenv("MESOS_ALLOCATOR_SESSION_TOKEN_FILE", str(token))
        done = CliRunner().invoke(lab_app, words)
        assert (done.exit_code, "books compared" in done.output) == (0, True), done.output


def test_a_clock_that_was_wrong_locks_no_master_out():
    """An instance that claims to have started in the future yields to one that does not."""
    with SidecarProcess() as sidecar, sidecar.channel() as channel:
        ahead = GrpcModule(channel, "ahead", NOW_US + YEAR_US).begin()
        assert len(ahead.batch(cycle=True)) == 2
        master = GrpcModule(channel, "master", NOW_US).begin()
        assert len(master.batch(cycle=True)) == 2
        error = ahead.ends_with()
        assert error.code == pb.ERROR_CODE_SUPERSEDED
        assert "'ahead' began in the future, by this sidecar's clock" in error.message
        again = GrpcModule(channel, "ahead", NOW_US + YEAR_US)
        again.say(again.client.hello())
        assert again.ends_with().code == pb.ERROR_CODE_SUPERSEDED
        assert len(master.batch()) == 0
        # If our own clock may be wrong, the later of two wins as usual.
        master.leave()
        list(master.heard())
        one = GrpcModule(channel, "one", NOW_US + YEAR_US).begin()
        one.batch()
        two = GrpcModule(channel, "two", NOW_US + 2 * YEAR_US).begin()
        two.batch()
        assert one.ends_with().code == pb.ERROR_CODE_SUPERSEDED


def checked(*assignments: str):
    words = [word for each in assignments for word in ("--set", each)]
    return CliRunner().invoke(app, ["check-config", *words])


OPEN = ("listen.targets=0.0.0.0:0", "listen.allow_plaintext=true")


@pytest.mark.parametrize("name", ["session_token", "admin_read_token", "admin_write_token"])
def test_no_token_is_taken_where_it_would_pass_in_clear(token, name):
    done = checked(*OPEN, f"access.{name}={token}")
    assert done.exit_code == 78
    assert f"access.{name}" in done.output
    assert "would pass in clear at 0.0.0.0:0: give listen.tls_cert and tls_key" in done.output
    assert checked(f"access.{name}={token}").exit_code == 0


def test_a_sidecar_open_to_any_master_is_reported():
    warning = "any client that reaches 0.0.0.0:0 may take this sidecar from its master"
    done = checked(*OPEN)
    assert done.exit_code == 0
    assert warning in done.stderr
    assert "set access.session_token" in done.stderr
    assert checked().stderr == ""
    with SidecarProcess(OPEN[1], listen=["0.0.0.0:0"]) as sidecar:
        assert any(warning in line for line in sidecar.raw)
        port = sidecar.targets[0].rpartition(":")[2]
        done = CliRunner().invoke(app, ["status", "--target", f"127.0.0.1:{port}"])
        assert "open to any master" in done.output


@pytest.mark.parametrize("target", ["10.0.0.1:5056", "127.elsewhere.org:5056", "dns:///x:1"])
def test_the_command_line_sends_no_token_in_clear(token, target):
    done = CliRunner().invoke(app, ["status", "--target", target, "--token-file", str(token)])
    assert done.exit_code == 2
    assert "a token would be sent unencrypted; give --tls-ca" in done.stderr


def test_an_emulated_master_sends_no_token_in_clear(token, monkeypatch):
    monkeypatch.setenv("MESOS_ALLOCATOR_SESSION_TOKEN_FILE", str(token))
    done = CliRunner().invoke(lab_app, ["demo", "soak", "--target", "10.0.0.1:5056"])
    assert done.exit_code == 2
    assert "would be sent unencrypted" in done.stderr


def test_the_right_to_read_permits_no_changes():
    """A call that changes settings returns the `change`; `ResetUsage` changes none."""
    calls = {each.name: each for each in SERVICE.methods}
    assert set(calls) >= READS, "each that is named as a reader's is there"
    changing = {name for name, each in calls.items() if "change" in each.output_type.fields_by_name}
    assert {"SetPolicy", "ChangeRule", "ResetSettings"} <= changing
    assert {name for name in calls if right_of(ADMIN + name) == "admin_write"} == {
        *changing,
        "ResetUsage",
    }
    assert "ForgetUsage" in changing


@pytest.mark.parametrize("name", ["Forget", "Settle", "ListAndForget", "getStatus", ""])
def test_an_unknown_call_needs_the_right_to_change(name):
    assert right_of(ADMIN + name) == "admin_write"
    assert right_of(f"/allocator.v1.OtherService/{name}") == "admin_write"

"""The command line's channel to a sidecar: TLS, Unix sockets, deadlines."""

import shutil
import signal
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner, Result

from allocator.cli.app import app
from tests.server.grpc.certificates import Authority
from tests.server.sidecar_process import GrpcModule, SidecarProcess

PATIENCE = ("--timeout", "120")
"""For calls that must succeed, on a machine that may be busy."""


def status(target: str, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["status", "--target", target, *arguments])


@pytest.fixture(scope="module")
def pems(tool, tmp_path_factory) -> Path:
    """Make a certificate authority, and a certificate for each side."""
    directory = tmp_path_factory.mktemp("pems")
    authority = Authority(tool("openssl"), directory)
    for side in ("sidecar", "operator"):
        authority.sign(side)
    return directory


def test_with_tls_only_operators_with_a_certificate_are_heard(pems):
    ours = ["--tls-cert", f"{pems}/operator.pem", "--tls-key", f"{pems}/operator.key"]
    authority = ["--tls-ca", f"{pems}/ca.pem"]
    with begun(pems) as process:
        target = process.targets[0]
        assert status(target, *authority, *ours, *PATIENCE).exit_code == 0
        assert status(target, *authority).exit_code == 3
        assert status(target).exit_code == 3
        assert run(process, pems, "limit", "set", "eng", "cpus:1").exit_code == 0
        line = process.await_said("setting", logger="mesos_allocator.audit")
        assert "certificate operator" in line["who"]
        # Errors are not printed in gRPC's own form.
        assert not [each for each in process.raw if not each.startswith("{")]


def test_a_unix_socket_can_be_the_target(tmp_path):
    target = f"unix:{tmp_path}/a.sock"
    with SidecarProcess(listen=[target]) as process:
        assert process.targets == [target]
        assert "session          none" in status(target, *PATIENCE).stdout


def test_a_sidecar_that_hangs_is_not_waited_for():
    with SidecarProcess() as process:
        process.process.send_signal(signal.SIGSTOP)
        try:
            done = status(process.targets[0], "--timeout", "0.5")
        finally:
            process.process.send_signal(signal.SIGCONT)
        assert (done.exit_code, done.stdout) == (3, "")
        assert done.stderr.startswith("error: ")
        assert "did not answer within 0.5 s" in done.stderr
        assert status(process.targets[0], *PATIENCE).exit_code == 0


def begun(pems, *flags: str, listen: Sequence[str] = ("127.0.0.1:0",)) -> SidecarProcess:
    files = {"tls_cert": "sidecar.pem", "tls_key": "sidecar.key", "tls_client_ca": "ca.pem"}
    tls = (f"listen.{key}={pems / name}" for key, name in files.items())
    return SidecarProcess(*tls, *flags, listen=listen)


def run(process: SidecarProcess, pems: Path, *words: str, token: str = "") -> Result:
    given = ["--tls-ca", f"{pems}/ca.pem", "--target", process.targets[0]]
    given += ["--tls-cert", f"{pems}/operator.pem", "--tls-key", f"{pems}/operator.key"]
    given += ["--token-file", token] if token else []
    return CliRunner().invoke(app, [*words, *given, *PATIENCE])


def test_rights_are_separate(pems, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-long-secret\n")
    wrong = tmp_path / "wrong"
    wrong.write_text("another\n")
    flags = ("access.session=master", "access.admin_read=operator")
    with begun(pems, *flags, f"access.admin_write_token={token}") as process:
        assert run(process, pems, "status").exit_code == 0
        change = ["limit", "set", "eng", "cpus:1"]
        for refused in (run(process, pems, *change), run(process, pems, *change, token=str(wrong))):
            assert refused.exit_code == 4
            assert "the certificate 'operator' has no right admin_write" in refused.stderr
        assert run(process, pems, *change, token=str(token)).exit_code == 0
        token.write_text("changed\n")
        assert run(process, pems, *change, token=str(token)).exit_code == 0, "it is read anew"
        credentials = grpc.ssl_channel_credentials(
            (pems / "ca.pem").read_bytes(),
            (pems / "operator.key").read_bytes(),
            (pems / "operator.pem").read_bytes(),
        )
        with grpc.secure_channel(process.targets[0], credentials) as channel:
            module = GrpcModule(channel)
            module.say(module.client.hello())
            with pytest.raises(grpc.RpcError) as error:
                module.hear()
            assert error.value.code() == grpc.StatusCode.PERMISSION_DENIED
        assert "a-long-secret" not in "".join(process.raw)


def test_certificates_are_read_again_without_a_restart(pems, tmp_path):
    own = tmp_path / "pems"
    shutil.copytree(pems, own)
    with begun(own) as process:
        assert run(process, own, "status").exit_code == 0
        # The key does not match the new certificate, so the previous pair stays in use.
        (own / "sidecar.pem").write_bytes((pems / "operator.pem").read_bytes())
        assert run(process, own, "status").exit_code == 0
        process.await_said("changed certificates cannot be used; the previous ones stay in use")
        (own / "sidecar.key").write_bytes((pems / "operator.key").read_bytes())
        assert run(process, own, "status").exit_code == 0
        process.await_said("certificates reloaded")


def shown(target: str, pems: Path) -> bytes:
    """The certificate that a target presents."""
    context = ssl.create_default_context(cafile=str(pems / "ca.pem"))
    context.load_cert_chain(pems / "operator.pem", pems / "operator.key")
    context.set_alpn_protocols(["h2"])
    host, _, port = target.rpartition(":")
    with (
        socket.create_connection((host, int(port)), 20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        found = secure.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_each_of_several_ports_shows_the_certificate_that_is_there_now(pems, tmp_path):
    own = tmp_path / "pems"
    shutil.copytree(pems, own)
    ours, other = (
        ssl.PEM_cert_to_DER_cert((pems / name).read_text())
        for name in ("sidecar.pem", "operator.pem")
    )
    with begun(own, listen=["127.0.0.1:0", "127.0.0.1:0"]) as process:
        assert [shown(target, own) for target in process.targets] == [ours, ours]
        for kind in ("pem", "key"):
            (own / f"sidecar.{kind}").write_bytes((pems / f"operator.{kind}").read_bytes())
        assert [shown(target, own) for target in process.targets] == [other, other]


def test_an_open_port_without_tls_is_refused_unless_it_is_allowed():
    process = SidecarProcess(listen=["0.0.0.0:0"])
    assert process.process.wait(120) == 78
    process.__exit__()
    assert "0.0.0.0:0 reaches beyond this machine without TLS" in "".join(process.raw)
    with SidecarProcess("listen.allow_plaintext=true", listen=["0.0.0.0:0"]) as allowed:
        assert allowed.alive

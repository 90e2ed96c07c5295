"""The command line's channel to a sidecar: TLS, Unix sockets, deadlines."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.process import SidecarProcess


def status(target: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "allocator", "status", "--target", target, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=dict(os.environ),
    )


@pytest.fixture(scope="module")
def pems(tool, tmp_path_factory) -> Path:
    """Make an authority, and a certificate of it for each side."""
    directory = tmp_path_factory.mktemp("pems")
    openssl = tool("openssl")

    def run(*arguments: str) -> None:
        subprocess.run(
            [openssl, *arguments], cwd=directory, check=True, capture_output=True, timeout=60
        )

    new = ["req", "-newkey", "rsa:2048", "-nodes"]
    run(*new, "-x509", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for side in ("sidecar", "operator"):
        run(*new, "-subj", f"/CN={side}", "-keyout", f"{side}.key", "-out", f"{side}.csr")
        sign = ["x509", "-req", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
        run(*sign, "-in", f"{side}.csr", "-extfile", "names", "-out", f"{side}.pem")
    return directory


def test_with_tls_only_operators_with_a_certificate_are_heard(pems):
    files = {"tls_cert": "sidecar.pem", "tls_key": "sidecar.key", "tls_client_ca": "ca.pem"}
    flags = [f"listen.{key}={pems / name}" for key, name in files.items()]
    ours = ["--tls-cert", f"{pems}/operator.pem", "--tls-key", f"{pems}/operator.key"]
    authority = ["--tls-ca", f"{pems}/ca.pem"]
    with SidecarProcess(*flags) as process:
        target = process.targets[0]
        assert status(target, *authority, *ours).returncode == 0
        assert status(target, *authority).returncode == 3
        assert status(target).returncode == 3
        change = ["limit", "set", "eng", "cpus:1", "--target", target]
        done = subprocess.run(
            [sys.executable, "-m", "allocator", *change, *authority, *ours], timeout=120, check=True
        )
        assert done.returncode == 0
        line = process.await_said("setting", logger="mesos_allocator.audit")
        assert "certificate operator" in line["who"]
        # What failed above is not told in gRPC's own form.
        assert not [each for each in process.raw if not each.startswith("{")]


def test_a_unix_socket_can_be_the_target(tmp_path):
    target = f"unix:{tmp_path}/a.sock"
    with SidecarProcess(listen=[target]) as process:
        assert process.targets == [target]
        assert "session          none" in status(target).stdout


def test_a_sidecar_that_hangs_is_not_waited_for():
    with SidecarProcess() as process:
        process.process.send_signal(signal.SIGSTOP)
        try:
            done = status(process.targets[0], "--timeout", "0.5")
        finally:
            process.process.send_signal(signal.SIGCONT)
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.startswith("error: ")
        assert "did not answer within 0.5 s" in done.stderr
        assert status(process.targets[0]).returncode == 0

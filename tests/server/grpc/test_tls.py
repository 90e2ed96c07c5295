"""Unusable TLS files are named with their error: by check-config, by serve, by commands."""

import os
import shutil
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.server.config.sections import ListenSection
from allocator.server.grpc.access import Certificates
from allocator.server.system.tls_files import find_problem
from tests.server.config.nasty_files import huge
from tests.server.forked import completed
from tests.server.grpc.certificates import NEW_KEY, Authority


@pytest.fixture(scope="module")
def pems(tool, tmp_path_factory) -> Path:
    """Make an authority, a certificate, keys of several types, and invalid files."""
    directory = tmp_path_factory.mktemp("pems")
    authority = Authority(tool("openssl"), directory)
    authority.sign("a", "basicConstraints=CA:FALSE")
    openssl = authority.openssl
    alone = [*NEW_KEY, "-keyout", "alone.key", "-addext", "basicConstraints=CA:FALSE"]
    openssl("req", "-x509", *alone, "-out", "alone.pem", "-subj", "/CN=alone")
    openssl("ec", "-in", "a.key", "-aes256", "-passout", "pass:secret", "-out", "locked.key")
    short = ["-newkey", "rsa:1024", "-nodes", "-keyout", "short.key", "-out", "short.pem"]
    openssl("req", "-x509", *short, "-subj", "/CN=short")
    (directory / "text").write_text("not a certificate\n")
    (directory / "empty").write_text("")
    whole = (directory / "a.pem").read_text()
    (directory / "chain.pem").write_text(whole + (directory / "ca.pem").read_text())
    (directory / "cut.pem").write_text(whole[: len(whole) // 2])
    lines = whole.splitlines()
    lines[2] = lines[3]
    (directory / "garbled.pem").write_text("\n".join(lines))
    (directory / "binary").write_bytes(bytes(range(256)))
    return directory


RIGHT = [
    ("a.pem", "a.key", ""),
    ("a.pem", "a.key", "ca.pem"),
    ("chain.pem", "a.key", "chain.pem"),
    ("alone.pem", "alone.key", "alone.pem"),
    ("short.pem", "short.key", ""),
    ("", "", "ca.pem"),
    ("", "", ""),
]
WRONG = [
    ("a.pem", "", "", "key", "is missing while"),
    ("", "a.key", "", "cert", "is missing while"),
    ("a.pem", "ca.key", "", "key", "is not the certificate's"),
    ("a.pem", "a.pem", "", "key", "contains no private key"),
    ("a.pem", "binary", "", "key", "contains no private key"),
    ("a.pem", "empty", "", "key", "contains no private key"),
    ("a.pem", "locked.key", "", "key", "is encrypted"),
    *(
        (name, "a.key", "", "cert", "contains no readable certificate")
        for name in ("a.key", "text", "empty", "binary", "cut.pem", "garbled.pem")
    ),
    *(
        ("a.pem", "a.key", name, "ca", "contains no readable certificate")
        for name in ("ca.key", "text", "empty", "binary", "cut.pem", "garbled.pem")
    ),
    ("a.pem", "a.key", "a.pem", "ca", "contains no authority's certificate"),
]


def paths(pems: Path, names: tuple[str, ...]) -> list[str]:
    return [str(pems / name) if name else "" for name in names]


@pytest.mark.parametrize("names", RIGHT)
def test_files_that_do_are_taken(pems, names):
    assert find_problem(*paths(pems, names)) is None


@pytest.mark.parametrize(("cert", "key", "ca", "part", "said"), WRONG)
def test_files_that_do_not_are_named(pems, cert, key, ca, part, said):
    problem = find_problem(*paths(pems, (cert, key, ca)))
    assert problem is not None
    assert (problem.part, said in problem.message) == (part, True)


NO_FILES = {
    "a FIFO": (os.mkfifo, "is not a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
    "100 MB": (huge, "has more than 1048576 bytes"),
}


@pytest.mark.parametrize("name", NO_FILES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_special_files_are_neither_waited_for_nor_read(pems, tmp_path, name, place):
    make, said = NO_FILES[name]
    make(tmp_path / "odd")
    given = paths(pems, ("a.pem", "a.key", "ca.pem"))
    given[place] = str(tmp_path / "odd")
    with pytest.raises(OSError, match=said):
        find_problem(*given)


@pytest.mark.parametrize("name", NO_FILES)
def test_certificates_that_become_no_files_leave_those_from_before(pems, tmp_path, name, cap_log):
    """A user with write access can replace the files by anything; each handshake reads them."""
    for each in ("a.pem", "a.key"):
        shutil.copy(pems / each, tmp_path / each)
    section = ListenSection(tls_cert=f"{tmp_path}/a.pem", tls_key=f"{tmp_path}/a.key")
    certificates = Certificates(section)
    make, said = NO_FILES[name]
    (tmp_path / "a.key").unlink()
    make(tmp_path / "a.key")
    for _ in range(50):
        assert certificates._newer() is None
    (told,) = cap_log
    assert (told["log_level"], said in told["error"]) == ("warning", True)
    (tmp_path / "a.key").unlink()
    shutil.copy(pems / "a.key", tmp_path / "a.key")
    assert certificates._newer() is not None
    assert [each["event"] for each in cap_log[1:]] == ["certificates reloaded"]


@pytest.fixture
def cap_log():
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.mark.parametrize("command", ["check-config", "serve"])
def test_wrong_files_are_found_before_anything_starts(command, pems):
    """A key of another certificate, and one flag at a time on which gRPC would abort."""
    flags = [f"listen.tls_cert={pems}/a.pem", f"listen.tls_key={pems}/ca.key"]
    done = completed(command, *(word for flag in flags for word in ("--set", flag)))
    assert done.returncode == 78
    said = "--set: listen.tls_key: is not the certificate's; name the one it was made with"
    assert done.stderr == f"error: {said}\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cert": "a.pem"}, "--tls-key: is missing while --tls-cert is given; give both"),
        ({"key": "a.key"}, "--tls-cert: is missing while --tls-key is given; give both"),
        ({"ca": "ca.pem", "cert": "a.pem"}, "--tls-key: is missing"),
        ({"ca": "ca.pem", "key": "a.key"}, "--tls-cert: is missing"),
        ({"ca": "/dev/zero"}, "/dev/zero: is not a regular file"),
        ({"ca": "text"}, "text: contains no readable certificate"),
        ({"ca": "ca.pem", "cert": "a.pem", "key": "ca.key"}, "ca.key: is not the certificate's"),
    ],
)
def test_the_command_line_names_the_option(pems, options, said):
    words = [word for name, file in options.items() for word in (f"--tls-{name}", str(pems / file))]
    done = CliRunner().invoke(app, ["status", *words])
    assert done.exit_code == 2, done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_unix_socket_has_no_tls(pems, tmp_path):
    words = ["status", "--target", f"unix:{tmp_path}/a", "--tls-ca", f"{pems}/ca.pem"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "sidecars do not use TLS on Unix sockets" in done.stderr

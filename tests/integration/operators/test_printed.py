"""The output of commands for programs: formats, rows, and write errors."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import grpc
import pytest
import yaml
from typer.testing import CliRunner, Result

from allocator.cli.app import app
from allocator.cli.tree import CLOSED_PIPE
from allocator.core import AddFramework, Define, FrameworkInfo
from allocator.v1 import admin_pb2, admin_pb2_grpc
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.tiers import long

LONG = "a-framework-whose-name-is-" + "long-" * 60
LISTS = (
    "shares", "top", "policy show", "demand list", "constraint list", "limit list", "weight list",
    "drain list", "shadow show", "settings show", "agents", "frameworks", "roles",
)  # fmt: skip
"""Commands that list named things."""

OTHERS = (
    "status",
    "explain framework spark",
    "explain role eng",
    "explain agent a1",
    "policy set --dry-run",
)


@pytest.fixture(scope="module")
def process() -> Iterator[SidecarProcess]:
    """A sidecar with rules of each kind, set before any session."""
    with SidecarProcess() as sidecar:
        for words in (
            "demand set cpus:1 --role eng*",
            "demand set cpus:2 --all",
            "constraint set zone=a|b --role ops --framework-name kafka",
            "limit set eng cpus:4",
            "weight set 2 --framework-name spark",
            "gang set 8 --framework-name spark",
            "pause eng",
            "claim set eng cpus:1",
            "cap set eng cpus:1 --per principal",
            "drain set a2",
            "shadow set tsf",
        ):
            assert called(sidecar.targets[0], words).exit_code == 0
        yield sidecar


@pytest.fixture
def target(process) -> Iterator[str]:
    """The address of the sidecar `process`, in a session, after a cycle."""
    deep = Define({}, {3: "ops/deep"}), AddFramework(3, FrameworkInfo("id-3", name=LONG), (3,))
    with process.channel() as channel:
        module = GrpcModule(channel).begin((*CLUSTER, *deep))
        module.batch(cycle=True)
        yield process.targets[0]
        module.leave()


@pytest.fixture(autouse=True)
def buffered(monkeypatch):
    """Buffered as usual: output is written in large blocks."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


def run(target: str, words: str, **options) -> subprocess.CompletedProcess[str]:
    given = {"capture_output": True, "timeout": 120, **options}
    command = [sys.executable, "-m", "allocator", *words.split(), "--target", target]
    return subprocess.run(command, text=True, check=False, **given)


def called(target: str, words: str) -> Result:
    """Run a command in this process, which is faster."""
    return CliRunner().invoke(app, [*words.split(), "--target", target])


def printed(target: str, words: str) -> str:
    done = called(target, words)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("command", LISTS + OTHERS)
def test_an_answer_is_json_yaml_or_a_table(target, command):
    as_json = printed(target, f"{command} --output json")
    read = json.loads(as_json)
    assert json.loads(printed(target, f"{command} --json")).keys() == read.keys()
    as_yaml = yaml.safe_load(printed(target, f"{command} -o yaml"))
    assert as_yaml.keys() == read.keys()
    if command in LISTS and command != "shadow show":
        assert as_yaml == read
    assert printed(target, f"{command} -o wide")


def test_wide_is_all_columns(target):
    assert printed(target, "shares -o wide") == printed(target, "shares --wide")
    assert "dominant" in printed(target, "shares -o wide")
    assert "dominant" not in printed(target, "shares")


NAMES = {
    "shares": ["id-1", "id-2", "id-3"],
    "top": ["id-1", "id-2", "id-3"],
    "policy show": ["drf"],
    "demand list": ["--all", "--role 'eng*'"],
    "constraint list": ["--role ops --framework-name kafka"],
    "limit list": ["eng"],
    "weight list": ["--framework-name spark"],
    "drain list": ["a2"],
    "shadow show": ["tsf"],
    "agents": ["a1", "a2"],
    "frameworks": ["id-1", "id-2", "id-3"],
    "roles": ["eng", "ops", "ops/deep"],
}


@pytest.mark.parametrize("command", LISTS)
def test_names_are_what_other_commands_take(target, command):
    names = printed(target, f"{command} --output name").splitlines()
    if command == "settings show":
        assert {"policy.name", "limit role eng", "http.port"} <= set(names)
        return
    assert sorted(names) == NAMES[command]


@pytest.mark.parametrize("kind", ["drain", *long("demand", "constraint", "limit", "weight")])
def test_all_rules_of_a_kind_are_taken_back_by_their_names(target, tool, kind):
    """As in the manual's example for a shell."""
    line = f"$M {kind} list -o name | xargs -L1 $M {kind} remove --dry-run"
    environment = {
        **os.environ,
        "M": f"{sys.executable} -m allocator",
        "MESOS_ALLOCATOR_TARGET": target,
    }
    done = subprocess.run(
        [tool("bash"), "-o", "pipefail", "-c", line],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "dry run: nothing was changed" in done.stdout


@pytest.mark.parametrize("command", OTHERS)
def test_lists_without_names_are_refused_as_names(target, command):
    done = called(target, f"{command} -o name")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "lists no names; choose json, yaml or wide" in done.stderr


def test_two_forms_at_once_are_wrong_usage(target):
    done = called(target, "shares --json -o wide")
    assert done.exit_code == 2
    assert json.loads(done.stderr)["error"]["message"].startswith(
        "Invalid value: --json contradicts"
    )


@pytest.mark.parametrize("command", LISTS + OTHERS)
def test_a_piped_table_has_one_row_a_line(target, command):
    lines = printed(target, command).splitlines()
    assert not [line for line in lines if line != line.rstrip()], "blanks at the end"
    if command in {"shares", "shares --wide", "top"}:
        (row,) = [line for line in lines if LONG in line]
        (head,) = [line for line in lines if line.startswith("framework")]
        assert row.split()[1] == "ops/deep"
        assert row.split()[-1] == "active"
        assert len(row) > len(head) > 300


def test_columns_can_be_counted(target):
    """Empty cells have a mark, so that awk finds the same column in each row."""
    lines = printed(target, "demand list").splitlines()
    assert len({len(line.split()) for line in lines[1:]}) == 1


@pytest.mark.parametrize(
    "command", ["shares", "status --json", *long("status", "dump", "settings show")]
)
def test_a_disk_that_is_full_is_one_line(target, command):
    with Path("/dev/full").open("w") as full:
        done = run(target, command, stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "output cannot be written: No space left on device" in line


def test_errors_that_cannot_be_written_keep_their_code():
    with Path("/dev/full").open("w") as full:
        words = "status --timeout 1"
        done = run("127.0.0.1:1", words, stderr=full, stdout=subprocess.PIPE, capture_output=False)
    assert done.returncode == 3


@pytest.mark.parametrize(
    "command", ["shares", "dump", *long("status", "settings show", "explain role eng")]
)
def test_a_closed_pipe_ends_a_command_without_a_message(target, command):
    words = [sys.executable, "-m", "allocator", *command.split(), "--target", target]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (CLOSED_PIPE, "")


def test_a_standard_output_that_is_closed_is_one_line(target, tool):
    line = f"{sys.executable} -m allocator status --target {target} >&-"
    done = subprocess.run(
        [tool("bash"), "-c", line], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 1
    assert "output cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_help_goes_to_a_full_disk_in_one_line():
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "allocator", "--help"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_a_dump_that_is_cut_off_leaves_the_file_before(target, tmp_path):
    file = tmp_path / "state.json"
    file.write_text("before")
    done = called("127.0.0.1:1", f"dump {file} --timeout 1")
    assert (done.exit_code, file.read_text()) == (3, "before")
    assert printed(target, f"dump {file}") == ""
    assert json.loads(file.read_text())["sidecar_id"]
    assert list(tmp_path.iterdir()) == [file]


def test_output_of_a_dump_is_a_form_and_a_file_once_was(target, tmp_path):
    file = tmp_path / "state.json"
    done = called(target, f"dump --output {file}")
    assert (done.exit_code, done.stdout) == (0, "")
    said = f"warning: --output is for the format, not the file; write `dump {file}`\n"
    assert done.stderr == said
    assert json.loads(file.read_text())["sidecar_id"]
    assert json.loads(printed(target, "dump --output json"))["sidecar_id"]
    assert (
        json.loads(called("127.0.0.1:1", "dump -o json --timeout 1").stderr)["error"]["code"] == 3
    )


class Slow(admin_pb2_grpc.AdminServiceServicer):
    """A server that sends a state in pieces, as a slow line does."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s
        self.over = Event()

    def Dump(self, request, context):  # noqa: N802
        assert context.time_remaining() > 1e9, "there is a deadline for the whole"
        for piece in (b'{"agents"', b": [", b"]}"):
            self.over.wait(self.pause_s)
            yield admin_pb2.DumpResponse(json=piece)


@pytest.mark.parametrize(("pause_s", "code"), [(1.0, 0), (600.0, 3)])
def test_each_piece_of_a_dump_has_its_time(pause_s, code):
    """A time limit applies to each piece: two seconds each permit three seconds in total."""
    slow = Slow(pause_s)  # type: ignore[abstract]  # one call is enough
    server = grpc.server(ThreadPoolExecutor(2))
    admin_pb2_grpc.add_AdminServiceServicer_to_server(slow, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    done = called(f"127.0.0.1:{port}", "dump --timeout 2")
    slow.over.set()
    server.stop(None).wait()
    assert done.exit_code == code
    assert done.stdout == ("" if code else '{"agents": []}')
    assert ("did not answer within 2 s" in done.stderr) == bool(code)


def test_a_starved_sidecar_is_reported_with_where_to_look():
    with SidecarProcess() as sidecar:
        os.kill(sidecar.process.pid, signal.SIGSTOP)
        try:
            for words in ("status", "dump", "limit set eng cpus:1"):
                done = called(sidecar.targets[0], f"{words} --timeout 0.5")
                assert done.exit_code == 3
                (line,) = done.stderr.splitlines()
                assert "did not answer within 0.5 s" in line
                for place in ("its log", "/healthz", "/metrics", "load", "--timeout"):
                    assert place in line
        finally:
            os.kill(sidecar.process.pid, signal.SIGCONT)

"""`bundle`: one file with all information for a bug report, with or without names."""

import json
import re
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from allocator.cli.app import app
from allocator.cli.remote import bundle
from allocator.core import AddFramework, FrameworkInfo
from allocator.server.metrics.scraping import FAMILIES
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.wire.session.test_snapshot import texts

ALL = {
    *("contents.txt", "history.json", "log.txt", "metrics.txt", "settings.json"),
    *("journal", "snapshot.journal", "state.json", "status.json", "versions.json"),
}
NAMES = re.compile(rb"secret-\w+|agent-1|spark|kafka|\beng\b|\bops\b")


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory):
    recorded = f"journal.path={tmp_path_factory.mktemp('journal', numbered=False) / 'journal'}"
    with SidecarProcess(recorded) as process, process.channel() as channel:
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch(AddFramework(9, FrameworkInfo("secret-id", name="secret-name"), (1,)))
        words = ["limit", "set", "eng", "cpus:4", "--target", process.targets[0]]
        assert CliRunner().invoke(app, words).exit_code == 0
        yield process


def gathered(process: SidecarProcess, file: Path, *words: str) -> Result:
    target = ["--target", process.targets[0], "--http", process.http]
    return CliRunner().invoke(app, ["bundle", str(file), *target, *words])


def parts(file: Path) -> dict[str, bytes]:
    found = {}
    with tarfile.open(file) as archive:
        for each in archive.getmembers():
            directory, _, name = each.name.partition("/")
            assert (directory, each.mode) == ("report", 0o600)
            content = archive.extractfile(each)
            assert content is not None
            found[name] = content.read()
    return found


def test_one_file_has_all_that_is_available(sidecar, tmp_path):
    file, log = tmp_path / "report.tar.gz", tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(6000)))
    done = gathered(sidecar, file, "--log", str(log))
    assert (done.exit_code, done.stderr) == (0, "")
    found = parts(file)
    assert found.keys() == ALL
    assert json.loads(found["status.json"])["frameworks"] == 3
    assert json.loads(found["history.json"])["changes"][0]["settings"][0]["after"] == "cpus:4"
    assert b"secret-name" in found["state.json"]
    assert "secret-name" in texts(found["snapshot.journal"])
    assert b"mesos_allocator_in_session 1.0" in found["metrics.txt"]
    assert found["log.txt"].splitlines()[0] == b"line 1000"
    assert f"snapshot.journal: {len(found['snapshot.journal'])} bytes" in str(found["contents.txt"])
    assert file.stat().st_mode & 0o777 == 0o600
    for name in ("snapshot.journal", "journal"):
        (tmp_path / name).write_bytes(found[name])
        done = CliRunner().invoke(app, ["replay", str(tmp_path / name), "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["records"] > 0


def test_with_pseudonyms_there_is_no_name_in_it(sidecar, tmp_path):
    file = tmp_path / "report.tgz"
    done = gathered(sidecar, file, "--pseudonyms", "--json")
    found = parts(file)
    told = json.loads(done.stdout)
    named = {"settings.json", "history.json", "journal", "state.json", "log.txt"}
    assert told["left_out"].keys() == named
    assert all("has names" in why for why in told["left_out"].values())
    assert found.keys() == ALL - told["left_out"].keys()
    found["snapshot.journal"] = texts(found["snapshot.journal"]).encode()
    for name, content in found.items():
        assert not NAMES.search(content), name
    assert json.loads(found["status.json"])["frameworks"] == 3
    assert b'mesos_allocator_agents{state="active"}' in found["metrics.txt"]


def test_a_part_that_is_missing_or_too_large_is_named(sidecar, tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "PART_BYTES_MAX", 2**10)
    file = tmp_path / "report.tar.gz"
    words = ["bundle", str(file), "--target", sidecar.targets[0], "--log", f"{tmp_path}/none"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert "left out: settings.json: has more than 0 MiB" in done.stdout
    assert "left out: metrics.txt: their address is unknown; give --http" in done.stdout
    assert "left out: log.txt: [Errno 2] No such file" in done.stdout
    assert "journal/journal has more than 0 MiB; attach it separately" in done.stdout
    contents = parts(file)["contents.txt"].decode()
    assert [line for line in done.stdout.splitlines() if line.startswith("left out")] == [
        line for line in contents.splitlines() if line.startswith("left out")
    ]


def test_without_a_sidecar_the_rest_is_written(tmp_path):
    file = tmp_path / "report.tar.gz"
    words = ["bundle", str(file), "--target", "127.0.0.1:1"]
    for name in ("log", "journal"):
        (tmp_path / name).write_text("why it ended\n")
        words += [f"--{name}", str(tmp_path / name)]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("error: no sidecar answers at 127.0.0.1:1; is it running?")
    assert done.stderr.endswith(f"; {file} has the parts that were available\n")
    found = parts(file)
    assert b"left out: state.json: no sidecar answers at" in found["contents.txt"]
    assert found.keys() == {"contents.txt", "journal", "log.txt", "versions.json"}
    assert json.loads(found["versions.json"])["python"]


def test_labels_that_hold_names_are_known():
    labels = {label for family in FAMILIES for label in family.labels}
    named = {"framework", "framework_name", "role", "agent", "name"}
    assert labels - named == bundle.NAMELESS - {"le"}

"""Any configuration file is accepted or refused with an error, and never ends the process."""

import json
import signal
import string
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.cli.tree import Exit
from allocator.policies import POLICIES
from allocator.server.config import Config, ConfigError, Flag, load_all
from allocator.server.config.problems import PROBLEMS_MAX
from allocator.server.config.schema import keys, model_of
from tests.integration.operators.test_lasting_settings import ask
from tests.server.config.nasty_files import NASTY, remove
from tests.server.sidecar_process import SidecarProcess
from tests.tiers import long

LARGE = ("a value of many lines", "many unknown sections", "many wrong rules")
QUICK = [name for name in NASTY if name not in LARGE]


@pytest.mark.parametrize("name", QUICK + long(*LARGE))
def test_an_unreadable_configuration_is_reported_line_by_line(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    path, known = tmp_path / "c.toml", dict(POLICIES)
    NASTY[name](path)
    if name == "a role that is too deep":
        pytest.skip("limits.role_depth may be raised: what is in force then is asked for")
    done = CliRunner().invoke(app, ["check-config", str(path)])
    assert isinstance(done.exception, SystemExit), done.exception
    try:
        is_missing = not path.stat()
    except FileNotFoundError:
        is_missing = True
    except OSError:
        is_missing = False
    assert (done.exit_code, done.stdout) == (Exit.USAGE if is_missing else Exit.CONFIG, "")
    lines = done.stderr.splitlines()
    assert 0 < len(lines) <= PROBLEMS_MAX + 1
    for line in lines:
        assert line.startswith("error: ")
        assert len(line) < 1000
        assert str(tmp_path) in line or "more problems" in line or name == "many wrong rules"
        assert "cannot be checked" not in line, "it names the field"
    POLICIES.replace(known)


GOOD = '[[demand]]\nrole = "eng"\nresources = "cpus:{}"\n'


@pytest.mark.long
def test_no_configuration_that_is_read_again_ends_the_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, refused = tmp_path / "c.toml", 0
    path.write_text(GOOD.format(1))
    with SidecarProcess(config=path) as process:
        for name, put in NASTY.items():
            remove(path)
            put(path)
            process.process.send_signal(signal.SIGHUP)
            refused += 1
            said = "configuration refused, nothing has changed"
            while len(process.said(said)) < refused:
                assert process.alive, (name, process.raw)
                assert not process.said("configuration reloaded"), name
                time.sleep(0.01)
            assert process.said(said)[-1]["problems"], name
            (rule,) = ask(process, "demand", "list")["demands"]
            assert rule["demand"] == {"cpus": 1}, name
        remove(path)
        path.write_text(GOOD.format(2))
        process.process.send_signal(signal.SIGHUP)
        process.await_said("configuration reloaded")
        (rule,) = ask(process, "demand", "list")["demands"]
        assert rule["demand"] == {"cpus": 2}
        assert list(ask(process, "policy", "show")["policies"]) == list(POLICIES)
        assert process.terminate() == 0


numbers = st.sampled_from(
    ["9e999999", "-1e-9999999", "nan", "-inf", "sNaN", "0x" + "f" * 2000, "9" * 5000, "1_0", "٣"]
)
amounts = st.builds("{}:{}".format, st.sampled_from(["cpus", "", "é", "a b"]), numbers)
odd = st.one_of(
    numbers,
    amounts,
    st.lists(amounts, max_size=3).map(";".join),
    st.text(max_size=20),
    st.text(string.punctuation, max_size=20),
    st.sampled_from(["[" * 5000, "a/" * 500, "*" * 300, "[!" * 100, "\ud800", "unix:/\0", "\x1b]"]),
)
options = st.sampled_from(keys(Config))


def check(path: Path | None, flags: list[Flag]) -> None:
    """Accept it, or return its error; no other exception is raised."""
    known, problems = dict(POLICIES), []
    try:
        loaded = load_all(path, {}, flags)
        json.dumps(loaded.config.model_dump(mode="json"))
        loaded.config.settings()
    except ConfigError as error:
        problems = [str(problem) for problem in error.problems]
    finally:
        POLICIES.replace(known)
    for problem in problems:
        assert "cannot be checked" not in problem, "it names no field"
        assert problem.encode("utf-8", "backslashreplace")


@given(st.lists(st.tuples(options, odd), max_size=4))
def test_any_flag_is_taken_or_refused(given):
    check(None, [Flag("--set", ".".join(key), text) for key, text in given])


@given(st.lists(st.tuples(options, odd, st.booleans()), max_size=6))
def test_any_file_is_taken_or_refused(tmp_path_factory, given):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    lines = []
    for (section, key), text, quoted in given:
        rules = isinstance(Config.model_fields[section].default, tuple)
        value = json.dumps(text) if quoted else text
        lines += [f"[[{section}]]" if rules else f"[{section}]", f"{key} = {value}"]
        assert model_of(Config.model_fields[section]) is not None
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    check(path, [])

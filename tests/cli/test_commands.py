"""The command line, partly as a process: output, exit codes, speed."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import networkx as nx
import pytest
from typer.testing import CliRunner, Result

from allocator import __version__
from allocator.cli.app import app
from allocator.cli.local import graph
from allocator.cli.remote.connection import TARGET_DEFAULT
from allocator.cli.tree import Exit
from allocator.server.config import Config, example
from tests.cli.command_tree import LAB
from tests.tiers import long


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "allocator", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "100", **environment},
    )


def called(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, arguments, env=environment)


def test_help_lists_all_commands_and_what_the_exit_codes_mean():
    done = run("--help")
    assert done.returncode == 0
    commands = (
        "serve check-config status shares explain top policy demand constraint dump replay graph"
    )
    for command in commands.split():
        assert f"\n  {command} " in done.stdout
    assert "3 sidecar unreachable" in done.stdout


def imported_by(*arguments: str, package: str = "allocator") -> set[str]:
    """The packages that a command loads."""
    program = f"""
import sys
sys.argv = ["program", *{arguments!r}]
from {package}.cli import main
try:
    main()
except SystemExit:
    pass
print("\\nloaded:", *sys.modules)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.rpartition("loaded:")[2].split())


SLOW = {"numpy", "numba", "grpc", "matplotlib", "networkx", "structlog", "rich.table"}


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["policy", "set", "-h"]])
def test_help_loads_nothing_that_is_slow(arguments):
    assert not imported_by(*arguments) & {*SLOW, "laboratory"}


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "-h"], ["replay", "--help"]])
def test_help_of_the_laboratory_loads_nothing_that_is_slow(arguments):
    assert not imported_by(*arguments, package="laboratory") & SLOW


@pytest.mark.parametrize(
    "arguments",
    [
        ["check-config", "deploy/config.example.toml"],
        *long(["status", "--target", "127.0.0.1:9", "--timeout", "0.1"]),
        ["shares", "--target", "127.0.0.1:9", "--timeout", "0.1"],
        ["demand", "set", "cpus:2", "--all", "--target", "127.0.0.1:9", "--timeout", "0.1"],
    ],
)
def test_commands_without_loops_do_not_import_numba(arguments):
    assert "numba" not in imported_by(*arguments)


@pytest.mark.parametrize("missing", ["matplotlib", *long("joblib", "pyarrow", "scipy")])
def test_a_missing_library_of_the_laboratory_is_named(missing):
    program = f"""
import sys
sys.modules[{missing!r}] = None
from laboratory.cli import demo, main
demo.chosen = lambda *_: __import__({missing!r})
sys.argv = ["allocator-lab", "demo"]
main()
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: {missing} is not installed")
    assert "pip install 'mesos-allocator-lab'" in done.stderr


def test_a_missing_library_for_pictures_is_named(monkeypatch, tmp_path):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(graph, "_replayed", lambda _: ("its allocator", []))
    monkeypatch.setattr(graph, "constraint_graph_of", lambda _: nx.Graph())
    done = called("graph", str(tmp_path), str(tmp_path / "graph.png"))
    assert done.exit_code == 1
    assert "pip install 'mesos-allocator[plots]' installs it" in done.stderr


def test_the_server_and_every_policy_run_without_what_only_the_laboratory_needs():
    program = """
import sys
for name in "clarabel", "distributed", "joblib", "laboratory", "matplotlib", "pyarrow", "scipy":
    sys.modules[name] = None
import allocator.server.process.main
from allocator.core import PolicySpec
from allocator.core.numba.compiled import interpret
from allocator.policies import POLICIES, build
from allocator.testing import planned, static_snapshot
interpret(True)
for name in POLICIES:
    cluster, policy = static_snapshot([[9, 18]], [[1, 4], [3, 1]]), build(PolicySpec(name))
    assert len(policy.allocate(cluster, 0)), name
    assert len(policy.allocate(planned(cluster, policy), 0)), name
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_a_soak_on_a_sidecar_runs_without_the_libraries_of_the_laboratory():
    program = """
import sys
for name in "joblib", "matplotlib", "pyarrow", "scipy":
    sys.modules[name] = None
from laboratory.cli import main
sys.argv = ["allocator-lab", "demo", "soak", "--target", "127.0.0.1:9"]
main()
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)
    assert done.returncode == Exit.UNREACHABLE, done.stderr


def test_warm_has_nothing_to_do_twice(tmp_path):
    """A complete cache is left unchanged."""
    program = """
from allocator.server.system import loop_cache
loop_cache.prepare()
loop_cache.mark_complete()
from allocator.cli.local.warm import warm
warm()
import sys
assert "numba" not in sys.modules
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    assert done.stdout.startswith("already compiled: ")


PLAYS = [
    [LAB, "advise", "journal"],
    [LAB, "demo", "--scale", "0.01"],
    [LAB, "demo", "claims"],
    [LAB, "demo", "demands"],
    [LAB, "demo", "soak"],
    ["graph", "journal", "graph.json"],
    ["replay", "journal"],
    [LAB, "replay", "journal", "--policy", "drf"],
    [LAB, "reproduce", "drf-example"],
    [LAB, "simulate", "scenario.toml"],
]


@pytest.mark.long
def test_commands_that_play_compile_ahead_and_report_it(tmp_path):
    """Loops are compiled first: here the compiler fails, and so does the command."""
    (tmp_path / "journal").touch()
    examples = Path(__file__).parents[2] / "examples" / "scenarios"
    shutil.copy(examples / "one_greedy_framework.toml", tmp_path / "scenario.toml")
    program = f"""
import sys
from allocator.cli.app import app
from allocator.server.system import compilation
from laboratory.cli.app import app as lab_app
compilation.command = lambda part: [sys.executable, "-I", "-S", "-c", "raise SystemExit(9)"]
for arguments in {PLAYS}:
    try:
        lab_app(arguments[1:]) if arguments[0] == {LAB!r} else app(arguments)
    except SystemExit as end:
        print("ended:", end.code, file=sys.stderr)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "loops")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, check=True, text=True, env=environment, cwd=tmp_path
    )
    *each_said, rest = done.stderr.split("ended: 1\n")
    assert (len(each_said), rest) == (len(PLAYS), "")
    for arguments, said in zip(PLAYS, each_said, strict=True):
        first, last = said.splitlines()
        assert first.startswith(f"compiling the loops into {tmp_path / 'loops'}"), arguments
        assert first.endswith("(about a minute)")
        assert last.endswith("could not be compiled (exit code 9)")


def test_loops_are_compiled_ahead_once_and_results_do_not_mention_it(tmp_path):
    program = """
import sys
from allocator.cli.local.warm import compile_ahead
from allocator.server.system import compilation, loop_cache
compilation.command = lambda part: [sys.executable, "-c", "pass"]
loop_cache.prepare()
compile_ahead()
compile_ahead()
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    assert done.stdout == ""
    assert done.stderr.count("compiling the loops") == 1
    assert done.stderr.splitlines()[-1].startswith("all loops are compiled, after ")


def test_children_compile_this_package_and_not_one_of_the_working_directory(tmp_path):
    (tmp_path / "allocator.py").write_text("raise SystemExit(9)")
    program = """
import sys
sys.path.pop(0)
from allocator.cli.local.warm import compile_ahead
from allocator.server.system import compilation, loop_cache
compilation.command = lambda part: [sys.executable, "-c", "import allocator"]
loop_cache.prepare()
compile_ahead()
"""
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "NUMBA_CACHE_DIR": "loops", "PYTHONPATH": root}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("loops/loops-*/complete"))


def test_the_server_loads_nothing_that_only_the_laboratory_and_tables_need():
    program = "import sys, allocator.cli, allocator.server.process.main; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    loaded = set(done.stdout.split())
    assert not loaded & {
        "matplotlib",
        "networkx",
        "joblib",
        "laboratory",
        "allocator.cli.render.tables",
    }


def test_the_deciding_process_loads_nothing_that_answers_queries():
    program = "import sys, allocator.server.process.main; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    loaded = set(done.stdout.split())
    for name in ("following", "metrics", "reports.agent_rows", "views", "web"):
        assert f"allocator.server.{name}" not in loaded
    assert not loaded & {"allocator.explain", "jinja2", "prometheus_client", "starlette", "uvicorn"}


def test_version():
    assert called("--version").stdout == f"{__version__}\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["policy"], []])
def test_wrong_usage_ends_with_2(arguments):
    assert called(*arguments).exit_code == 2


def test_without_a_sidecar_a_process_says_so_and_ends_with_3(tmp_path):
    target = f"unix:{tmp_path}/none"
    problem = f"no sidecar answers at {target}; is it running?"
    process = run("status", "--target", target)
    assert (process.returncode, process.stdout) == (3, "")
    (line,) = process.stderr.splitlines()
    assert line.startswith(f"error: {problem}")
    done = called("status", "--json", "--target", target)
    assert (done.exit_code, done.stdout) == (3, "")
    error = json.loads(done.stderr)["error"]
    assert (error["code"], error["reason"]) == (3, "unreachable")
    assert error["message"].startswith(problem)


def test_the_target_may_come_from_the_environment(tmp_path):
    done = called("status", MESOS_ALLOCATOR_TARGET=f"unix:{tmp_path}/elsewhere")
    assert f"{tmp_path}/elsewhere" in done.stderr


def test_the_default_target_is_where_a_sidecar_listens_by_default():
    assert Config().listen.targets == (TARGET_DEFAULT,)


def test_a_file_for_tls_that_is_not_there_is_named():
    done = called("status", "--tls-ca", "/nowhere.pem")
    assert done.exit_code == 2
    assert done.stderr == "error: /nowhere.pem: No such file or directory\n"


def test_check_config_prints_the_example():
    assert called("check-config", "--example").stdout == example()


def test_check_config_says_ok_or_what_results(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("[http]\nport = 1\n")
    done = called("check-config", str(file))
    assert (done.exit_code, done.stdout) == (0, f"{file}: ok\n")
    done = called("check-config", str(file), "--json", "--set", "http.host=::")
    tree = json.loads(done.stdout)
    assert tree["http"] == {"host": "::", "port": 1, "page": "local", "names": []}
    assert tree.keys() == Config.model_fields.keys()


@pytest.mark.parametrize("name", ["-", *long("/dev/stdin")])
def test_check_config_reads_standard_input(name):
    def checked(text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "allocator", "check-config", name]
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=120, check=False
        )

    good = checked("[http]\nport = 1\n")
    assert (good.returncode, good.stdout) == (0, "/dev/stdin: ok\n")
    bad = checked("[http]\nport = -1\n")
    assert bad.returncode == 78
    assert bad.stderr.startswith("error: /dev/stdin:2: http.port")


def test_check_config_warns_of_a_variable_with_one_underscore():
    environment = {
        "MESOS_ALLOCATOR_HTTP_PORT": "1",
        "MESOS_ALLOCATOR_TLS_CERT": "/operator.pem",  # of commands that ask a sidecar
        "MESOS_ALLOCATOR_TARGET": "127.0.0.1:5056",
        "MESOS_ALLOCATOR_TOKEN_FILE": "/token",
        "MESOS_ALLOCATOR_SESSION_TOKEN_FILE": "/token",
        "MESOS_ALLOCATOR_TLS_KEY": "/operator.key",
        "MESOS_ALLOCATOR_TLS_CA": "/ca.pem",
        "MESOS_ALLOCATOR_CONFIG": "",
    }
    done = CliRunner().invoke(app, ["check-config"], env=environment)
    assert (done.exit_code, done.stdout) == (0, "configuration: ok\n")
    name = "MESOS_ALLOCATOR_HTTP_PORT"
    mend = "did you mean MESOS_ALLOCATOR_HTTP__PORT?"
    assert done.stderr == f"warning: environment {name}: is not an option, and is ignored; {mend}\n"


@pytest.mark.parametrize("command", [["check-config"], ["serve", "--config"]])
def test_a_wrong_configuration_ends_with_78_and_all_problems(command, tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(
        '[http]\nport = -1\nhots = "a"\n[policy]\nname = "dfr"\nflat = 1\n[polciy]\nname = "drf"\n'
    )
    done = called(*command, str(file))
    assert done.exit_code == 78
    assert done.stdout == ""
    lines = [line.removeprefix(f"error: {file}:") for line in done.stderr.splitlines()]
    assert [line.partition(":")[0] for line in lines] == ["2", "3", "5", "6", "7"]


def test_a_setting_must_have_a_value():
    done = called("check-config", "--set", "http.port")
    assert done.exit_code == 2
    assert "'http.port' is not of the form section.key=value" in done.stderr


def test_flags_of_serve_are_options_of_the_configuration():
    names = ["--http-port", "--policy", "--mode", "--log-level", "--listen"]
    done = called("serve", *(word for name in names for word in (name, "-1")))
    assert done.exit_code == 78
    assert {line.split(": ")[1] for line in done.stderr.splitlines()} == set(names)


def test_the_manual_names_options_that_there_are():
    """The configuration knows all settings in docs/how-to/install.md."""
    deploy = Path(__file__).parents[2] / "deploy"
    tree = tomllib.loads((deploy / "config.example.toml").read_text())
    known = {f"{section}.{key}" for section, table in tree.items() for key in table}
    words = (deploy.parent / "docs" / "how-to" / "install.md").read_text().replace("`", " ").split()
    named = {word.partition("=")[0] for word in words if word.partition("=")[0] in known}
    assert "listen.targets" in named

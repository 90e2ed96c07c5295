"""Users' policies: loading, trial, limits, and messages about errors in them."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import structlog

from allocator import policies
from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    FrameworkInfo,
    Kind,
    PolicySpec,
    Settings,
)
from allocator.core.numba.compiled import interpreted_here
from allocator.policies import POLICIES
from allocator.server.config import Config, ConfigError, Flag, load, load_all
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.operators.operators import Operators
from allocator.server.plugins import loading as plugins
from allocator.server.plugins.guarded_policy import GuardedRegistry
from allocator.server.plugins.loading import PluginError, load_file
from allocator.server.system import threads
from allocator.testing import placement, static_snapshot
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from tests.server.forked import completed
from tests.server.in_process import asking, running

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "busy_first.py"
DAMPED = ROOT / "examples" / "damped_weights.py"

HEAD = """
import time
import numpy as np
from allocator.core import Grants
from allocator.policies import Entry, filled_by
from allocator.policies.drf import drf
from allocator.policies.filling import Filling
"""


@pytest.fixture(autouse=True)
def registry():
    """Restore the registry afterwards."""
    before = dict(POLICIES)
    yield
    POLICIES.replace(before)


@pytest.fixture
def plugin(tmp_path):
    """Write a file with a policy of this body; returns its path."""

    def write(body: str, name: str = "mine") -> str:
        path = tmp_path / f"{name}.py"
        lines = "\n".join(f"        {line}" for line in body.splitlines())
        path.write_text(
            f"{HEAD}\nclass Mine:\n    calls = 0\n    def allocate(self, snapshot, seed):\n"
            f"        Mine.calls += 1\n{lines}\n"
            f'POLICIES = {{"{name}": Entry(lambda spec: Mine())}}\n'
        )
        return str(path)

    return write


PATIENCE_S = 300.0
"""A deadline that includes time to compile."""

FILL = 'return Filling(drf, "listed").allocate(snapshot, seed)'


def session(build, name: str = "mine") -> Allocator:
    """An allocator with two frameworks and an agent."""
    settings = Settings(policy=PolicySpec(name))
    made = Allocator(build, settings, substitute=policies.substitute())
    made.step(Define(kinds={0: Kind("cpus"), 1: Kind("mem")}, roles={1: "eng"}))
    made.step(AddAgent(1, AgentInfo("a"), {0: 4000, 1: 8000}))
    made.step(AddFramework(1, FrameworkInfo("f"), roles=(1,)))
    return made


# The example.


def test_the_example_keeps_empty_agents_empty():
    load_file(str(EXAMPLE))
    policy = GuardedRegistry(PATIENCE_S).build(PolicySpec("busy-first"))
    key = np.array([2 << 32])
    cluster = static_snapshot([[4, 4], [4, 4]], [[1, 1], [2, 2]], holder=key)
    assert placement(cluster, policy.allocate(cluster, 0)).sum(axis=0).tolist()[0] == 0
    agents = np.array([1])
    only_empty = static_snapshot([[4, 4], [4, 4]], [[1, 1], [2, 2]], holder=key, agents=agents)
    assert placement(only_empty, policy.allocate(only_empty, 0)).sum(axis=0)[0] > 0


def test_the_example_serves_a_session_and_shows_scores():
    load_file(str(EXAMPLE))
    made = session(GuardedRegistry(PATIENCE_S).build, "busy-first")
    assert len(made.allocate(1000)) == 1
    assert made.last_cycle.policy_error == ""
    assert np.nanmax(made.scores()) == 1.0
    made.check()


def test_the_example_is_what_the_configuration_can_name(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(
        f'[policy]\nname = "busy-first"\nplugins = ["{EXAMPLE}"]\n'
        '[policy.parameters]\namong = "joint"\n'
    )
    config = load(file, {})
    assert config.policy.spec().name == "busy-first"
    assert POLICIES["busy-first"].origin == str(EXAMPLE)
    assert load(file, {}).policy.plugins == (str(EXAMPLE),)  # again: the same file, the same name


@pytest.mark.parametrize(("parameters", "tasks"), [({}, [3, 6]), ({"power": "0"}, [4, 4])])
def test_the_example_of_a_criterion_damps_weights(parameters, tasks):
    """Of nine tasks, weights 1 and 4 give 1 : 2; to the power of 0 they do not count."""
    load_file(str(DAMPED))
    spec = PolicySpec("damped-weights", "listed", parameters=parameters)
    policy = GuardedRegistry(PATIENCE_S).build(spec)
    cluster = static_snapshot([[sum(tasks)] * 2], [[1, 1], [1, 1]], weight=[1, 4])
    assert placement(cluster, policy.allocate(cluster, 0)).sum(axis=1).tolist() == tasks


@pytest.mark.parametrize("example", [EXAMPLE, DAMPED])
def test_check_config_runs_the_example(example):
    name = example.stem.replace("_", "-")
    words = ["--set", f"policy.plugins={example}", "--set", f"policy.name={name}"]
    done = completed("check-config", *words)
    assert (done.returncode, done.stderr) == (0, "")


# Errors are named.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:", "is not valid Python: line 1: invalid syntax"),
        ("x = 1\nraise RuntimeError('no luck')", "fails at line 2: RuntimeError: no luck; fix it"),
        ("import no_such_module", "fails at line 1: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "fails at line 1: SystemExit: 3"),
        ("x = 1", "defines no POLICIES; write POLICIES = {"),
        ("POLICIES = {}", "must be a dict that is not empty: POLICIES"),
        ("POLICIES = ['a']", "must be a dict that is not empty: POLICIES"),
        ("POLICIES = {'a': 3}", "POLICIES['a']: is int; make it an allocator.policies.Entry"),
        (f"{HEAD}POLICIES = {{3: filled_by(lambda: drf)}}", "POLICIES: 3 is not a name; write"),
        (
            f"{HEAD}POLICIES = {{'x': filled_by(lambda: drf), 'drf': filled_by(lambda: drf)}}",
            "POLICIES['drf']: mesos-allocator itself has that name; choose another",
        ),
    ],
)
def test_an_invalid_file_is_named_with_the_fix(text, said, tmp_path):
    path, file = tmp_path / "p.py", tmp_path / "c.toml"
    path.write_text(text)
    file.write_text(f'[policy]\nplugins = ["{path}"]\n')
    names = list(POLICIES)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith(f'{file}:2: policy.plugins[0] = "{path}": ')
    assert said in problem
    assert list(POLICIES) == names  # nothing was applied


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PluginError, match=r"cannot be read \(No such file or directory\); name"):
        load_file(f"{tmp_path}/none.py")


def test_two_files_cannot_have_one_name(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"{HEAD}POLICIES = {{'x': filled_by(lambda: drf)}}")
    load_file(f"{tmp_path}/one.py")
    with pytest.raises(PluginError, match=r"one\.py has that name; choose another"):
        load_file(f"{tmp_path}/two.py")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 1 / 0", "ZeroDivisionError: division by zero"),
        ("return None", "allocate() gave NoneType; it must give Grants"),
        ("return Grants([], [], [], [])", "Grants.client must be an array of int64"),
        (
            "none = np.empty(0)\nreturn Grants(none, none, none, none)",
            "Grants.client must be an array of int64 with 1 axes",
        ),
        ("snapshot.free[:] = 0", "assignment destination is read-only"),
        ("snapshot.tree.weight[:] = 0", "assignment destination is read-only"),
    ],
)
def test_a_policy_that_fails_is_found_by_check_config(plugin, body, said):
    """The policy decides about a small cluster before it takes effect."""
    from allocator.server.config import Flag

    path = plugin(body)
    flags = [Flag("--set", "policy.plugins", path), Flag("--policy", "policy.name", "mine")]
    with pytest.raises(ConfigError) as caught:
        load(None, {}, flags)
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith("--policy: policy.name: ")
    assert f"the policy 'mine' of {path} fails on a small cluster: " in problem
    assert said in problem


def test_entry_points_are_loaded_and_what_is_wrong_with_them_is_said(monkeypatch):
    def found(group):
        assert group == "mesos_allocator.policies"
        values = {
            "good": "allocator.policies:POLICIES.replace",
            "entry": "tests.server.plugins.entry_of_a_package:ENTRY",
            "gone": "no_such_package:ENTRY",
        }
        return [EntryPoint(name, value, group) for name, value in values.items()]

    monkeypatch.setattr(plugins, "entry_points", found)
    problems = list(plugins.load_entry_points())
    assert "entry" in POLICIES
    assert POLICIES["entry"].origin.startswith(
        "the entry point entry = tests.server.plugins.entry_of"
    )
    gone, good = sorted(problems, key=lambda each: "good" in each)
    assert "gone = no_such_package:ENTRY" in gone
    assert "cannot be loaded: ModuleNotFoundError" in gone
    assert "POLICIES['good']: is method; make it" in good
    with pytest.raises(ConfigError, match="entry point gone"):
        load(None, {})


# In force.


def test_a_policy_that_overruns_is_replaced_and_not_asked_again(plugin):
    path = plugin(f"if Mine.calls > 1: Mine.gate.wait()\n{FILL}")
    load_file(path)
    mine = sys.modules[f"mesos_allocator_plugin:{path}"].Mine
    mine.gate = threading.Event()  # opened when no test waits for it any more
    registry = GuardedRegistry(0.2)
    registry.try_out(PolicySpec("mine"))
    made = session(registry.build)
    assert len(made.allocate(1000)) == 1  # the substitute's
    assert "'mine' did not decide within 200 ms" in made.last_cycle.policy_error
    assert mine.calls == 2
    again = session(registry.build)  # another session does not ask it again
    again.allocate(2000)
    assert "took too long before and is no longer called" in again.last_cycle.policy_error
    assert mine.calls == 2
    mine.gate.set()
    registry.renew(PolicySpec("mine"))
    session(registry.build).allocate(3000)
    assert mine.calls == 3  # called again


def test_a_policy_that_was_kept_and_fails_now_leaves_cycles_to_the_substitute(plugin):
    """It was set long ago, and its file has changed: the sidecar starts nevertheless."""
    load_file(plugin("raise KeyError('x')"))
    registry = GuardedRegistry(PATIENCE_S)
    registry.begin_with(PolicySpec("mine"))
    made = session(registry.build)
    assert len(made.allocate(1000)) == 1
    assert "KeyError: 'x'" in made.last_cycle.policy_error


# The trial, and what it waits for.


def test_a_trial_compiles_nothing_of_ours():
    """So its time depends only on a small cluster, on any machine, with any cache."""
    program = f"""
import sys
from allocator.server.config import Flag, load
flags = [Flag("", "policy.plugins", {str(EXAMPLE)!r}), Flag("", "policy.name", "busy-first")]
load(None, {{}}, flags)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


COMPILES = f"""
import numba
numba.njit(lambda x: np.sort(x)[::-1].copy())(np.ones(3))
{FILL}"""


@pytest.mark.long
def test_compilation_does_not_count_as_the_policys_own_time(plugin):
    """Compiling this takes longer than the policy's time limit."""
    load_file(plugin(COMPILES))
    with interpreted_here():
        GuardedRegistry(10.0).try_out(PolicySpec("mine"), within_s=0.2)


def test_a_trial_ends_a_policy_that_takes_its_own_time(plugin, monkeypatch, capfd):
    """The log says what it waits for."""
    path = plugin(f"Mine.gate.wait()\n{FILL}")
    load_file(path)
    mine = sys.modules[f"mesos_allocator_plugin:{path}"].Mine
    mine.gate = threading.Event()
    monkeypatch.setattr(threads, "PATIENCE_S", 0.05)
    monkeypatch.setattr(structlog, "is_configured", lambda: False)
    with pytest.raises(ValueError, match="'mine' did not decide within 300 ms"):
        GuardedRegistry(10.0).try_out(PolicySpec("mine"), within_s=0.3)
    mine.gate.set()
    said = capfd.readouterr().err
    assert "the policy 'mine' is tried out: waiting for its decision for 0 s" in said


NEVER = {
    "build": "def build(spec):\n    {never}\nPOLICIES = {{'mine': Entry(build)}}",
    "criterion": (
        "def criterion():\n    {never}\nPOLICIES = {{'mine': filled_by(criterion, 'listed')}}"
    ),
}


@pytest.mark.parametrize("kind", NEVER)
def test_a_policy_that_is_never_made_is_named_and_not_waited_for_twice(tmp_path, monkeypatch, kind):
    path = tmp_path / "mine.py"
    never = "begun.append(1); gate.wait()"
    head = f"{HEAD}import threading\nbegun, gate = [], threading.Event()\n"
    path.write_text(head + NEVER[kind].format(never=never))
    load_file(str(path))
    module = sys.modules[f"mesos_allocator_plugin:{path}"]
    monkeypatch.setattr(plugins, "BUILD_S", 0.2)
    said = f"name: the policy 'mine' of {path} does not return from its `build`"
    with pytest.raises(ValueError, match=f"{said} within 0.2 s; fix it, or take another"):
        GuardedRegistry(10.0).try_out(PolicySpec("mine"))
    for make in (policies.build, GuardedRegistry(10.0).build, GuardedRegistry(10.0).try_out):
        with pytest.raises(ValueError, match=f"{said}; fix it, and reload the configuration"):
            make(PolicySpec("mine"))
    assert module.begun == [1]
    if kind == "criterion":
        with pytest.raises(ValueError, match=said):
            policies.build(PolicySpec("drf", subtrees={"eng": "mine"}))
    module.gate.set()


def test_a_policy_that_would_end_the_process_is_refused(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(HEAD + NEVER["build"].format(never="raise SystemExit(3)"))
    load_file(str(path))
    with pytest.raises(ValueError, match=r"'mine' of .* it would end the process; fix it"):
        GuardedRegistry(10.0).try_out(PolicySpec("mine"))


def test_a_file_that_does_not_end_is_named(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text("import time\nwhile True: time.sleep(0.01)")
    monkeypatch.setattr(plugins, "LOAD_S", 0.2)
    with pytest.raises(PluginError, match=r"it did not return within 0\.2 s; fix it"):
        load_file(str(path))
    assert f"mesos_allocator_plugin:{path}" not in sys.modules


SHORT = """
from allocator.cli import main
from allocator.server.plugins import loading as plugins

plugins.BUILD_S = plugins.LOAD_S = 2.0
main()
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}{NEVER['build'].format(never='while True: time.sleep(0.01)')}", "its `build`"),
        ("import time\nwhile True: time.sleep(0.01)", "it did not return within 2 s"),
    ],
)
@pytest.mark.parametrize("command", ["check-config", "serve"])
def test_no_start_waits_forever_for_a_policy(tmp_path, command, text, said):
    path = tmp_path / "mine.py"
    path.write_text(text)
    words = [command, "--set", f"policy.plugins={path}", "--set", "policy.name=mine"]
    done = subprocess.run(
        [sys.executable, "-c", SHORT, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 78
    assert said in done.stderr
    assert str(path) in done.stderr


def test_an_operator_sees_that_a_policy_was_never_created(tmp_path, monkeypatch):
    """The core continues meanwhile with the previous policy."""
    path = tmp_path / "mine.py"
    head = f"{HEAD}import threading\nbegun, gate = threading.Event(), threading.Event()\n"
    path.write_text(head + NEVER["build"].format(never="begun.set(); gate.wait()"))
    load_file(str(path))
    module = sys.modules[f"mesos_allocator_plugin:{path}"]
    monkeypatch.setattr(plugins, "BUILD_S", 1.0)
    request = pb.SetPolicyRequest(policy=settings_pb2.Policy(name="mine"))
    with administered(GuardedRegistry(10.0)) as (loop, stub):
        answer = stub.SetPolicy.future(request, timeout=60)
        assert module.begun.wait(60)
        assert loop.call(lambda: loop.allocator.settings.policy.name).result(60) == "drf"
        with pytest.raises(grpc.RpcError, match="does not return from its `build` within 1 s"):
            answer.result(60)
        assert stub.GetStatus(pb.GetStatusRequest(), timeout=60).policy.name == "drf"
    module.gate.set()


ENDS = """
import atexit
from allocator.cli import main
from allocator.server.plugins import guarded_policy

guarded_policy.TRIAL_S = 0.2
atexit.register(print, "the interpreter ends")
main()
"""


def test_no_command_ends_its_interpreter_under_a_thread(plugin):
    """An abandoned policy continues to run, and may compile."""
    path = plugin("while True: time.sleep(0.01)")
    words = ["check-config", "--set", f"policy.plugins={path}", "--set", "policy.name=mine"]
    command = [sys.executable, "-c", ENDS, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 78
    assert "did not decide within 200 ms" in done.stderr
    assert "the interpreter ends" not in done.stdout


def test_a_policy_that_grants_too_much_is_replaced_for_the_cycle(plugin):
    body = (
        "grants = Filling(drf, 'listed').allocate(snapshot, seed)\n"
        "amount = grants.amount * 2\n"
        "return Grants(grants.client, grants.agent, grants.tasks, amount)"
    )
    load_file(plugin(body))
    made = session(GuardedRegistry(PATIENCE_S).build)
    decisions = made.allocate(1000)
    assert decisions.amount.tolist() == [[4000, 8000]]
    assert "BadGrantError: more granted than is free" in made.last_cycle.policy_error
    made.check()


def test_a_policy_cannot_change_the_books(plugin):
    load_file(plugin("snapshot.demand[:] = 7"))
    made = session(GuardedRegistry(PATIENCE_S).build)
    demand = made.state.clients.demand.copy()
    assert len(made.allocate(1000)) == 1
    assert "read-only" in made.last_cycle.policy_error
    assert (made.state.clients.demand == demand).all()


def test_policies_of_ours_are_not_guarded():
    threads = threading.active_count()
    assert type(GuardedRegistry(1.0).build(PolicySpec("drf"))) is type(
        policies.build(PolicySpec("drf"))
    )
    assert threading.active_count() == threads


def test_a_criterion_of_a_user_decides_below_a_role_and_is_guarded_there(tmp_path):
    path = tmp_path / "c.py"
    path.write_text(f"{HEAD}POLICIES = {{'c': filled_by(lambda: drf)}}")
    load_file(str(path))
    spec = PolicySpec("drf", subtrees={"eng": "c"})
    policy = GuardedRegistry(PATIENCE_S).build(spec)
    assert type(policy).__name__ == "GuardedPolicy"


def test_a_policy_that_decides_alone_takes_no_selection_and_no_subtrees(plugin):
    load_file(plugin(FILL))
    for spec, said in (
        (PolicySpec("mine", "joint"), "selection: the policy mine chooses agents by itself"),
        (PolicySpec("mine", subtrees={"eng": "drf"}), "subtrees: the policy mine decides for all"),
        (PolicySpec("drf", subtrees={"eng": "mine"}), "subtrees.eng: there is no policy 'mine'"),
    ):
        with pytest.raises(ValueError, match=said):
            policies.build(spec)


# Set while a sidecar runs.


@contextmanager
def administered(registry: GuardedRegistry) -> Iterator[tuple[CoreLoop, AdminServiceStub]]:
    """A core on its thread, with the operators' service in front of it."""
    loop = CoreLoop(
        Config(),
        build_policy=registry.build,
        before_policy=registry.renew,
    )
    with running(loop), asking(loop, try_policy=registry.try_out) as stub:
        yield loop, stub


def waiting_at_first(plugin) -> tuple[Any, pb.SetPolicyRequest]:
    """A policy that blocks in its trial until its gate opens."""
    path = plugin(f"Mine.begun.set()\nMine.gate.wait(60)\n{FILL}")
    load_file(path)
    mine = sys.modules[f"mesos_allocator_plugin:{path}"].Mine
    mine.begun, mine.gate = threading.Event(), threading.Event()
    return mine, pb.SetPolicyRequest(policy=settings_pb2.Policy(name="mine"))


def test_the_core_continues_during_the_trial_of_a_policy(plugin):
    mine, request = waiting_at_first(plugin)
    with administered(GuardedRegistry(10.0)) as (loop, stub):
        answer = stub.SetPolicy.future(request, timeout=60)
        assert mine.begun.wait(60)
        assert loop.call(lambda: loop.allocator.settings.policy.name).result(60) == "drf"
        mine.gate.set()
        assert answer.result(60).policy.name == "mine"
        assert mine.calls == 2  # once in each process; the core did not repeat the trial


MADE_BY = """
class Mine:
    made_by = []
    def __init__(self):
        Mine.made_by.append(threading.current_thread().name)
    def allocate(self, snapshot, seed):
        return Filling(drf, "listed").allocate(snapshot, seed)
"""


def test_the_core_does_not_create_a_users_shadow_policy(tmp_path):
    """Neither on an operator's change nor on a configuration's: creating one may take long."""
    path = tmp_path / "mine.py"
    path.write_text(
        f"{HEAD}import threading\n{MADE_BY}\nPOLICIES = {{'mine': Entry(lambda spec: Mine())}}"
    )
    load_file(str(path))
    made_by = sys.modules[f"mesos_allocator_plugin:{path}"].Mine.made_by
    request = pb.SetShadowRequest(policy=settings_pb2.Policy(name="mine"))
    with administered(GuardedRegistry(10.0)) as (loop, stub):
        stub.SetShadow(request, timeout=60)
        assert loop.call(lambda: loop.allocator.settings.shadow).result(60) is not None
        operators = Operators(loop, load_all(None, {}))
        flags = [Flag("", "policy.plugins", str(path)), Flag("", "shadow.policy", "mine")]
        operators.replace_config(load_all(None, {}, flags))
    assert made_by
    assert "core" not in made_by


def test_a_trial_that_takes_too_long_for_the_operator_changes_nothing(plugin):
    mine, request = waiting_at_first(plugin)
    with administered(GuardedRegistry(10.0)) as (_, stub):
        with pytest.raises(grpc.RpcError) as caught:
            stub.SetPolicy(request, timeout=0.5)
        mine.gate.set()
        assert caught.value.code() in {
            grpc.StatusCode.DEADLINE_EXCEEDED,
            grpc.StatusCode.INVALID_ARGUMENT,
        }
        assert stub.GetPolicy(pb.GetPolicyRequest()).policy.name == "drf"


def test_a_policy_that_fails_when_it_is_tried_out_is_refused(plugin):
    load_file(plugin("raise KeyError('x')"))
    request = pb.SetPolicyRequest(policy=settings_pb2.Policy(name="mine"))
    with administered(GuardedRegistry(10.0)) as (_, stub):
        with pytest.raises(grpc.RpcError, match="fails on a small cluster") as caught:
            stub.SetPolicy(request)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert stub.GetPolicy(pb.GetPolicyRequest()).policy.name == "drf"

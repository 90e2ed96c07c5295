"""The help of every command is complete, and looks the same everywhere."""

import shlex

import pytest
from typer.core import TyperGroup

from allocator.cli.remote.completing import Mode
from allocator.policies import MODES
from tests.cli.command_tree import LAB, commands, invoke, leaves

TREE = dict(commands())


@pytest.mark.parametrize("path", TREE, ids=lambda path: " ".join(path) or "root")
def test_help_says_all_there_is(path):
    command = TREE[path]
    done = invoke([*path, "--help"], env={"COLUMNS": "80", "LINES": "50"})
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    program = () if path[:1] == (LAB,) else ("mesos-allocator",)
    assert lines[0].startswith(" ".join(("Usage:", *program, *path)))
    assert max(map(len, lines)) <= 80
    assert (command.help or "").strip().split("\n")[0].endswith((".", ":"))
    for parameter in command.params:
        hidden = getattr(parameter, "hidden", False)
        assert hidden or parameter.help, f"{parameter.name} is not explained"
        assert hidden or parameter.help.endswith((".", ")")), parameter.help
    if isinstance(command, TyperGroup):
        for name in command.commands:
            assert any(line.split()[:1] == [name] for line in lines), f"{name} is not listed"
    again = invoke([*path, "-h"], env={"COLUMNS": "80", "LINES": "50"})
    assert again.stdout == done.stdout


@pytest.mark.parametrize("path", leaves(), ids=" ".join)
def test_commands_with_arguments_have_a_valid_example(path, tmp_path):
    command = TREE[path]
    example = (command.epilog or "").partition("Example: ")[2].removeprefix("mesos-allocator ")
    if any(parameter.param_type_name == "argument" for parameter in command.params):
        assert example
    if not example:
        return
    words = shlex.split(example)
    assert tuple(words[: len(path)]) == path
    if path[-1] in {"advise", "graph", "replay"}:  # they want a journal that is there
        words = [word.replace("/var/lib/mesos-allocator", str(tmp_path)) for word in words]
    command.make_context(path[-1], words[len(path) :])


def test_modes_are_those_of_the_policies():
    assert tuple(Mode) == MODES

"""`settings export` and `apply`: settings as a file, and a file as settings."""

import tomllib

import pytest

from tests.integration.operators.test_lasting_settings import ask, command, settings
from tests.server.forked import completed

EVERYTHING = """\
[policy]
name = "choosy"
mode = "characterised"
parameters = { unit = "tasks" }
subtrees = { "eng/a b" = "tsf" }

[shadow]
policy = "ps-dsf"
mode = "characterised"

[[demand]]
framework_name = "spark*"
resources = "cpus:0.5;mem:12345.125"
override = true

[[constraint]]
role = "eng"
agents = "zone=a|b"

[[limit]]
role = "ops"
resources = "cpus:4"

[[drain]]
agent = "a2"

[[weight]]
role = "eng"
weight = 2.5

"""


@pytest.fixture
def write(tmp_path):
    def write_file(text: str) -> str:
        file = tmp_path / "settings.toml"
        file.write_text(text)
        return str(file)

    return write_file


def exported(session) -> str:
    done = command(session.process, "settings", "export")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def apply(session, file: str, *words: str) -> list[str]:
    done = command(session.process, "apply", "-f", file, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_exported_settings_can_be_applied(session, write):
    assert exported(session) == ""
    told = apply(session, write(EVERYTHING))
    assert [line.partition(":")[0] for line in told if line[:2] in {"+ ", "- ", "~ "}] == [
        "~ policy",
        "+ shadow",
        "+ demand framework spark*",
        "+ constraint role eng",
        "+ limit role ops",
        "+ drain agent a2",
        "+ weight role eng",
    ]
    text = exported(session)
    assert tomllib.loads(text) == tomllib.loads(EVERYTHING)
    assert apply(session, write(text))[0] == "no differences: everything is already set"
    ask(session.process, "settings", "reset", "--all")
    apply(session, write(text))
    assert exported(session) == text


def test_settings_not_in_the_file_stay_unless_pruned(session, write):
    ask(session.process, "limit", "set", "eng", "cpus:2")
    file = write('[[limit]]\nrole = "ops"\nresources = "cpus:4"\n')
    assert apply(session, file, "--dry-run")[0] == "+ limit role ops: cpus:4"
    assert "ops" not in exported(session)
    apply(session, file)
    assert {each["role"] for each in tomllib.loads(exported(session))["limit"]} == {"eng", "ops"}
    assert apply(session, file, "--prune")[0] == "- limit role eng: cpus:2"
    assert [each["role"] for each in tomllib.loads(exported(session))["limit"]] == ["ops"]
    changed = write('[[limit]]\nrole = "ops"\nresources = "cpus:6"\n')
    assert apply(session, changed)[0] == "~ limit role ops: cpus:4 -> cpus:6"
    row = settings(session.process)["limit", "role ops"]
    assert (row["source"], row["value"]) == ("operator", "cpus:6")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('[[drain]]\nagent = "nope"\n', 4, "drain agent nope: no agent has the id or host name"),
        ('[[limit]]\nrole = "eng/ "\nresources = "x"\n', 78, "settings.toml:6: limit"),
        ("[http]\nport = 1\n", 2, "settings.toml:5: http.port: operators cannot set it; move"),
        ("[policy]\nseed = 1\n", 2, "settings.toml:5: policy.seed: operators cannot set it"),
        ('[policy]\nname = "dfr"\n', 78, "did you mean 'drf'?"),
    ],
)
def test_all_of_a_file_is_set_or_nothing(session, write, text, code, said):
    good = '[[limit]]\nrole = "ops"\nresources = "cpus:4"\n'
    done = command(session.process, "apply", "-f", write(good + text))
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert exported(session) == ""


def test_probable_mistakes_are_applied_by_force_with_a_warning(session, write):
    file = write('[[drain]]\nagent = "nope"\n')
    told = apply(session, file, "--force")
    assert told[0] == "+ drain agent nope: drained"
    assert any(line.startswith("warning: drain agent nope: no agent has") for line in told)


def test_agents_are_judged_together(session, write):
    done = command(
        session.process, "apply", "-f", write('[[drain]]\nagent = "a1"\n[[drain]]\nagent = "a2"\n')
    )
    assert done.returncode == 4
    assert "every agent would be drained" in done.stderr
    assert exported(session) == ""


def test_standard_input_is_read(session):
    words = ("apply", "-f", "-", "--json", "--target", session.process.targets[0])
    done = completed(*words, text='[[weight]]\nrole = "eng"\nweight = 3\n')
    assert done.returncode == 0, done.stderr
    assert "weight = 3.0" in exported(session)
    session.process.await_said("setting", setting="weight", new="3", result="done")


def test_all_options_are_exported_where_they_are_wanted(session):
    done = command(session.process, "settings", "export", "--all")
    tree = tomllib.loads(done.stdout)
    assert tree["http"]["port"] == 0
    assert tree["listen"]["targets"] == ["127.0.0.1:0"]

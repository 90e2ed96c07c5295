"""The configuration: precedence of its sources, and that its example is complete."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from allocator.core import PolicySpec, SessionLimits, Settings
from allocator.rule_kinds import KINDS
from allocator.server.config import Config, ConfigError, Flag, example, load, load_all
from allocator.server.config.exchange import read_loaded, write_loaded
from allocator.server.config.schema import is_rules, keys, live_sections, model_of, toml_value

EXAMPLE = Path(__file__).parents[3] / "deploy" / "config.example.toml"

RULES = {name for name, option in Config.model_fields.items() if is_rules(option)}


def write(path: Path, text: str) -> Path:
    file = path / "config.toml"
    file.write_text(text, encoding="utf-8")
    return file


def flattened(tree: dict) -> dict[tuple[str, str], object]:
    return {
        (section, key): value for section, table in tree.items() for key, value in table.items()
    }


def defaults() -> dict[tuple[str, str], object]:
    tree = Config().model_dump(exclude=RULES)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in flattened(tree).items()
    }


def test_the_example_has_every_option_with_its_default_and_nothing_else():
    assert flattened(tomllib.loads(EXAMPLE.read_text())) == defaults()


def test_the_example_is_what_the_options_say_of_themselves():
    assert EXAMPLE.read_text() == example()


def test_the_example_loads_and_changes_nothing():
    assert load(EXAMPLE, {}) == Config()


def test_the_rules_of_the_example_load_too_and_have_every_key(tmp_path):
    text = re.sub(r"^#(?! )", "", EXAMPLE.read_text(), flags=re.MULTILINE)
    config: Any = load(write(tmp_path, text), {})
    assert [rule.resources for rule in config.demand] == ["cpus:2;mem:2048"]
    assert [rule.role for rule in config.limit] == ["eng/ads"]
    assert [rule.agents for rule in config.constraint] == ["zone=a|b; gpu_model!=K80; ssd"]
    tree = tomllib.loads(text)
    for name in RULES:
        model = model_of(Config.model_fields[name])
        assert model is not None
        assert list(tree[name][0]) == list(model.model_fields)


def test_an_option_without_default_and_example_gets_no_made_up_value():
    class Rule(BaseModel):
        role: str = Field(description="Which role.")

    option = Rule.model_fields["role"]
    with pytest.raises(AssertionError, match="neither a default nor an example"):
        toml_value(option.default, option)
    assert "Undefined" not in EXAMPLE.read_text()


@pytest.mark.parametrize(("section", "key"), keys(Config))
def test_every_option_says_what_it_means(section, key):
    model = model_of(Config.model_fields[section])
    assert model is not None
    assert model.__doc__
    assert (model.model_fields[key].description or "").endswith(".")


def test_limits_and_settings_default_to_those_of_the_core():
    assert Config().limits.core() == SessionLimits()
    assert Config().settings() == Settings()


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Config().http.port = 1  # type: ignore[misc]


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path):
    file = write(tmp_path, "[http]\nport = 1\n[limits]\nagents = 1\n[policy]\nname = 'tsf'")
    environment = {
        "MESOS_ALLOCATOR_HTTP__PORT": "2",
        "MESOS_ALLOCATOR_LIMITS__AGENTS": "2",
        "MESOS_ALLOCATOR_TARGET": "not an option of the sidecar: it has no section",
        "PATH": "/bin",
    }
    flags = [Flag("--set", "http.port", "3"), Flag("--set", "http.port", "4")]
    config = load(file, environment, flags)
    assert (config.http.port, config.limits.agents, config.policy.name) == (4, 2, "tsf")
    assert config.limits.frameworks == Config().limits.frameworks


def test_flags_and_the_environment_give_numbers_with_a_fraction(tmp_path):
    environment = {"MESOS_ALLOCATOR_STARVATION__OUTSTANDING_MAX": "0.25"}
    config = load(None, environment, [Flag("--set", "metrics.fair_share_every_s", "30")])
    found = config.starvation.outstanding_max, config.metrics.fair_share_every_s
    assert found == (0.25, 30)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("listen.targets", "unix:/run/a.sock, 127.0.0.1:0", ("unix:/run/a.sock", "127.0.0.1:0")),
        ("listen.targets", '["[::1]:5056"]', ("[::1]:5056",)),
        ("listen.unix_mode", "0o600", 0o600),
        ("policy.flat", "true", True),
        ("policy.seed", "12", 12),
        ("http.host", "12", "12"),
        ("journal.path", "", ""),
    ],
)
def test_a_text_is_read_as_the_type_of_its_option(key, text, value):
    section, name = key.split(".")
    for config in (
        load(None, {}, [Flag("--set", key, text)]),
        load(None, {f"MESOS_ALLOCATOR_{section}__{name}".upper(): text}),
    ):
        assert getattr(getattr(config, section), name) == value


def test_parameters_of_a_policy_come_from_anywhere(tmp_path):
    file = write(tmp_path, "[policy]\nname = 'choosy'\n[policy.parameters]\nunit = 'agents'")
    assert load(file, {}).policy.spec() == PolicySpec("choosy", parameters={"unit": "agents"})
    config = load(file, {"MESOS_ALLOCATOR_POLICY__PARAMETERS__UNIT": "tasks"})
    assert config.policy.parameters == {"unit": "tasks"}


def test_rules_become_events_of_the_core(tmp_path):
    text = """
    [[demand]]
    role = "eng/*"
    resources = "cpus:1.5;mem:512"
    [[constraint]]
    framework_name = "spark*"
    agents = "ssd"
    """
    settings = load(write(tmp_path, text), {}).settings()
    demand = settings.demand_rule("eng/ads", "kafka")
    assert demand is not None
    assert demand.demand == {"cpus": 1500, "mem": 512_000}
    assert settings.constraint_rules("ops", "spark 1") == ["ssd"]
    assert settings.constraint_rules("ops", "kafka") == []


def test_the_configuration_can_state_everything_operators_can_set():
    """Therefore SIGHUP applies it: sections that the core receives are live."""
    assert set(KINDS) <= set(live_sections(Config))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"observer.listen": "10.0.0.1:5058"}, "observer.listen: 10.0.0.1:5058 reaches beyond"),
        (
            {
                "observer.listen": "10.0.0.1:5058",
                "listen.allow_plaintext": "true",
                "access.admin_read_token": "/etc/hostname",
            },
            "access.admin_read_token: would pass in clear at 10.0.0.1:5058",
        ),
        (
            {"observer.sources": "a:5058", "observer.token": "/etc/hostname"},
            "observer.token: would pass in clear to a:5058",
        ),
        ({"observer.tls_cert": "/etc/hostname"}, "observer.tls_ca: is missing"),
        ({"observer.tls_ca": "/etc/hostname"}, "observer.tls_ca: contains no readable certificate"),
        ({"observer.sources": "a"}, "must be host:port"),
    ],
)
def test_no_follower_is_served_in_clear_by_mistake(options, said):
    flags = [Flag("--set", key, text) for key, text in options.items()]
    with pytest.raises(ConfigError) as refused:
        load(None, {}, flags)
    assert said in str(refused.value)


def test_the_configuration_of_another_machine_is_read_without_its_files(tmp_path):
    for name in ("cert", "journal"):
        (tmp_path / name).touch()
    flags = [
        Flag("--set", "access.session_token", str(tmp_path / "cert")),
        Flag("--set", "journal.path", str(tmp_path / "journal")),
    ]
    written = write_loaded(load_all(None, {}, flags))
    for each in tmp_path.iterdir():
        each.unlink()
    (tmp_path / "journal").mkdir()
    with pytest.raises(ValueError, match="cannot be read"):
        read_loaded(written)
    read = read_loaded(written, elsewhere=True)
    assert read.config.access.session_token == str(tmp_path / "cert")
    assert write_loaded(read) == written

"""Which sections of the configuration apply on a reload, and which after a restart."""

import re
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from pydantic import BaseModel

from allocator.server.config import Config
from allocator.server.config.schema import is_live, is_rules, keys, live_sections
from allocator.server.config.sections import ShadowSection
from tests.integration.operators.test_lasting_settings import ask, settings
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess

MANUAL = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "install.md"


class Watched:
    """A section that records which of its values are read."""

    def __init__(self, model: BaseModel, name: str, seen: set[tuple[str, str]]) -> None:
        self._model, self._name, self._seen = model, name, seen

    def __getattr__(self, key: str) -> Any:
        if key in type(self._model).model_fields:
            self._seen.add((self._name, key))
            return getattr(self._model, key)
        method = getattr(type(self._model), key)
        assert isinstance(method, FunctionType)
        return partial(method, self)


class WatchedConfig:
    """A configuration that records which of its parts the core receives."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()

    def __getattr__(self, name: str) -> Any:
        value = getattr(Config(shadow=ShadowSection(policy="tsf")), name)
        if isinstance(value, BaseModel):
            return Watched(value, name, self.seen)
        self.seen.add((name, ""))
        return value


def test_exactly_the_options_of_the_core_are_live():
    """Options are declared live if and only if they go into the core's settings."""
    config: Any = WatchedConfig()
    Config.settings(config)
    told = config.seen | {("policy", "plugins")}  # files that are read again
    live = set()
    for name, section in Config.model_fields.items():
        if is_rules(section):
            live |= {(name, "")} if is_live(Config, [name]) else set()
        else:
            live |= {pair for pair in keys(Config) if pair[0] == name and is_live(Config, pair)}
    assert live == told


def test_the_manual_names_the_sections_that_count_at_once():
    text = " ".join(MANUAL.read_text().split())
    (said,) = re.findall(r"Otherwise (.*?) take effect together, immediately", text)
    named = set(re.findall(r"\[+(\w+)\]+", said))
    assert named == set(live_sections(Config))


def value(process: SidecarProcess, key: str, scope: str = "") -> str:
    row = settings(process)[key, scope]
    assert row["source"] == "file", row
    return str(row["value"])


def shares(process: SidecarProcess) -> dict[str, dict]:
    return {each["framework_name"]: each for each in ask(process, "shares")["clients"]}


Holds = Callable[[SidecarProcess], bool]

CHANGES: dict[str, tuple[str, Holds]] = {
    "policy": (
        '[policy]\nname = "tsf"\n',
        lambda process: ask(process, "policy", "show")["policy"]["name"] == "tsf",
    ),
    "shadow": (
        '[shadow]\npolicy = "ps-dsf"\n',
        lambda process: ask(process, "shadow", "show")["shadow"]["name"] == "ps-dsf",
    ),
    "learn": (
        "[learn]\nacceptances = 7\n",
        lambda process: value(process, "learn.acceptances") == "7",
    ),
    "fairness": (
        "[fairness]\nhalf_life_s = 3600\n",
        lambda process: value(process, "fairness.half_life_s") == "3600",
    ),
    "starvation": (
        "[starvation]\npatience_cycles = 9\n",
        lambda process: value(process, "starvation.patience_cycles") == "9",
    ),
    "maintenance": (
        "[maintenance]\nahead_s = 3600\n",
        lambda process: value(process, "maintenance.ahead_s") == "3600",
    ),
    "limit": (
        '[[limit]]\nrole = "ops"\nresources = "cpus:1"\n',
        lambda process: ask(process, "limit", "list")["limits"][0]["limit"] == {"cpus": 1},
    ),
    "demand": (
        '[[demand]]\nrole = "eng"\nresources = "cpus:2"\n',
        lambda process: shares(process)["spark"]["demand"] == {"cpus": 2},
    ),
    "constraint": (
        '[[constraint]]\nrole = "eng"\nagents = "zone=a"\n',
        lambda process: (
            ask(process, "constraint", "list")["constraints"][0]["expression"] == "zone=a"
            and settings(process)["constraint", "role eng"]["match"]["agents"] == 1
        ),
    ),
    "drain": (
        '[[drain]]\nagent = "a1"\n',
        lambda process: (
            ask(process, "drain", "list")["drains"] == [{"agent": "a1", "from_ms": 0}]
            and ask(process, "status")["active_agents"] == 1
        ),
    ),
    "weight": (
        '[[weight]]\nframework_name = "spark*"\nweight = 3\n',
        lambda process: shares(process)["spark"]["weight"] == 3,
    ),
    "pause": (
        '[[pause]]\nrole = "dev"\n',
        lambda process: ask(process, "pause", "list")["pauses"] == [{"role": "dev"}],
    ),
    "claim": (
        '[[claim]]\nrole = "dev"\nresources = "cpus:2"\n',
        lambda process: (
            ask(process, "claim", "list")["claims"] == [{"role": "dev", "claim": {"cpus": 2}}]
        ),
    ),
    "cap": (
        '[[cap]]\nrole = "dev"\nper = "user"\nresources = "cpus:2"\n',
        lambda process: (
            ask(process, "cap", "list")["caps"]
            == [{"role": "dev", "per": "user", "cap": {"cpus": 2}}]
        ),
    ),
    "gang": (
        '[[gang]]\nframework_name = "spark*"\ntasks = 3\n',
        lambda process: ask(process, "gang", "list")["gangs"][0]["tasks"] == 3,
    ),
    "budget": (
        '[[budget]]\nrole = "eng"\nresources = "cpus:3h"\nper = "day"\n',
        lambda process: ask(process, "budget", "list")["budgets"][0]["budget"] == {"cpus": 3},
    ),
}


def test_every_live_section_takes_effect_by_sighup(tmp_path):
    assert set(CHANGES) == set(live_sections(Config))
    file, read = tmp_path / "c.toml", 0
    file.write_text("")
    with SidecarProcess(config=file) as process, process.channel() as channel:
        module = GrpcModule(channel).begin(CLUSTER)
        before = settings(process)

        def read_again(text: str) -> dict:
            nonlocal read
            file.write_text(text)
            process.process.send_signal(signal.SIGHUP)
            read += 1
            while len(process.said("configuration reloaded")) < read:
                assert not process.said("configuration refused, nothing has changed")
                assert process.alive
                time.sleep(0.01)
            return process.said("configuration reloaded")[-1]

        for name, (text, holds) in CHANGES.items():
            said = read_again(text)
            module.batch(cycle=True)
            assert {key.partition(".")[0] for key in said["changed"]} == {name}
            assert said["needs_restart"] == [], name
            assert holds(process), name
            read_again("")
            assert settings(process) == before, "and is gone again"
        said = read_again("[policy]\nplan_budget_ms = 5\n[limits]\nroles = 9\n")
        assert said["changed"] == {}
        assert sorted(said["needs_restart"]) == ["limits.roles", "policy.plan_budget_ms"]
        assert settings(process) == before
        module.leave()

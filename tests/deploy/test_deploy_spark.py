"""The page for operators of Spark agrees with the sidecar and the models of Spark."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from allocator.cli.render import share_tables
from allocator.cli.tree import Exit
from allocator.core import format_quantities, parse_quantities
from allocator.server.config import Config
from laboratory.experiments.demand_sources import SOURCES
from laboratory.frameworks.spark import DynamicAllocation, SparkSettings
from laboratory.workloads.spark_experiment import MODES
from tests.cli.test_commands import called

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "spark.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"(?s)```{language}\n(.*?)```", PAGE)


def settings_of(text: str) -> dict[str, str]:
    """Settings of a `spark-defaults.conf`."""
    return dict(line.split(None, 1) for line in text.splitlines())


def mib(memory: str) -> int:
    """Memory in Spark's format."""
    return int(memory[:-1]) * {"g": 1024, "m": 1}[memory[-1]]


COMMANDS = [
    line.removeprefix("$ mesos-allocator ")
    for block in blocks("console")
    for line in block.splitlines()
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_is_one(command: str, tmp_path: Path):
    """No sidecar runs here; a wrong argument would give another exit code."""
    done = called(*shlex.split(command), MESOS_ALLOCATOR_TARGET=f"unix:{tmp_path}/nobody")
    assert done.exit_code == Exit.UNREACHABLE, done.stderr


def test_executors_of_the_examples_are_what_the_rules_for_their_roles_say():
    lines = re.findall(r"demand set '(\S+)' --role (\S+)$", PAGE, re.MULTILINE)
    rules = dict(reversed(line) for line in lines)
    found = {}
    for block in blocks("properties"):
        given = settings_of(block)
        overhead = given.get("spark.mesos.executor.memoryOverhead")
        spark = SparkSettings(
            executor_cores=int(given["spark.executor.cores"]),
            executor_memory_mib=mib(given["spark.executor.memory"]),
            memory_overhead_mib=int(overhead) if overhead else None,
            dynamic=DynamicAllocation() if "spark.dynamicAllocation.enabled" in given else None,
        )
        found[given["spark.mesos.role"]] = format_quantities(spark.executor)
    assert found == rules
    assert len(found) == 2


def test_the_file_of_the_example_is_a_configuration():
    (text,) = blocks("toml")
    config: Any = Config.model_validate(tomllib.loads(text))
    (rule,) = config.demand
    assert f"demand set '{rule.resources}' --role {rule.role}" in PAGE
    assert parse_quantities(rule.resources)["cpus"] == 2000


def test_every_setting_of_the_examples_is_explained():
    explained = set(re.findall(r"`(spark[\w.]+)`", PAGE))
    named = set(re.findall(r"`(\.\w+\.file)`", PAGE))
    for block in blocks("properties"):
        for name in settings_of(block):
            short = "." + ".".join(name.split(".")[2:])
            known = name in explained or short in named
            assert known or name in {"spark.master", "spark.dynamicAllocation.maxExecutors"}, name


def columns(*, wide: bool) -> set[str]:
    """Column headings of `shares`, for frameworks."""
    head = share_tables._wide(False) if wide else share_tables._narrow(False)
    more = share_tables._MORE_WIDE if wide else share_tables._MORE
    return {each.removeprefix(">") for each in (*head, *more)}


def quoted(text: str) -> set[str]:
    """Words in backticks that could be headings."""
    return {each for each in re.findall(r"`([^`]+)`", text) if re.fullmatch(r"[a-z ]+", each)}


def test_columns_of_the_table_are_there_and_those_that_only_wide_has_are_named():
    table = PAGE.partition("| what you see |")[2].partition("\n\n")[0]
    named = set().union(*(quoted(row.split("|")[1]) for row in table.splitlines()[2:]))
    no_columns = {"explain", "explain framework", "inactive", "operator", "learned", "prior"}
    no_columns |= {"there is no such framework", "there is no such role"}
    wide, narrow = columns(wide=True), columns(wide=False)
    assert named - no_columns <= wide
    of_wide_alone = quoted(
        PAGE.partition("Without `--wide` the columns ")[2].partition(" are missing")[0]
    )
    assert of_wide_alone == (named - no_columns) - narrow - {"demand"}


def test_the_figures_are_of_each_source_and_mode():
    table = PAGE.partition("| demand | cores set")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines()[2:]]
    called = {"set": "told"}  # demands set by rules
    words = [row[0].split()[0] for row in rows]
    assert [called.get(word, word) for word in words] == list(SOURCES)
    assert all(len(row) == 1 + len(MODES) for row in rows)

"""Write the generated pages of `docs/`: `python tools/docs/generate.py [DIRECTORY]`.

What is said of policies comes from results that `which_policy.py` keeps.
The options come from their models, the metrics from their table, and the panels and alerts from the
files in `deploy/`.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import commands
import forecasts
import frameworks
import gang_days
import gangs
import hostile_tenants
import module_reference
import parallel_jobs
import rpcs
import scaling
import use_over_time
import which_policy
from pydantic import BaseModel

from allocator.server.config import Config
from allocator.server.config.example import described
from allocator.server.config.schema import is_free, is_rules, model_of, toml_value
from allocator.server.metrics.family import PREFIX, Family
from allocator.server.metrics.scraping import GROUPS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"

WRITTEN = "<!-- `make docs` writes this file. -->\n"

OF_OPTIONS = """\
This page lists every option of the sidecar's configuration, with its default. [Install and
configure the sidecar](../how-to/install.md) says how to begin. `deploy/config.example.toml`
contains all of them.

`mesos-allocator check-config FILE` checks a file. An option `key` of `[section]` is also the
variable `MESOS_ALLOCATOR_SECTION__KEY`, and the flag `--set section.key=VALUE`. A flag overrides
the environment, and the environment overrides the file.
"""

OF_METRICS = """\
This page lists what a sidecar shows at `/metrics`. The last column names the
[dashboards](../how-to/dashboards.md) and [alerts](../how-to/alerts.md) that use a metric. Counters
start when the process starts; counters of the module start when its master begins to lead. The
usual metrics of a process, `process_...`, are also available.
"""


def write(directory: Path) -> None:
    """Write all that are generated."""
    pages = {
        "reference/commands.md": commands.page(),
        "reference/laboratory.md": commands.page_of_lab(),
        "reference/configuration.md": configuration(),
        "reference/metrics.md": metrics(),
        "reference/module.md": module_reference.page(),
        "reference/rpcs.md": rpcs.page(),
        "explanation/which-policy.md": which_policy_page(),
        "explanation/scaling.md": scaling.page(),
        "explanation/use-over-time.md": use_over_time.page(),
        "explanation/forecasts.md": forecasts.page(),
        "explanation/hostile-tenants.md": hostile_tenants.page(),
        "explanation/frameworks.md": frameworks.page(),
    }
    for name, text in pages.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")


def which_policy_page() -> str:
    """Which policy for which cluster, and how to start gangs."""
    return f"{which_policy.page()}\n{gangs.section()}{gang_days.section()}{parallel_jobs.section()}"


# ------------------------------------------------------------------------------- configuration


def configuration() -> str:
    """Every option, by section."""
    parts = [
        "# Configuration\n",
        WRITTEN,
        OF_OPTIONS,
    ]
    for name, section in Config.model_fields.items():
        model = model_of(section)
        assert model is not None
        rules = is_rules(section)
        parts.append(f"## {f'[[{name}]]' if rules else f'[{name}]'}\n")
        parts.append(f"{' '.join((model.__doc__ or '').split())}\n")
        parts.append("\n".join(_options(model, rules=rules)) + "\n")
    return "\n".join(parts)


def _options(model: type[BaseModel], *, rules: bool) -> Iterator[str]:
    yield f"| option | {'example' if rules else 'default'} | |"
    yield "|---|---|---|"
    for key, option in model.model_fields.items():
        default = option.get_default(call_default_factory=True)
        if rules and option.examples:
            default = option.examples[0]
        value = "a table" if is_free(option) else f"`{_cell(toml_value(default, option))}`"
        yield f"| `{key}` | {value} | {_cell(described(option))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# ------------------------------------------------------------------------------------- metrics


def metrics() -> str:
    """Every metric, with its labels and where it is shown."""
    boards = {
        board.stem.removeprefix("mesos-allocator-"): set(
            re.findall(rf"\b{PREFIX}\w+", board.read_text(encoding="utf-8"))
        )
        for board in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
    }
    alerts = _asked_by_alerts()
    parts = ["# Metrics\n", WRITTEN, OF_METRICS]
    for group, families in GROUPS.items():
        rows = (_of_metric(family, boards, alerts) for family in families)
        head = (
            f"## {group}\n",
            "| metric | type | labels | | shown, watched |",
            "|---|---|---|---|---|",
        )
        parts.append("\n".join([*head, *rows, ""]))
    return "\n".join(parts)


def _of_metric(
    family: Family[Any], boards: Mapping[str, set[str]], alerts: Mapping[str, set[str]]
) -> str:
    """One line, with an anchor that bears the metric's name."""
    name = family.full_name
    names = {name, f"{name}_bucket"}
    kind = "gauge" if family.kind == "info" else family.kind
    shown = [board for board, asked in boards.items() if names & asked]
    watched = [alert for alert, asked in alerts.items() if names & asked]
    return (
        f'| `{name}` <a id="{name}"></a> | {kind} |'
        f" {', '.join(sorted(family.labels))} |"
        f" {_cell(family.text)} | {', '.join([*shown, *watched])} |"
    )


def _asked_by_alerts() -> dict[str, set[str]]:
    """The metrics that each alert rests on, those behind recorded ones included."""
    text = (DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8")
    recorded: dict[str, set[str]] = {}
    found: dict[str, set[str]] = {}
    for kind, name, body in re.findall(r"(?s)- (record|alert): (\S+)\n(.*?)(?=\n *- |\Z)", text):
        expression = body.partition("labels:")[0]
        asked = set(re.findall(rf"\b{PREFIX}\w+", expression))
        behind = (recorded[each] for each in recorded if each in expression)
        (recorded if kind == "record" else found)[name] = asked.union(*behind)
    return found


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs")

"""Write the pages of this directory that are generated: `python docs/generate.py [DIRECTORY]`.

What is said of policies comes from results that `docs/which_policy.py` keeps.
The options come from their models. The metrics come from a real scrape of a sidecar's listener
before a small cluster, the panels and alerts from the files in `deploy/`.
"""

import re
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import commands
import hostile_tenants
import module_reference
import numpy as np
import rpcs
import scaling
import which_policy
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from allocator import core, policies
from allocator.server.config import Config, Flag, Loaded, load
from allocator.server.config.example import described
from allocator.server.config.schema import is_free, is_rules, model_of, toml_value
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.fairness import FairnessWatch
from allocator.server.engine.planning import Planner
from allocator.server.engine.session_info import SessionInfo
from allocator.server.grpc.access import Access
from allocator.server.grpc.calls import Calls
from allocator.server.metrics.collecting import InParts
from allocator.server.metrics.fairness_families import FairnessCollector
from allocator.server.metrics.metrics import start_http
from allocator.server.metrics.module_families import ModuleCollector
from allocator.server.metrics.operation_families import OperationCollector
from allocator.server.operators.audit import Audit
from allocator.server.operators.operators import Operators
from allocator.server.system.compilation import Compilation
from allocator.wire import ModuleFigures

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parent / "deploy"

PREFIX = "mesos_allocator_"

WRITTEN = "<!-- `make docs` writes this file. -->\n"

OF_OPTIONS = """\
This page lists every option of the sidecar's configuration, with its default. Use it to look an
option up; [Install and configure the sidecar](../how-to/install.md) says how to begin.
`deploy/config.example.toml` is a file with all of these.

`mesos-allocator check-config FILE` checks a file. An option `key` of `[section]` is also the
variable `MESOS_ALLOCATOR_SECTION__KEY`, and the flag `--set section.key=VALUE`. A flag wins over
the environment, and the environment over the file.
"""

OF_METRICS = """\
This page lists what a sidecar shows at `/metrics`. The last column names the
[dashboards](../how-to/dashboards.md) and [alerts](../how-to/alerts.md) that use a metric. Beside
these there are the usual ones of a process, `process_...`.
"""


def write(directory: Path) -> None:
    """Write all that are generated."""
    pages = {
        "reference/commands.md": commands.page(),
        "reference/configuration.md": configuration(),
        "reference/metrics.md": metrics(),
        "reference/module.md": module_reference.page(),
        "reference/rpcs.md": rpcs.page(),
        "explanation/which-policy.md": which_policy.page(),
        "explanation/scaling.md": scaling.page(),
        "explanation/hostile-tenants.md": hostile_tenants.page(),
    }
    for name, text in pages.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")


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
    families = [each for each in scraped() if each.name.startswith(PREFIX)]
    boards = {
        board.stem.removeprefix("mesos-allocator-"): set(
            re.findall(rf"\b{PREFIX}\w+", board.read_text(encoding="utf-8"))
        )
        for board in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
    }
    alerts = _asked_by_alerts()
    rows = []
    for family in families:
        names = {family.name, f"{family.name}_total", f"{family.name}_bucket"}
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        shown = [board for board, asked in boards.items() if names & asked]
        watched = [alert for alert, asked in alerts.items() if names & asked]
        rows.append(
            f"| `{name}` | {family.type} | {', '.join(sorted(labels))} |"
            f" {_cell(family.documentation)} | {', '.join([*shown, *watched])} |"
        )
    return "\n".join(
        [
            "# Metrics\n",
            WRITTEN,
            OF_METRICS,
            "| metric | type | labels | | shown, watched |",
            "|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def scraped() -> list[Metric]:
    """Scrape a listener before a small cluster, in which there is something of everything."""
    with tempfile.TemporaryDirectory() as directory:
        flags = {"http.port": "0", "journal.path": f"{directory}/journal"}
        config = load(None, {}, [Flag("--set", key, value) for key, value in flags.items()])
        loop = CoreLoop(config, build_policy=policies.build)
        loop.start()
        operators = Operators(loop, Loaded(config, {}))
        compilation = Compilation()  # interpreted: nothing has to be compiled for one scrape
        planner = Planner(loop, budget_s=1.0, interval_s=1.0)
        watch = FairnessWatch(loop, every_s=0)
        session = SessionInfo(1, "", "", "", 1, "", "", 0, 0, ModuleFigures())
        more: list[InParts] = [
            OperationCollector(loop, operators, Audit(), planner, Calls(Access(config.access))),
            ModuleCollector(lambda: session),
            FairnessCollector(watch, config.metrics.roles_max),
        ]
        server = start_http(config, loop, compilation, more)
        try:
            for event in cluster():
                loop.call(partial(loop.allocator.step, event)).result()
            loop.call(lambda: loop.allocator.allocate(1000)).result()
            watch.look()
            address = f"http://127.0.0.1:{server.port}/metrics"
            with urllib.request.urlopen(address, timeout=60) as answer:
                text = answer.read().decode()
        finally:
            server.close()
            loop.stop()
    return list(text_string_to_metric_families(text))


def cluster() -> Iterable[core.Event | core.AdoptPlan]:
    """An agent, a framework that holds something and is to leave it, a role with a quota."""
    yield core.Options()
    yield core.Define({0: core.Kind("cpus"), 1: core.Kind("mem")}, {1: "eng"})
    yield core.AddAgent(1, core.AgentInfo("agent"), {0: 8000, 1: 16_384_000})
    info = core.FrameworkInfo("id", name="name", labels={core.DEMAND_LABEL: "cpus:1"})
    yield core.AddFramework(1, info, (1,))
    yield core.SetQuota("eng", {"cpus": 1000}, {"cpus": 4000})
    one = np.array([1])
    yield core.Hold(core.Holdings(one, one, one, np.array([0]), np.array([[1000]])))
    yield core.SetUnavailability(1, 10**9, 0)
    nobody = np.zeros(2), np.full(2, -1), np.zeros((0, 1), np.uint64), np.zeros((0, 2))
    yield core.AdoptPlan(core.Plan(*nobody, leave=np.array([1 << 32 | 1]), seen_ms=1000))


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
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)

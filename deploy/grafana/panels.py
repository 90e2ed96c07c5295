"""Panels, rows and dashboards, which query Prometheus."""

from collections.abc import Iterable
from typing import NamedTuple

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus as prometheus_models

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAGS = ["mesos", "allocator"]
"""Dashboards with these tags link to each other."""

WIDTH = 24
HEIGHT = 8


class Query(NamedTuple):
    """An expression, and the name of its lines.

    Attributes
    ----------
    expression : str
        PromQL; ``$instance`` selects the sidecar.
    legend : str
        May contain labels in double braces.
    """

    expression: str
    legend: str = ""


class Panel(NamedTuple):
    """The content of a panel.

    Attributes
    ----------
    title, description : str
        The description says what the panel shows, and which values are normal.
    queries : tuple of Query
    unit : str
        A unit of Grafana, such as ``s``, ``bytes``, ``percentunit``.
    shape : str
        ``lines``, ``stacked``, ``number``, ``bars``, ``table`` or ``heatmap``.
    width : int
        Of 24 columns.
    bad_from : float or None
        Values from here on are red.
    most : float or None
        Upper end of the axis.
    """

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    shape: str = "lines"
    width: int = 12
    bad_from: float | None = None
    most: float | None = None


class Page(NamedTuple):
    """One dashboard."""

    uid: str
    title: str
    description: str
    rows: dict[str, tuple[Panel, ...]]
    by_role: bool = False


def _lines(panel: Panel) -> timeseries.Panel:
    builder = timeseries.Panel().fill_opacity(8).show_points(common_models.VisibilityMode.NEVER)
    builder.legend(
        common.VizLegendOptions()
        .show_legend(show_legend=True)
        .display_mode(common_models.LegendDisplayMode.LIST)
        .placement(common_models.LegendPlacement.BOTTOM)
    )
    builder.tooltip(
        common.VizTooltipOptions()
        .mode(common_models.TooltipDisplayMode.MULTI)
        .sort(common_models.SortOrder.DESCENDING)
    )
    if panel.shape == "stacked":
        builder.fill_opacity(40)
        builder.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    return builder


def _builder(panel: Panel):  # noqa: ANN202 - the builders share no type
    match panel.shape:
        case "number":
            return stat.Panel().color_mode(common_models.BigValueColorMode.VALUE)
        case "bars":
            return bargauge.Panel().orientation(common_models.VizOrientation.HORIZONTAL)
        case "table":
            return table.Panel()
        case "heatmap":
            return heatmap.Panel().calculate(calculate=False)
        case _:
            return _lines(panel)


def _thresholds(bad_from: float | None) -> dashboard.ThresholdsConfig:
    steps = [models.Threshold(value=None, color="green")]
    if bad_from is not None:
        steps.append(models.Threshold(value=bad_from, color="red"))
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _target(panel: Panel, query: Query) -> prometheus.Dataquery:
    target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend)
    if panel.shape == "heatmap":
        target.format(prometheus_models.PromQueryFormat.HEATMAP)
    if panel.shape in ("table", "bars"):
        target.instant()
    if panel.shape == "table":
        target.format(prometheus_models.PromQueryFormat.TABLE)
    return target


def _build(panel: Panel):  # noqa: ANN202
    builder = _builder(panel).title(panel.title).description(panel.description)
    builder.datasource(SOURCE).unit(panel.unit).span(panel.width).height(HEIGHT).min(0)
    builder.thresholds(_thresholds(panel.bad_from))
    if panel.most is not None:
        builder.max(panel.most)
    for query in panel.queries:
        builder.with_target(_target(panel, query))
    return builder


SESSION = "mesos_allocator_in_session"
LED = f"max_over_time({SESSION}[$__range])"
LEADING = f"{LED} == 1 or ({LED} unless on () max({LED}) == 1)"
"""The sidecars that had a session in the selected time range; if none had one, all of them."""


def _variables(page: Page) -> Iterable[object]:
    yield dashboard.DatasourceVariable("datasource").type("prometheus").label("Prometheus")
    yield (
        dashboard.QueryVariable("instance")
        .label("Sidecar")
        .datasource(SOURCE)
        .query(f"query_result({LEADING})")
        .regex('/instance="([^"]+)"/')
        .include_all(include_all=True)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    if page.by_role:
        yield (
            dashboard.QueryVariable("role")
            .label("Role")
            .datasource(SOURCE)
            .query('label_values(mesos_allocator_role_held{instance=~"$instance"}, role)')
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        )


def render(page: Page) -> str:
    """Convert a dashboard to the JSON that Grafana reads."""
    board = (
        dashboard.Dashboard(page.title)
        .uid(page.uid)
        .description(page.description)
        .tags(TAGS)
        .refresh("15s")
        .time("now-1h", "now")
        .timezone("browser")
        .editable()
        .link(
            dashboard.DashboardLink("Mesos allocator")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(TAGS)
            .include_vars(include_vars=True)
            .keep_time(keep_time=True)
        )
    )
    for variable in _variables(page):
        board.with_variable(variable)
    for title, panels in page.rows.items():
        assert sum(panel.width for panel in panels) % WIDTH == 0, f"{page.uid}: {title}"
        board.with_row(dashboard.Row(title))
        for panel in panels:
            board.with_panel(_build(panel))
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"

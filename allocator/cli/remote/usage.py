"""`usage`: what was used, offered and idle over time, and the averages that count for shares."""

import re
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from google.protobuf.message import Message

from allocator.cli.local.plugins import Plugins
from allocator.cli.remote import completing
from allocator.cli.remote.connection import Sidecar, group, printed_by, remote
from allocator.cli.tree import Exit, check_there, fail
from allocator.plain import printable
from allocator.usage.buckets import HOUR_MS

if TYPE_CHECKING:
    from allocator.v1 import admin_pb2


class By(StrEnum):
    """Kind of names by which usage is summed."""

    ROLE = "role"
    FRAMEWORK = "framework"
    PRINCIPAL = "principal"


class UsageForm(StrEnum):
    """Output format of usage."""

    CSV = "csv"
    JSON = "json"
    YAML = "yaml"


_SPAN = re.compile(r"([0-9]{1,5})([dhw])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
_FORM = "write it as 7d, 12h, 2w, 2026-11-01, or 2026-11-01T06:00 (UTC)"


def register(app: typer.Typer) -> None:
    what = (
        "What was used, offered and idle over time; `usage --since 7d` is short for"
        " `usage show --since 7d`."
    )
    usage = group(app, "usage", what, "show")
    remote(usage, "show", None)(usage_show)
    remote(usage, "reset", None)(usage_reset)
    lasting = printed_by("allocator.cli.render.setting_tables", "tell")
    remote(usage, "forget", lasting)(usage_forget)


def usage_show(
    sidecar: Sidecar,
    since: Annotated[
        str,
        typer.Option(
            help="Start: a time in UTC, or a duration before now, as 7d, 12h or 2w. Default:"
            " everything that is kept; hourly figures are kept for 8 days, daily ones"
            " for 400."
        ),
    ] = "",
    until: Annotated[str, typer.Option(help="End, in the same form; default: now.")] = "",
    by: Annotated[By, typer.Option(help="Names by which to add up.")] = By.ROLE,
    daily: Annotated[
        bool, typer.Option("--daily", help="Report each day (UTC) separately.")
    ] = False,
    output: Annotated[
        UsageForm | None,
        typer.Option("--output", "-o", help="csv, json or yaml; default: a table."),
    ] = None,
    journal: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE|DIR",
            help="Compute the report from journals, in order with the oldest first, or from"
            " their directory, without calling a sidecar; may be repeated. Durations"
            " count back from the end of the journals.",
        ),
    ] = None,
    plugin: Plugins = None,
) -> None:
    """Show resource-hours of roles, frameworks or principals, and of the cluster.

    For each of them the report has what was used and what was on offer; for the cluster also what
    was idle.

    Time in which no master had a session counts as unknown. The sum of used, offered, idle and
    unknown is the capacity times the time.
    """
    if sidecar.form is not None:
        output = UsageForm(sidecar.form)
    for path in journal or ():
        check_there(path)
    if journal:
        from allocator.cli.local.usage_of_journals import usage_of

        response = usage_of(journal, plugin, lambda now: _request(since, until, by, now, daily))
    else:
        now_ms = int(time.time() * 1000)
        request = _request(since, until, by, now_ms, daily)
        response = sidecar.stub.GetUsage(request, timeout=sidecar.connection.timeout)
    _print(response, by, output)
    if response.problem:
        typer.echo(f"warning: usage is not saved: {printable(response.problem)}", err=True)


def usage_reset(
    sidecar: Sidecar,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete all recorded usage; recording starts again now.

    Averages that count for shares stay (usage forget), and so does the use of budgets.
    """
    if not yes:
        typer.confirm("Delete all recorded usage?", abort=True, err=True)
    sidecar.ask("ResetUsage")


def usage_forget(
    sidecar: Sidecar,
    role: Annotated[
        str,
        typer.Option(
            help="Only in this role and the roles below it.", autocompletion=completing.roles
        ),
    ] = "",
    framework: Annotated[str, typer.Option(help="Only of the framework with this id.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> Message:
    """Reset the averages of past use that count for shares (fairness.half_life_s) to zero.

    Reports of usage and budgets are not affected.
    """
    if not yes:
        typer.confirm("Reset averages of past use?", abort=True, err=True)
    return sidecar.ask("ForgetUsage", role=role, framework_id=framework)


def _request(
    since: str, until: str, by: By, now_ms: int, daily: bool
) -> "admin_pb2.GetUsageRequest":
    from allocator.v1 import admin_pb2

    begin_ms, end_ms = moment_ms("--since", since, now_ms), moment_ms("--until", until, now_ms)
    if begin_ms and end_ms and begin_ms >= end_ms:
        fail(Exit.USAGE, f"--until {until}: is not after --since {since}; swap them")
    return admin_pb2.GetUsageRequest(by=by, since_ms=begin_ms, until_ms=end_ms, daily=daily)


def moment_ms(option: str, text: str, now_ms: int) -> int:
    """Read a time, or a duration before now, as milliseconds since 1970; 0 if the text is empty.

    >>> moment_ms("--since", "2h", 10_000_000), moment_ms("--since", "1970-01-02", 0)
    (2800000, 86400000)
    """
    if not text:
        return 0
    if found := _SPAN.fullmatch(text):
        return max(now_ms - int(found[1]) * _HOURS[found[2]] * HOUR_MS, 1)
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        fail(Exit.USAGE, f"{option} {text!r}: is no time; {_FORM}")
    if given.tzinfo is None:
        given = given.replace(tzinfo=UTC)
    if given.timestamp() <= 0:
        fail(Exit.USAGE, f"{option} {text!r}: is before 1970; {_FORM}")
    return int(given.timestamp() * 1000)


def _print(response: "admin_pb2.GetUsageResponse", by: By, output: UsageForm | None) -> None:
    from allocator.cli.remote.output import Form, plain, written
    from allocator.cli.render import usage_tables

    if output is None:
        usage_tables.show(response, by)
    elif output is UsageForm.CSV:
        typer.echo(usage_tables.csv_text(response, by), nl=False)
    else:
        typer.echo(written(Form(output), plain(response)))

"""Scheduled rules: the options of `set` that give one a schedule, and the group `schedule`."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from google.protobuf.message import Message

from allocator.cli.remote.connection import Arguments, Sidecar, group, named_by, printed_by, remote
from allocator.cli.remote.options import ShowOnly
from allocator.cli.tree import Exit, fail
from allocator.near import suggestion
from allocator.rule_kinds import SettingKind

_TEXTS = {
    "from": "The rule holds from this time on, such as 2026-12-24T18:00, or +2h from now.",
    "until": "The rule holds before this time; afterwards the other rule for the same does again.",
    "every": "The rule holds from these times on, in cron's syntax, such as '0 8 * * 1-5'.",
    "for": "How long it holds each time, such as 10h or 90m.",
    "tz": "Time zone of these times, such as Europe/Berlin; default: UTC.",
}

OPTIONS: Mapping[str, tuple[Any, Any]] = {
    f"when_{name}": (Annotated[str, typer.Option(f"--{name}", help=text, show_default=False)], "")
    for name, text in _TEXTS.items()
}
"""Options of commands that set a rule, by the names of parameters."""


def register(app: typer.Typer) -> None:
    commands = group(app, "schedule", "Scheduled rules, which `set` makes with --from or --every.")
    show = printed_by("allocator.cli.render.setting_tables", "schedules")
    remote(commands, "list", show, names=named_by("names", "schedules", "id"))(schedule_list)
    differences = printed_by("allocator.cli.render.setting_tables", "differences")
    remote(commands, "remove", differences)(schedule_remove)


def take_options(given: Arguments) -> dict[str, str]:
    """Remove these options from those of a command and return them; empty if none is given."""
    texts = {name: given.pop(f"when_{name}", "") for name in _TEXTS}
    return texts if any(texts.values()) else {}


def are_given(given: Arguments) -> bool:
    return any(given.get(f"when_{name}") for name in _TEXTS)


def set_scheduled(
    sidecar: Sidecar,
    kind: SettingKind,
    texts: Mapping[str, str],
    rules: Iterable[Mapping[str, Any]],
    *,
    dry_run: bool,
    force: bool,
) -> Message:
    """Set scheduled rules; `rules`: fields of their messages."""
    from allocator.server.system import timetable
    from allocator.wire.settings.schedule import write_schedule

    with _naming_options():
        schedule = timetable.read(texts, int(time.time() * 1000))
    assert schedule is not None
    when = write_schedule(schedule)
    changes = [{"schedule": when, "change": {kind.name: rule}} for rule in rules]
    response: Message = sidecar.ask("ApplySettings", changes=changes, dry_run=dry_run, force=force)
    return response


def moment_ms(option: str, text: str) -> int:
    """Read a time, such as +2h; 0 if the text is empty."""
    from allocator.server.system import timetable

    with _naming_options():
        return timetable.moment_ms(option, text, "UTC", int(time.time() * 1000))


@contextmanager
def _naming_options() -> Iterator[None]:
    """Report an error in a time as one of its option."""
    from allocator.server.system.timetable import ScheduleError

    try:
        yield
    except ScheduleError as error:
        raise typer.BadParameter(f"--{error.field}: {error}") from None


def schedule_list(sidecar: Sidecar) -> Message:
    """List all scheduled rules, and when they hold now or next."""
    response: Message = sidecar.ask("ListSchedules")
    return response


def schedule_remove(
    sidecar: Sidecar,
    ids: Annotated[list[str], typer.Argument(help="Ids of rules, see `schedule list`.")],
    dry_run: ShowOnly = False,
) -> Message:
    """Remove scheduled rules; if one holds, the other rule for the same holds again."""
    known = {each.id: each for each in sidecar.ask("ListSchedules").schedules}
    for each in ids:
        if each not in known:
            near = suggestion(each, known) or "; `schedule list` lists them"
            fail(Exit.REFUSED, f"id = {each!r}: there is no such scheduled rule{near}")
    changes = [known[each].rule for each in dict.fromkeys(ids)]
    for rule in changes:
        rule.change.remove = True
    response: Message = sidecar.ask("ApplySettings", changes=changes, dry_run=dry_run)
    return response

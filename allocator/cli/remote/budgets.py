"""`budget credit`: add resource-hours to a role's budget, in the current period."""

import datetime as dt
from typing import Annotated, Any

import typer

from allocator.cli.remote import completing
from allocator.cli.remote.admin import quantities
from allocator.cli.remote.connection import Sidecar, printed_by, remote
from allocator.cli.remote.options import DryRun
from allocator.cli.remote.output import by_kind
from allocator.rule_kinds import BUDGET

_DAY_MS = 24 * 3_600_000


def register(commands: typer.Typer) -> None:
    show = printed_by("allocator.cli.render.setting_tables", "rules", "budget")
    remote(commands, "credit", show)(budget_credit)


def budget_credit(
    sidecar: Sidecar,
    role: Annotated[
        str,
        typer.Argument(
            help="Path of a role that has a budget, such as eng/ads.",
            autocompletion=completing.roles,
        ),
    ],
    resources: Annotated[
        str, typer.Argument(help="Resource-hours to add, as in 'gpus:20h'; all credits add up.")
    ],
    dry_run: DryRun = False,
) -> dict[str, Any]:
    """Add resource-hours to the budget of a role, in the current period alone."""
    from allocator.core import format_hours, parse_hours

    listed = sidecar.ask("ListRules", kind=BUDGET.name)
    rule = next((each.budget for each in listed.rules if each.budget.role == role), None)
    use = next((each for each in listed.uses if each.role == role), None)
    if rule is None:
        raise typer.BadParameter(f"role = {role!r} has no budget; set one: budget set")
    if use is None:
        text = "no master has a session with the sidecar, so the period is not known; try later"
        raise typer.BadParameter(text)
    given = quantities(resources, hours=True)
    hours = dict(zip(given.name, given.amount, strict=True))
    if not hours:
        raise typer.BadParameter("names no resource; write resource-hours, as in 'gpus:20h'")
    begins = dt.date(1970, 1, 1) + dt.timedelta(use.begin_ms // _DAY_MS)
    if rule.credit and rule.credit_from == begins.isoformat():
        for name, amount in parse_hours(rule.credit).items():
            hours[name] = hours.get(name, 0) + amount
    changed: Any = type(rule)()
    changed.CopyFrom(rule)
    changed.credit, changed.credit_from = format_hours(hours), begins.isoformat()
    before, after = {BUDGET.name: rule}, {BUDGET.name: changed}
    answer = sidecar.ask("ChangeRule", change=after, instead_of=before, dry_run=dry_run)
    return by_kind(BUDGET, answer)

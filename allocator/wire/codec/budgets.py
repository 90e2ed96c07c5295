"""Writes the use of a budget as a message."""

from allocator.core import HOUR_MS, BudgetRow
from allocator.v1.explain_pb2 import BudgetUse
from allocator.v1.types_pb2 import Quantities
from allocator.wire.codec.proto_types import write_quantities


def write_use(row: BudgetRow, now_ms: int) -> BudgetUse:
    """`now_ms` is on the session's clock."""
    rule, spent = row.rule, row.spent
    granted, over = spent.granted(rule), bool(spent.used_up(rule))
    used = {name: spent.used.get(name, 0) for name in granted}
    runs_out_ms = now_ms + row.runs_out_ms
    return BudgetUse(
        role=rule.role,
        per=rule.per,
        begin_ms=spent.begin_ms,
        end_ms=spent.end_ms,
        used=_hours(used),
        budget=_hours(granted),
        left=_hours({name: max(amount - used[name], 0) for name, amount in granted.items()}),
        runs_out_ms=runs_out_ms if now_ms < runs_out_ms < spent.end_ms else 0,
        over=over,
        hard=rule.hard,
    )


def _hours(amounts: dict[str, int]) -> Quantities:
    return write_quantities({name: amount // HOUR_MS for name, amount in amounts.items()})

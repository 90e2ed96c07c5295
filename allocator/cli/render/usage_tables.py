"""Usage as tables, and as CSV."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from allocator.cli.render.terminal import print_table, say
from allocator.plain import printable

if TYPE_CHECKING:
    from allocator.v1 import admin_pb2 as pb

_SECONDS = ("used", "offered", "idle", "unknown", "capacity")

CLUSTER = "(cluster)"
OTHERS = "(others)"
NONE = "(none)"
"""Stands for an empty name."""

_FORMULA = ("=", "+", "-", "@")
"""Characters at which a spreadsheet recognises a formula."""


def hours(seconds: str) -> Decimal:
    """Convert exact units times seconds to units times hours, rounded to a millionth."""
    return (Decimal(seconds or 0) / 3600).quantize(Decimal("0.000001"))


def moment(time_ms: int) -> str:
    """Format a time.

    >>> moment(1_835_308_800_000)
    '2028-02-28T00:00:00Z'
    """
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def label(row: "pb.UsageOfName") -> str:
    """Label of a row: its name, and a framework's own name."""
    if row.others:
        return OTHERS
    name = row.name or NONE
    return f"{name} {row.title}" if row.title else name


def show(response: "pb.GetUsageResponse", by: str) -> None:
    if not response.spans:
        say("no usage is recorded yet")
    for span in response.spans:
        say(f"{moment(span.begin_ms)} to {moment(span.end_ms)}, hours")
        columns = [f"={by}", "resource", *(f">{name}" for name in _SECONDS)]
        print_table(columns, _rows(span), "nothing was held")


def _rows(span: "pb.UsageSpan") -> Iterator[list[str]]:
    for row in span.names:
        for each in row.resources:
            shown = (_short(each.used_seconds), _short(each.offered_seconds))
            yield [label(row), each.resource, *shown, "", "", ""]
    for whole in span.cluster:
        every = (_short(getattr(whole, f"{name}_seconds")) for name in _SECONDS)
        yield [CLUSTER, whole.resource, *every]


def _short(seconds: str) -> str:
    return f"{hours(seconds):.1f}"


def csv_text(response: "pb.GetUsageResponse", by: str) -> str:
    """Write a row for each name and resource, and one for each resource of the cluster.

    Hours are rounded to a millionth; seconds are exact.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = ["from", "to", by, "resource"]
    writer.writerow(
        [*head, *(f"{name}_hours" for name in _SECONDS), *(f"{name}_seconds" for name in _SECONDS)]
    )
    for span in response.spans:
        times = moment(span.begin_ms), moment(span.end_ms)
        for row in span.names:
            for each in row.resources:
                found = [each.used_seconds, each.offered_seconds, "", "", ""]
                writer.writerow([*times, _cell(label(row)), _cell(each.resource), *_figures(found)])
        for whole in span.cluster:
            found = [getattr(whole, f"{name}_seconds") for name in _SECONDS]
            writer.writerow([*times, CLUSTER, _cell(whole.resource), *_figures(found)])
    return out.getvalue()


def _figures(seconds: list[str]) -> list[str]:
    return [*(each and str(hours(each)) for each in seconds), *seconds]


def _cell(text: str) -> str:
    """Escape a name that a spreadsheet would compute, because tenants choose names."""
    text = printable(text)
    return f"'{text}" if text.startswith(_FORMULA) else text

"""Data of the usage page: a bar for each of the last days, and the usage of each name."""

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from allocator.server.views.rejected import RejectedError
from allocator.server.web.page.tables import LISTED_MAX
from allocator.usage.buckets import DAY_MS, Part
from allocator.v1 import admin_pb2 as pb

DAYS = 30

PARTS = tuple(part.name.lower() for part in Part)


class Amount(NamedTuple):
    """Units times hours, and the fraction of a whole, 0 to 1."""

    hours: float
    part: float


class Row(NamedTuple):
    """A day, or a name: how an amount of a resource was used."""

    name: str
    used: Amount
    offered: Amount
    idle: Amount
    unknown: Amount


class Usage(NamedTuple):
    """The page.

    `resource`: the resource shown; empty: nothing is accounted for.
    `days`: as fractions of the largest capacity of a day.
    `names`: as fractions of all capacity; `more` names are not shown.
    """

    resource: str
    resources: Sequence[str]
    days: Sequence[Row]
    names: Sequence[Row]
    more: int
    problem: str


def request(by: str, *, daily: bool) -> pb.GetUsageRequest:
    today_ms = int(1000 * time.time()) // DAY_MS * DAY_MS
    since_ms = max(today_ms - (DAYS - 1) * DAY_MS, 0)
    return pb.GetUsageRequest(by=by, since_ms=since_ms, daily=daily)


def draw(daily: pb.GetUsageResponse, whole: pb.GetUsageResponse, resource: str) -> Usage:
    """Make the page. Raises RejectedError if no such resource is accounted for."""
    resources = sorted({each.resource for span in whole.spans for each in span.cluster})
    if resource and resource not in resources:
        text = f"resource = {resource[:80]!r}: nothing of it is accounted for"
        raise RejectedError(f"{text}; choose from {', '.join(resources) or 'none'}")
    resource = resource or ("cpus" if "cpus" in resources else next(iter(resources), ""))
    days = [(_day(span.begin_ms), _of_cluster(span, resource)) for span in daily.spans]
    largest = max((sum(amounts) for _, amounts in days), default=0.0) or 1.0
    names: list[Row] = []
    more = 0
    for span in whole.spans:
        capacity = sum(_of_cluster(span, resource)) or 1.0
        found = [(_title(row), _of_name(row, resource)) for row in span.names]
        held = sorted((each for each in found if any(each[1])), key=lambda each: -sum(each[1]))
        more = max(len(held) - LISTED_MAX, 0)
        names = [_row(name, amounts, capacity) for name, amounts in held[:LISTED_MAX]]
    shown = [_row(day, amounts, largest) for day, amounts in days]
    return Usage(resource, resources, shown, names, more, whole.problem)


def _row(name: str, amounts: Sequence[float], whole: float) -> Row:
    return Row(name, *(Amount(hours, max(hours, 0.0) / whole) for hours in amounts))


def _hours(seconds: str) -> float:
    return float(Decimal(seconds or 0) / 3600)


def _of_cluster(span: pb.UsageSpan, resource: str) -> list[float]:
    for each in span.cluster:
        if each.resource == resource:
            return [_hours(getattr(each, f"{part}_seconds")) for part in PARTS]
    return [0.0] * len(PARTS)


def _of_name(row: pb.UsageOfName, resource: str) -> list[float]:
    for each in row.resources:
        if each.resource == resource:
            return [_hours(each.used_seconds), _hours(each.offered_seconds), 0.0, 0.0]
    return [0.0] * len(PARTS)


def _title(row: pb.UsageOfName) -> str:
    if row.others:
        return "all others"
    return f"{row.title} ({row.name})" if row.title else row.name or "(none)"


def _day(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time_ms // 1000))

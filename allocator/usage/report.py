"""Reports of an account: usage within a time span, by name, as exact decimals."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from allocator.usage.account import Moment
from allocator.usage.buckets import BY, DAY_MS, HOUR_MS, OTHERS, Bucket, Part
from allocator.v1 import admin_pb2 as pb

SECOND = 1_000_000
"""One unit of a resource times one second, in thousandths times milliseconds."""


class KeptBuckets(Protocol):
    """A store of closed buckets."""

    def read(self, span_ms: int, begin_ms: int, end_ms: int) -> Iterator[tuple[int, Bucket]]:
        """Yield the buckets that begin within a time span, each with its beginning, in order."""


class Span(NamedTuple):
    """A time span, and its usage."""

    begin_ms: int
    end_ms: int
    bucket: Bucket


def days(kept: KeptBuckets, now: Moment, since_ms: int, until_ms: int) -> Iterator[Span]:
    """Yield the usage of each day; of the first and last day only the hours within the time span.

    A day whose hours are no longer kept counts completely.
    """
    if now.now_ms < 0:
        return
    until_ms = min(until_ms or now.now_ms + 1, now.now_ms + 1)
    today_ms = now.now_ms - now.now_ms % DAY_MS
    whole = dict(kept.read(DAY_MS, since_ms - since_ms % DAY_MS, until_ms))
    hours: dict[int, list[tuple[int, Bucket]]] = {}
    for begin_ms, bucket in _hours(kept, now, since_ms, until_ms):
        hours.setdefault(begin_ms - begin_ms % DAY_MS, []).append((begin_ms, bucket))
    if today_ms < until_ms and since_ms <= today_ms and until_ms > now.now_ms:
        # Use the day's sum instead of its hours, which may be many.
        today = now.day.copied()
        today.add(now.hour)
        whole[today_ms] = today
    for day_ms in sorted(whole.keys() | hours.keys()):
        is_cut = since_ms > day_ms or until_ms < min(day_ms + DAY_MS, now.now_ms + 1)
        if day_ms in whole and not (is_cut and day_ms in hours):
            yield Span(day_ms, min(day_ms + DAY_MS, now.now_ms), whole[day_ms])
        else:
            found, bucket = hours[day_ms], Bucket()
            for _, hour in found:
                bucket.add(hour)
            yield Span(found[0][0], min(found[-1][0] + HOUR_MS, now.now_ms), bucket)


def _hours(
    kept: KeptBuckets, now: Moment, since_ms: int, until_ms: int
) -> Iterator[tuple[int, Bucket]]:
    yield from kept.read(HOUR_MS, since_ms - since_ms % HOUR_MS, until_ms)
    hour_ms = now.now_ms - now.now_ms % HOUR_MS
    if since_ms - since_ms % HOUR_MS <= hour_ms < until_ms:
        yield hour_ms, now.hour


def report(kept: KeptBuckets, now: Moment, request: pb.GetUsageRequest) -> pb.GetUsageResponse:
    """Answer a request. Raises ValueError if it names something unknown."""
    by = request.by or BY[0]
    if by not in BY:
        raise ValueError(f"by = {request.by[:40]!r}: choose from {', '.join(BY)}")
    for name in ("since_ms", "until_ms"):
        if getattr(request, name) < 0:
            raise ValueError(f"{name} = {getattr(request, name)}: must be at least 0")
    found = days(kept, now, request.since_ms, request.until_ms)
    spans = found if request.daily else _together(found)
    return pb.GetUsageResponse(spans=[_write(span, by) for span in spans])


def _together(spans: Iterator[Span]) -> Iterator[Span]:
    first = next(spans, None)
    if first is None:
        return
    bucket, end_ms = first.bucket.copied(), first.end_ms
    for each in spans:
        bucket.add(each.bucket)
        end_ms = each.end_ms
    yield Span(first.begin_ms, end_ms, bucket)


def _write(span: Span, by: str) -> pb.UsageSpan:
    bucket = span.bucket.copied()
    bucket.close()  # bounds the size of the answer
    message = pb.UsageSpan(begin_ms=span.begin_ms, end_ms=span.end_ms, accounted_ms=bucket.span_ms)
    for resource in bucket.resources():
        amounts = {part: bucket.parts[resource, part] for part in Part}
        message.cluster.add(
            resource=resource,
            capacity_seconds=seconds(sum(amounts.values())),
            used_seconds=seconds(amounts[Part.USED]),
            offered_seconds=seconds(amounts[Part.OFFERED]),
            idle_seconds=seconds(amounts[Part.IDLE]),
            unknown_seconds=seconds(amounts[Part.UNKNOWN]),
        )
    _write_names(bucket, by, message)
    return message


def _write_names(bucket: Bucket, by: str, message: pb.UsageSpan) -> None:
    held = bucket.held[by]
    shares = bucket.shares(by)
    order = sorted(shares, key=lambda name: (name == OTHERS, -shares[name], name))
    resources = bucket.resources()
    for name in order:
        others = name == OTHERS
        title = bucket.titles.get(name, "") if by == "framework" else ""
        row = message.names.add(name="" if others else name, title=title, others=others)
        for resource in resources:
            used, offered = held[name, resource, Part.USED], held[name, resource, Part.OFFERED]
            if used or offered:
                row.resources.add(
                    resource=resource, used_seconds=seconds(used), offered_seconds=seconds(offered)
                )


def seconds(amount: int) -> str:
    """Format an integral as units times seconds: an exact decimal number.

    >>> seconds(1_500_000), seconds(-1), seconds(2 * 3_600_000_000)
    ('1.5', '-0.000001', '7200')
    """
    whole, rest = divmod(abs(amount), SECOND)
    text = f"{whole}.{rest:06d}".rstrip("0").rstrip(".") if rest else str(whole)
    return f"-{text}" if amount < 0 else text

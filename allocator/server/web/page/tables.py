"""Selection and order of the page's rows: a bounded number of each."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from allocator import plain
from allocator.core import format_quantities
from allocator.rule_kinds import KINDS
from allocator.server.web.page.look import Look
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.v1.types_pb2 import Quantities

TEXT_MAX = 2000

_MINUTE_S = 120
_HOUR_S = 7200
_DAY_S = 172_800


def printable(value: object) -> object:
    """Replace control characters, including those for text direction, and shorten long texts.

    >>> printable("a" + chr(0x202E) + "b")
    'a\N{REPLACEMENT CHARACTER}b'
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = value if len(value) <= TEXT_MAX else f"{value[:TEXT_MAX]}\N{HORIZONTAL ELLIPSIS}"
    return plain.printable(text)


def url(text: str) -> Markup:
    """Quote a text as a part of an address.

    >>> url("a/b&c")
    Markup('a%2Fb%26c')
    """
    return Markup(quote(text, safe=""))  # noqa: S704 - nothing of HTML is left after quoting


def amounts(quantities: Quantities) -> str:
    """Format amounts by name.

    >>> amounts(Quantities(name=["cpus", "mem"], amount=[1500, 2048000]))
    'cpus:1.5;mem:2048'
    """
    return format_quantities(dict(zip(quantities.name, quantities.amount, strict=True)))


def percent(part: float) -> str:
    """Format a fraction in percent; empty for nan.

    >>> percent(0.6666), percent(math.nan)
    ('66.7 %', '')
    """
    return "" if math.isnan(part) else f"{100 * part:.1f} %"


def share(part: float) -> str:
    """Format a share of the cluster, 0 to 1, as the command line does; empty for nan.

    >>> share(0.6666), share(math.nan)
    ('0.6666', '')
    """
    return "" if math.isnan(part) else f"{part:.4f}"


def whole_percent(part: float) -> str:
    """Format a fraction in whole percent; only 1 is 100 %.

    >>> whole_percent(0.666), whole_percent(0.997), whole_percent(1.0)
    ('67 %', '99 %', '100 %')
    """
    return f"{100 if part >= 1 else min(round(100 * part), 99)} %"


def signed_share(part: float) -> str:
    """Format a difference of shares.

    >>> signed_share(-0.0213)
    '-0.0213'
    """
    return "" if math.isnan(part) else f"{part:+.4f}"


def count(number: float) -> str:
    """Format a number.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,}"


def milliseconds(value: float) -> str:
    """Format a time in ms, in a suitable unit.

    >>> milliseconds(0.25), milliseconds(12.34), milliseconds(2500), milliseconds(math.nan)
    ('0.25 ms', '12.3 ms', '2.5 s', '')
    """
    if math.isnan(value):
        return ""
    if value < 1:
        return f"{value:.2f} ms"
    return f"{value:.1f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def duration(seconds: float) -> str:
    """Format a duration for reading.

    >>> duration(4.2), duration(600), duration(7300), duration(864000)
    ('4 s', '10 min', '2.0 h', '10.0 days')
    """
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < _HOUR_S:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < _DAY_S else f"{seconds / 86400:.1f} days"


def hours(found: Quantities) -> str:
    """Format resource-hours, to a tenth of an hour below 100.

    >>> hours(Quantities(name=["cpus", "gpus"], amount=[1_234_567, 1_250]))
    'cpus 1,234 h, gpus 1.2 h'
    """
    pairs = zip(found.name, found.amount, strict=True)
    return ", ".join(f"{name} {_hours(amount)} h" for name, amount in pairs)


def _hours(thousandths: int) -> str:
    if thousandths < 100_000 and thousandths % 1000:
        return f"{thousandths // 100 / 10:.1f}"
    return f"{thousandths // 1000:,}"


def moment(seconds: float) -> str:
    """Format a date and time of day.

    >>> moment(0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def state(share: pb.Share) -> str:
    if not share.active:
        return "inactive"
    if share.paused:
        return "paused"
    return "suppressed" if share.suppressed else "active"


def policy(spec: settings_pb2.Policy) -> str:
    """Describe the selection and the parameters of a policy in one line."""
    parts = [spec.selection or "its own selection", "flat" if spec.flat else "hierarchical"]
    parts += [f"{key} = {value}" for key, value in sorted(spec.parameters.items())]
    parts += [f"{name} below {role}" for role, name in sorted(spec.subtrees.items())]
    return ", ".join(parts)


def origin(setting: settings_pb2.Setting) -> str:
    if not setting.set_at_ms:
        return setting.place or setting.source
    return f"operator {setting.place}, {moment(setting.set_at_ms / 1000)}"


def matched(setting: settings_pb2.Setting) -> str:
    if not setting.HasField("match"):
        return ""
    return KINDS[setting.key].match_in_words(setting.match)


def known(value: float) -> bool:
    return not math.isnan(value)


FILTERS: dict[str, Any] = {
    "url": url,
    "amounts": amounts,
    "hours": hours,
    "percent": percent,
    "whole": whole_percent,
    "share": share,
    "signed": signed_share,
    "count": count,
    "ms": milliseconds,
    "duration": duration,
    "moment": moment,
    "state": state,
    "policy": policy,
    "origin": origin,
    "matched": matched,
    "known": known,
}


ROLES_MAX = 60
FRAMEWORKS_MAX = 25
OFFERS_MAX = 15
COMPARED_MAX = 12
LISTED_MAX = 500


class Shown(NamedTuple):
    """Some of many rows.

    `largest`: the largest share of the rows, for bars; not 0.
    `hidden`: describes the clients that are not shown; several may be of one framework.
    """

    rows: Sequence[pb.Share]
    more: int
    largest: float
    hidden: str = ""


def tree(roles: Iterable[pb.Share], most: int = ROLES_MAX) -> Shown:
    """Order roles as a tree, down to a depth for which there is room.

    If even the top level has too many roles, those with the largest shares are shown.
    """
    found = sorted(roles, key=lambda each: each.role.split("/"))
    of_depth = Counter(depth(each) for each in found)
    room, deepest = most, -1
    for level in sorted(of_depth):
        room -= of_depth[level]
        if room < 0:
            break
        deepest = level
    rows = [each for each in found if depth(each) <= deepest]
    if not rows:
        top = sorted((each for each in found if depth(each) == 0), key=lambda each: -each.share)
        rows = sorted(top[:most], key=lambda each: each.role)
    return _shown(rows, len(found))


def depth(role: pb.Share) -> int:
    return role.role.count("/")


def frameworks(clients: Iterable[pb.Share], most: int, sort: str = "waiting") -> Shown:
    found = list(clients)
    if sort == "name":
        found.sort(key=lambda each: (each.framework_name, each.framework_id, each.role))
    elif sort == "share":
        found.sort(key=lambda each: -each.weighted_share)
    else:
        # Of those that have waited equally long, the smallest share first.
        found.sort(
            key=lambda each: (
                -each.waited_cycles,
                each.weighted_share if each.waited_cycles else -each.weighted_share,
            )
        )
    return _shown_clients(found, most)


def on_offer(clients: Iterable[pb.Share]) -> Shown:
    """Frameworks with outstanding offers, the oldest offer first."""
    found = [each for each in clients if each.offered_share > 0]
    found.sort(key=lambda each: -each.offer_age_s)
    return _shown_clients(found, OFFERS_MAX)


def _shown_clients(found: Sequence[pb.Share], most: int) -> Shown:
    hidden = found[most:]
    text = plain.how_many(len({each.framework_id for each in hidden}), len(hidden))
    return _shown(found[:most], len(found))._replace(hidden=text)


def _shown(rows: Sequence[pb.Share], of: int) -> Shown:
    largest = max((each.share for each in rows), default=0.0)
    return Shown(rows, of - len(rows), largest or 1.0)


class Bar(NamedTuple):
    """One bar of a histogram; `part`: fraction of the tallest, 0 to 1."""

    text: str
    number: int
    part: float


def bars(counted: Iterable[tuple[str, int]]) -> list[Bar]:
    found = list(counted)
    tallest = max((number for _, number in found), default=0) or 1
    return [Bar(text, number, number / tallest) for text, number in found]


def cycle_bars(look: Look) -> list[Bar]:
    """Bars of cycles by duration, from the shortest to the longest that occurred."""
    names = [f"up to {_bound(bound_s)}" for bound_s in look.cycle_bounds_s]
    found = bars(zip([*names, "longer"], look.cycle_counts, strict=True))
    some = [place for place, each in enumerate(found) if each.number]
    return found[some[0] : some[-1] + 1] if some else []


def _bound(bound_s: float) -> str:
    return f"{1000 * bound_s:g} ms" if bound_s < 1 else f"{bound_s:g} s"


def apart(found: pb.GetShadowResponse) -> Sequence[pb.ShadowShare]:
    """Order roles by the difference between both policies' offers, the largest first."""

    def place(row: pb.ShadowShare) -> tuple[float, str]:
        return -abs(row.offered - row.offered_by_shadow), row.role

    return sorted(found.roles, key=place)[:COMPARED_MAX]

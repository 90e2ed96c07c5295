"""Amounts of Mesos's resources in JSON, in thousandths and by kind."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

Amounts = Counter[str]
"""Thousandths by kind; a kind is a text such as ``disk(eng, eng/ads)[volume]``."""

Numbers = dict[str, list[tuple[int, int]]]
"""Ranges by kind."""


def milli(value: float) -> int:
    """Thousandths, as Mesos rounds them."""
    return round(value * 1000)


def kind_of(resource: Any) -> str:
    """The key under which equal kinds add up."""
    text: str = resource["name"]
    reservations = resource.get("reservations", [])
    if reservations:
        text += "(" + ", ".join(each.get("role", "*") for each in reservations) + ")"
    disk = resource.get("disk", {})
    if "persistence" in disk:
        text += f"[{disk['persistence']['id']}]"
    for flag in ("revocable", "shared"):
        if flag in resource:
            text += f" {flag}"
    return text


def ranges_of(resource: Any) -> list[tuple[int, int]]:
    """First and last number of each range; empty if the resource has none."""
    ranges = resource.get("ranges", {}).get("range", [])
    return [(each["begin"], each["end"]) for each in ranges]


def amounts_of(resources: Iterable[Any]) -> Amounts:
    """Add amounts; ranges count their numbers."""
    amounts: Amounts = Counter()
    for resource in resources:
        if resource["type"] == "SCALAR":
            amount = milli(resource["scalar"]["value"])
        else:
            amount = 1000 * sum(last - first + 1 for first, last in ranges_of(resource))
        amounts[kind_of(resource)] += amount
    return without_zeros(amounts)


def without_zeros(amounts: Amounts) -> Amounts:
    return Counter({kind: amount for kind, amount in amounts.items() if amount})


def scalar(name: str, value: float, role: str | None = None, **more: object) -> dict[str, Any]:
    """A resource; allocated to a role if one is given."""
    resource: dict[str, Any] = {"name": name, "type": "SCALAR", "scalar": {"value": value}, **more}
    if role is not None:
        resource["allocation_info"] = {"role": role}
    return resource


def reserved(resource: Any, role: str) -> dict[str, Any]:
    """The resource with one more reservation on top."""
    stack = [*resource.get("reservations", []), {"type": "DYNAMIC", "role": role}]
    return {**resource, "reservations": stack}


def plain(resource: Any) -> bool:
    """True for an unreserved scalar that can be split."""
    special = ("reservations", "disk", "revocable", "shared", "provider_id")
    return resource["type"] == "SCALAR" and not any(name in resource for name in special)

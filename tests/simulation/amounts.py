"""Resources in the syntax of the brain's scripts: ``cpus:1.5;mem(eng):64;ports:[1-3,7-7]``."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

Amounts: TypeAlias = dict[str, "int | frozenset[int]"]
"""By resource: thousandths of a scalar, or the set of numbers of a range."""


def parse(text: str) -> Amounts:
    """Parse amounts."""
    found: Amounts = {}
    for item in filter(None, text.split(";")):
        name, _, value = item.rpartition(":")
        if value.startswith("["):
            spans = (each.split("-") for each in value[1:-1].split(","))
            found[name] = frozenset(n for a, b in spans for n in range(int(a), int(b) + 1))
        else:
            whole, _, part = value.partition(".")
            found[name] = int(whole) * 1000 + int((part + "000")[:3])
    return {name: amount for name, amount in found.items() if amount}


def write(amounts: Mapping[str, int | frozenset[int]]) -> str:
    """Format amounts."""
    return ";".join(f"{name}:{_value(amount)}" for name, amount in sorted(amounts.items()))


def _value(amount: int | frozenset[int]) -> str:
    if isinstance(amount, int):
        return f"{amount // 1000}.{amount % 1000:03}" if amount % 1000 else str(amount // 1000)
    return "[" + ",".join(f"{number}-{number}" for number in sorted(amount)) + "]"


def add(one: Amounts, other: Amounts) -> Amounts:
    """Add amounts; sets of numbers must be disjoint.

    Raises AssertionError if two ranges share a number.
    """
    result = dict(one)
    for name, amount in other.items():
        before = result.get(name)
        if before is None:
            result[name] = amount
        elif isinstance(before, int):
            assert isinstance(amount, int)
            result[name] = before + amount
        else:
            assert not isinstance(amount, int)
            assert not before & amount, f"{name}: {sorted(before & amount)} twice"
            result[name] = before | amount
    return result


def subtract(one: Amounts, other: Amounts) -> Amounts:
    """Subtract amounts, which must be contained."""
    result = dict(one)
    for name, amount in other.items():
        before = result[name]
        if isinstance(before, int):
            assert isinstance(amount, int)
            assert before >= amount, f"{name}: {before} < {amount}"
            left: int | frozenset[int] = before - amount
        else:
            assert not isinstance(amount, int)
            assert before >= amount, name
            left = before - amount
        if left:
            result[name] = left
        else:
            del result[name]
    return result


def total(many: Iterable[Amounts]) -> Amounts:
    """Add any number of amounts."""
    result: Amounts = {}
    for each in many:
        result = add(result, each)
    return result


def contains(one: Amounts, other: Amounts) -> bool:
    """Whether the first amounts contain the second."""
    try:
        subtract(one, other)
    except (AssertionError, KeyError):
        return False
    return True

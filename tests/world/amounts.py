"""Resources as the scenarios write them, such as ``cpus:2;mem(eng):1024``."""

import re
from collections import Counter
from dataclasses import replace

from allocator.core import Kind, format_amount, parse_amount

Amounts = Counter[Kind]
"""Thousandths by kind; one that is not named is zero."""

Text = str | Amounts

_PART = re.compile(r"(?P<name>\w+)(?:\((?P<role>[^)]*)\))?:(?P<amount>[\d.]+)")
_COUNTED = frozenset({"ports"})


def resources(text: Text) -> Amounts:
    """Read resources; a role in parentheses is a static reservation, ports are counted.

    Examples
    --------
    >>> describe(resources("cpus:1.5;mem(eng):32"))
    'cpus:1.5;mem(eng):32'
    """
    if not isinstance(text, str):
        return text
    amounts: Amounts = Counter()
    for part in filter(None, text.split(";")):
        match = _PART.fullmatch(part)
        assert match, part
        role = match["role"] or ""
        kind = Kind(
            match["name"],
            scalar=match["name"] not in _COUNTED,
            reserved_role=role,
            depth=1 if role else 0,
        )
        amounts[kind] += parse_amount(match["amount"])
    return +amounts


def reserved(amounts: Text, *roles: str) -> Amounts:
    """Push reservations, the outermost last."""
    pushed = Counter(resources(amounts))
    for role in roles:
        pushed = Counter(
            {
                replace(kind, reserved_role=role, depth=kind.depth + 1): n
                for kind, n in pushed.items()
            }
        )
    return pushed


def unreserved(amounts: Amounts) -> Amounts:
    """Leave what is not reserved."""
    return Counter({kind: amount for kind, amount in amounts.items() if not kind.depth})


def reserved_to(amounts: Amounts, role: str) -> Amounts:
    """Leave what is reserved to the role."""
    return Counter({kind: n for kind, n in amounts.items() if kind.reserved_role == role})


def revocable(amounts: Text) -> Amounts:
    """Make resources revocable: oversubscribed ones."""
    return Counter({replace(kind, revocable=True): n for kind, n in resources(amounts).items()})


def volume(size: str, role: str = "", *, shared: bool = False) -> Amounts:
    """Make a persistent volume, on a static reservation where a role is named."""
    ((kind, amount),) = resources(f"disk({role}):{size}" if role else f"disk:{size}").items()
    return Counter({replace(kind, form="volume", indivisible=True, shared=shared): amount})


def mount_disk(size: str) -> Amounts:
    """Make a disk that is a mount: nobody can have a part of it."""
    return Counter({Kind("disk", form="mount", indivisible=True): parse_amount(size)})


def describe(amounts: Amounts) -> str:
    """Write resources so that a failing test can be read."""
    return ";".join(f"{_name(kind)}:{format_amount(n)}" for kind, n in sorted_by_text(amounts))


def sorted_by_text(amounts: Amounts) -> list[tuple[Kind, int]]:
    """Order resources for the eye."""
    return sorted(((kind, n) for kind, n in amounts.items() if n), key=lambda one: str(one[0]))


def _name(kind: Kind) -> str:
    role = f"({kind.reserved_role})" if kind.reserved_role else ""
    marks = [kind.form, *(["revocable"] if kind.revocable else [])]
    marks += ["shared"] if kind.shared else []
    marks += [f"{kind.depth} reservations"] if kind.depth > 1 else []
    return kind.name + role + "".join(f"[{mark}]" for mark in marks if mark)

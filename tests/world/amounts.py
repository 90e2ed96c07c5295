"""Resources in the syntax of the scenarios, such as ``cpus:2;mem(eng):1024;disk(eng)[volume]:8``.

Parentheses contain the role of a reservation; brackets the form of disk, ``revocable``, ``shared``,
and the depth of stacked reservations (``2-deep``). Volumes, mounts and blocks are indivisible;
ports are counted; ``nothing`` is empty.
"""

import re
from collections import Counter
from dataclasses import replace

from allocator.core import Kind, format_amount, parse_amount
from allocator.core.resources import FORMS

Amounts = Counter[Kind]
"""Thousandths by kind; absent kinds are zero."""

Text = str | Amounts

_PART = re.compile(
    r"(?P<name>\w+)(?:\((?P<role>[^)]*)\))?(?P<marks>(?:\[[\w-]+\])*):(?P<amount>[\d.]+)"
)
_WHOLE = frozenset({"volume", "mount", "block"})
_COUNTED = frozenset({"ports"})


def resources(text: Text) -> Amounts:
    """Read resources.

    Examples
    --------
    >>> describe(resources("cpus:1.5;mem(eng):32;disk(eng/ads)[volume][2-deep]:8"))
    'cpus:1.5;disk(eng/ads)[volume][2-deep]:8;mem(eng):32'
    """
    if not isinstance(text, str):
        return text
    amounts: Amounts = Counter()
    for part in filter(None, text.replace("nothing", "").split(";")):
        match = _PART.fullmatch(part)
        assert match, part
        amounts[_kind(match["name"], match["role"] or "", match["marks"])] += parse_amount(
            match["amount"]
        )
    return +amounts


def _kind(name: str, role: str, marks: str) -> Kind:
    given = set(re.findall(r"[\w-]+", marks))
    (form,) = (given & set(FORMS)) or {""}
    (deep,) = {mark for mark in given if mark.endswith("-deep")} or {""}
    known = {form, deep, "revocable", "shared"}
    assert given <= known, given - known
    return Kind(
        name,
        scalar=name not in _COUNTED,
        reserved_role=role,
        depth=int(deep.removesuffix("-deep")) if deep else int(bool(role)),
        revocable="revocable" in given,
        shared="shared" in given,
        form=form,
        indivisible=form in _WHOLE,
    )


def reserved(amounts: Text, *roles: str) -> Amounts:
    """Push reservations onto the stack, the outermost last."""
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
    """Keep unreserved resources."""
    return Counter({kind: amount for kind, amount in amounts.items() if not kind.depth})


def reserved_to(amounts: Amounts, role: str) -> Amounts:
    """Keep resources reserved to the role."""
    return Counter({kind: n for kind, n in amounts.items() if kind.reserved_role == role})


def revocable(amounts: Text) -> Amounts:
    """Make resources revocable, that is oversubscribed."""
    return Counter({replace(kind, revocable=True): n for kind, n in resources(amounts).items()})


def volume(size: str, role: str = "", *, shared: bool = False) -> Amounts:
    """Make a persistent volume, on a static reservation if a role is named."""
    ((kind, amount),) = resources(f"disk({role}):{size}" if role else f"disk:{size}").items()
    return Counter({replace(kind, form="volume", indivisible=True, shared=shared): amount})


def mount_disk(size: str) -> Amounts:
    """Make a mount disk, which is indivisible."""
    return Counter({Kind("disk", form="mount", indivisible=True): parse_amount(size)})


def describe(amounts: Amounts) -> str:
    """Format resources for messages of failed tests."""
    return ";".join(f"{_name(kind)}:{format_amount(n)}" for kind, n in sorted_by_text(amounts))


def sorted_by_text(amounts: Amounts) -> list[tuple[Kind, int]]:
    """Sort key for readable output."""
    return sorted(((kind, n) for kind, n in amounts.items() if n), key=lambda one: str(one[0]))


def _name(kind: Kind) -> str:
    role = f"({kind.reserved_role})" if kind.reserved_role else ""
    marks = [kind.form, *(["revocable"] if kind.revocable else [])]
    marks += ["shared"] if kind.shared else []
    marks += [f"{kind.depth}-deep"] if kind.depth > 1 else []
    return kind.name + role + "".join(f"[{mark}]" for mark in marks if mark)

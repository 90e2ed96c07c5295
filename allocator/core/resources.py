"""Kinds and amounts of resources.

A *kind* is the set of a resource's properties that decisions depend on: only amounts of one kind
can be added. A *column* is a resource by name. The books are by kind, shares and policies by
column.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from allocator.core.bounds import AMOUNT_LENGTH_MAX, QUOTED_MAX, harmless, quoted

MILLI = 1000
"""Amounts are integers in thousandths, which is the precision of Mesos's scalars."""

GPUS = "gpus"
"""The name of GPUs, which Mesos gives only in whole units, and only to capable frameworks."""

AMOUNT_MAX = 2**53
"""Maximum amount, so that amounts are exact in a float64."""

UNRESERVED = "(*)"
"""The suffix with which Mesos prints the name of an unreserved resource."""

_AMOUNT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
"""A number in usual notation. `Decimal` accepts more, and raises other errors for some of it."""

_SUFFIX = re.compile(r"\s*([A-Za-z]+)$")

MIB = 2**20

IN_MIB = frozenset({"mem", "disk"})
"""The resources that Mesos counts in MiB. Only their amounts may have a suffix."""

_BYTES = {
    **{prefix: 1000 ** (1 + power) for power, prefix in enumerate("KMGTP")},
    **{f"{prefix}i": 1024 ** (1 + power) for power, prefix in enumerate("KMGTP")},
    "k": 1000,
}
"""Bytes by suffix (a B may follow): decimal as in SI, binary as in IEC 80000-13."""

FORMS = ("", "path", "mount", "block", "raw", "volume")
"""The forms of disk of a kind; the first is for no disk, or for plain disk space."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties of a resource that decisions depend on.

    `scalar`: False: ranges and sets, stored as the number of their items.
    `reserved_role`: role of the effective reservation; empty: unreserved.
    `depth`: number of stacked reservations; 0: unreserved.
    `form`: one of `FORMS`.
    `indivisible`: all that is free of the kind on an agent is offered, or none of it.
    `rest`: all resources of a name beyond the maximum number of kinds, together. The core does not
        know which client may have which part, so it offers all; the outcome says what was given.
    """

    name: str
    scalar: bool = True
    reserved_role: str = ""
    depth: int = 0
    revocable: bool = False
    shared: bool = False
    form: str = ""
    indivisible: bool = False
    rest: bool = False

    @property
    def plain(self) -> bool:
        """True if any framework may get any part of it."""
        special = self.depth or self.revocable or self.shared
        return not (special or self.form or self.indivisible or self.rest)

    @property
    def bounded(self) -> bool:
        """True if it counts against quota while a client holds it."""
        return self.scalar and not (self.depth or self.revocable or self.shared or self.rest)

    @property
    def whole(self) -> bool:
        """True if it is granted as a whole or not at all."""
        return self.indivisible or self.rest


@lru_cache(maxsize=1024)
def parse_amount(text: str, name: str = "") -> int:
    """Convert a decimal number to thousandths of the resource `name`.

    An amount of a resource in `IN_MIB` may have a suffix; it is rounded to thousandths of a MiB.

    Raises ValueError if the text is not a finite number, is negative, or exceeds `AMOUNT_MAX`.

    Examples
    --------
    >>> parse_amount("1.5"), parse_amount("4Gi", "mem"), parse_amount("4GB", "mem")
    (1500, 4096000, 3814697)
    """
    number, suffix = text.strip(), ""
    if len(number) <= AMOUNT_LENGTH_MAX and (found := _SUFFIX.search(number)):
        number, suffix = number[: found.start()], found[1]
    if len(number) > AMOUNT_LENGTH_MAX or not _AMOUNT.fullmatch(number):
        form = "a number of MiB; write it as in 'mem:4096' or 'mem:4Gi'"
        if name not in IN_MIB:
            form = "a number; write it as in 'cpus:1.5'"
        raise ValueError(f"{quoted(text)} is not {form}")
    amount = Decimal(number) * (_bytes_of(text, suffix, name) if suffix else 1)
    if suffix:
        amount /= MIB
    if not 0 <= amount <= AMOUNT_MAX // MILLI:
        unit = " MiB" if name in IN_MIB else ""
        message = (
            f"{quoted(text)} is out of range; it must be from 0 to {AMOUNT_MAX // MILLI}{unit}"
        )
        raise ValueError(message)
    return int((amount * MILLI).to_integral_value())


def _bytes_of(text: str, suffix: str, name: str) -> int:
    """Return the bytes of a suffix. Raises ValueError if the resource must not have one."""
    if name not in IN_MIB:
        form = "a number: only mem and disk take a suffix; write it as in 'cpus:1.5'"
        raise ValueError(f"{quoted(text)} is not {form}")
    known = _BYTES.get(suffix.removesuffix("B"))
    if known is None:
        form = "K, M, G, T or P (powers of 1000 bytes), or Ki, Mi, Gi, Ti or Pi (of 1024)"
        message = f"{quoted(text)} is not a number of MiB; a suffix is one of {form}"
        raise ValueError(message)
    return known


def format_amount(amount: int) -> str:
    """Format thousandths as a decimal number without trailing zeros.

    Examples
    --------
    >>> format_amount(1500), format_amount(2000), format_amount(-1)
    ('1.5', '2', '-0.001')
    """
    sign = "-" if amount < 0 else ""
    whole, rest = divmod(abs(amount), MILLI)
    return f"{sign}{whole}" + (f".{rest:03d}".rstrip("0") if rest else "")


def parse_quantities(text: str) -> dict[str, int]:
    """Parse amounts by name, in Mesos's form.

    A name may end in ``(*)``, as Mesos prints unreserved resources. Amounts of mem and disk are in
    MiB, unless they have a suffix.

    Raises ValueError naming the invalid part.

    Examples
    --------
    >>> parse_quantities("cpus:2;mem:3.5Gi"), parse_quantities("cpus(*):0.5")
    ({'cpus': 2000, 'mem': 3584000}, {'cpus': 500})
    """
    quantities: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, colon, amount = part.partition(":")
        name = name.strip().removesuffix(UNRESERVED).rstrip()
        if not colon or not name:
            message = f"{quoted(part)} is not of the form name:amount, as in 'cpus:2;mem:1024'"
            raise ValueError(message)
        if name in quantities:
            message = f"{quoted(name)} is given twice; give each resource once"
            raise ValueError(message)
        try:
            quantities[name] = parse_amount(amount, name)
        except ValueError as error:
            raise ValueError(f"{harmless(name, QUOTED_MAX)}: {error}") from None
    return quantities


def format_quantities(quantities: Mapping[str, int]) -> str:
    """Format amounts by name, in Mesos's form.

    Examples
    --------
    >>> format_quantities({"cpus": 2000, "mem": 3584000})
    'cpus:2;mem:3584'
    """
    return ";".join(f"{name}:{format_amount(amount)}" for name, amount in quantities.items())


def parse_hours(text: str) -> dict[str, int]:
    """Read resource-hours by name, in thousandths: as `parse_quantities`, with an h each.

    Raises ValueError naming the invalid part.

    Examples
    --------
    >>> parse_hours("gpus:500h;mem:64Gih")
    {'gpus': 500000, 'mem': 65536000}
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    for part in parts:
        if ":" in part and not part.endswith("h"):
            message = f"{quoted(part)} is not a number of hours; add an h, as in 'gpus:500h'"
            raise ValueError(message)
    hours = parse_quantities(";".join(part.removesuffix("h") for part in parts))
    for name, amount in hours.items():
        if not amount:
            message = f"{harmless(name, QUOTED_MAX)}: 0h is no budget; give more, or limit the role"
            raise ValueError(f"{message} (mesos-allocator limit set)")
    return hours


def format_hours(hours: Mapping[str, int]) -> str:
    """Write resource-hours by name, as `parse_hours` reads them.

    Examples
    --------
    >>> format_hours({"gpus": 500000, "cpus": 1500})
    'gpus:500h;cpus:1.5h'
    """
    return ";".join(f"{name}:{format_amount(amount)}h" for name, amount in hours.items())

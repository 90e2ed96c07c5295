"""Resources of the model: objects with metadata, and their amounts.

A *bag* maps each resource to an amount in thousandths, without zeros.
"""

from typing import NamedTuple, TypeAlias


class Resource(NamedTuple):
    """A resource; amounts of equal resources add up.

    reservations: the stack of reserved roles, each a descendant of the previous one; frameworks of
        the last one may use it. Empty if unreserved.
    scalar: false: a range such as ports; its amount is a count.
    disk: the type of disk; empty for other resources and for plain space.
    whole: whether it is indivisible.
    """

    name: str
    reservations: tuple[str, ...] = ()
    scalar: bool = True
    revocable: bool = False
    shared: bool = False
    disk: str = ""
    whole: bool = False

    @property
    def reserved_to(self) -> str:
        """The role that may use it; empty for any."""
        return self.reservations[-1] if self.reservations else ""

    @property
    def counts_against_quota(self) -> bool:
        """Whether an offer of it is charged to quotas; reserved resources already are."""
        return self.scalar and not self.reservations and not self.revocable


Bag: TypeAlias = dict[Resource, int]
Quantities: TypeAlias = dict[str, int]


def plus(left: Bag, right: Bag) -> Bag:
    result = dict(left)
    for resource, amount in right.items():
        result[resource] = result.get(resource, 0) + amount
    return {resource: amount for resource, amount in result.items() if amount}


def minus(left: Bag, right: Bag) -> Bag:
    """Subtract, with zero as the lower bound."""
    rest = {resource: amount - right.get(resource, 0) for resource, amount in left.items()}
    return {resource: amount for resource, amount in rest.items() if amount > 0}


def covers(larger: Bag, smaller: Bag) -> bool:
    return all(larger.get(resource, 0) >= amount for resource, amount in smaller.items())


def quantities(bag: Bag) -> Quantities:
    """Amounts by name, regardless of the metadata."""
    result: Quantities = {}
    for resource, amount in bag.items():
        result[resource.name] = result.get(resource.name, 0) + amount
    return result


def scalars(bag: Bag) -> Quantities:
    return quantities({resource: amount for resource, amount in bag.items() if resource.scalar})


def shrink(bag: Bag, target: Quantities) -> Bag:
    """Reduce a bag to target amounts by name; names without a target are dropped.

    If several objects have one name, the result depends on their order, which the built-in
    allocator shuffles; the model, like our allocator, takes divisible ones first.
    """
    left, result = dict(target), {}
    for resource, amount in sorted(bag.items(), key=lambda each: each[0].whole):
        room = left.get(resource.name, 0)
        taken = amount if amount <= room else (0 if resource.whole else room)
        if taken > 0:
            result[resource] = taken
            left[resource.name] = room - taken
    return result


def is_below(role: str, ancestor: str) -> bool:
    """Whether a role is a strict descendant of another one."""
    return role.startswith(ancestor + "/")


def path_of(role: str) -> list[str]:
    """The role and its ancestors, innermost first."""
    parts = role.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]

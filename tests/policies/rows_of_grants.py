"""Grants in the form of the naive implementation."""

from allocator.core import Grants
from tests import oracles


def rows(grants: Grants) -> list[oracles.Grant]:
    """One tuple per grant, with its special parts sorted."""
    parts: list[list[tuple[int, int]]] = [[] for _ in range(len(grants))]
    for grant, kind, amount in zip(
        grants.special_grant, grants.special, grants.special_amount, strict=True
    ):
        parts[grant].append((int(kind), int(amount)))
    special = [tuple(sorted(part)) for part in parts]
    columns = zip(
        grants.client.tolist(),
        grants.agent.tolist(),
        grants.tasks.tolist(),
        map(tuple, grants.amount.tolist()),
        special,
        strict=True,
    )
    return [oracles.Grant(*row) for row in columns]

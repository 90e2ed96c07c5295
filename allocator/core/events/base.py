"""Definitions for all events: amounts by kind, input set aside, the error for invalid events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from allocator.core.bounds import ROW_FIELD_MAX, ROW_TEXT_MAX, ROWS_MAX, harmless

Amounts = Mapping[int, int]
"""Amounts by kind."""


class EventError(ValueError):
    """An event cannot be applied; the state is unchanged.

    `kind`: ``handle``, ``value``, ``books`` or ``limit``.
    `field`: the invalid part of the event, such as ``amount[3]``.
    `message`: the value, and what would be valid.
    """

    def __init__(self, kind: str, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.kind = kind
        self.field = field
        self.message = message


UNREADABLE, TOO_LONG, TOO_MANY, TOO_DEEP, UNKNOWN, FAILED = REASONS = (
    "unreadable",
    "too_long",
    "too_many",
    "too_deep",
    "unknown",
    "failed",
)
"""Why input is set aside: it is malformed, is too large, or names something unknown; or
processing it failed, which is a defect of this package."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """Ignored input of a framework or an agent.

    `field`: the place of the input, such as ``labels``.
    `reason`: one of `REASONS`.
    `text`: the fault, and what is used instead.
    """

    field: str
    reason: str
    text: str


Aside = tuple[SetAside, ...]


def bounded(rows: Iterable[SetAside]) -> Aside:
    """Return the first `ROWS_MAX` distinct reports, shortened and safe to print."""
    kept: dict[SetAside, None] = {}
    for row in rows:
        if len(kept) == ROWS_MAX:
            break
        field, text = harmless(row.field, ROW_FIELD_MAX), harmless(row.text, ROW_TEXT_MAX)
        kept[SetAside(field, row.reason, text)] = None
    return tuple(kept)

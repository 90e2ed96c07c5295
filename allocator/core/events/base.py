"""What all events share: amounts by kind, and the error of one that is not possible."""

from collections.abc import Mapping

Amounts = Mapping[int, int]
"""Kind to amount."""


class EventError(ValueError):
    """An event that cannot be applied; the state is as it was.

    Attributes
    ----------
    kind : str
        ``handle``, ``value``, ``books`` or ``limit``.
    field : str
        What part of the event is wrong, such as ``amount[3]``.
    message : str
        The value, and what would be right.
    """

    def __init__(self, kind: str, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.kind = kind
        self.field = field
        self.message = message

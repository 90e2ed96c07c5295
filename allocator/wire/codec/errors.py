"""What is wrong with a message: a code, the field, and how to mend it."""

from typing import NoReturn, Self

from allocator.v1.session_pb2 import Error, ErrorCode

TEXT_LENGTH_MAX = 64 * 1024
"""No id, name, value or label is longer, in characters."""

_PREFIX = "ERROR_CODE_"


class WireError(ValueError):
    """A message that cannot be taken; it ends the session.

    `field`: path of the field, such as ``events[3].release.released.agent[17]``.
    `message`: the value, and what would be right.
    """

    def __init__(self, code: "ErrorCode.ValueType", field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.code = code
        self.field = field
        self.message = message

    def below(self, field: str) -> Self:
        """Say the same of a part of a larger message."""
        path = f"{field}.{self.field}" if self.field else field
        return type(self)(self.code, path, self.message)

    def to_message(self, sequence: int) -> Error:
        """Write the error as the session's last message."""
        return Error(code=self.code, field=self.field, message=self.message, sequence=sequence)


def refuse(field: str, message: str) -> NoReturn:
    """Raise a `WireError` about a value."""
    raise WireError(ErrorCode.ERROR_CODE_VALUE, field, message)


def code_name(code: "ErrorCode.ValueType") -> str:
    """Name a code as metrics and logs do.

    Examples
    --------
    >>> code_name(ErrorCode.ERROR_CODE_SLOW_PEER)
    'slow_peer'
    """
    return ErrorCode.Name(code).removeprefix(_PREFIX).lower()

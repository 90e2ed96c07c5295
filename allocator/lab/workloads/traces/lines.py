"""Lines of a trace, and errors that say where a bad value stands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn


class TraceError(ValueError):
    """A trace that cannot be read: which file, line and field, what stands there, what should."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace, by field name."""

    path: Path
    number: int
    fields: dict[str, str]

    def refuse(self, field: str, wanted: str) -> NoReturn:
        """Raise the error for a field."""
        value = self.fields[field]
        message = f"{self.path}:{self.number}: {field} is {value!r}; it must be {wanted}"
        raise TraceError(message)

    def integer(self, field: str, *, least: int = 0, most: int = 2**53) -> int:
        """Read a whole number."""
        text = self.fields[field]
        value = int(text) if text.isascii() and text.isdigit() else -1
        if not least <= value <= most:
            self.refuse(field, f"a whole number from {least} to {most}")
        return value

    def text(self, field: str) -> str:
        """Read a name, which must not be empty."""
        if not self.fields[field]:
            self.refuse(field, "a name")
        return self.fields[field]


def read_lines(
    path: Path, fields: Sequence[str], separator: str, *, header: bool
) -> Iterator[Line]:
    """Read a table.

    fields: names of all columns, in order.
    header: whether the first line names the columns; then it must name these.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: cannot be read as text ({error})"
        raise TraceError(message) from error
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split(separator)
        if header and number == 1:
            if parts != list(fields):
                message = f"{path}:1: columns are {parts}; they must be {list(fields)}"
                raise TraceError(message)
            continue
        if len(parts) != len(fields):
            message = f"{path}:{number}: has {len(parts)} fields ({line!r}), not {len(fields)}"
            raise TraceError(message)
        yield Line(path, number, dict(zip(fields, parts, strict=True)))

"""The history of settings: recent changes, with the values before them.

The number of settings and bytes is bounded; the oldest changes are dropped first.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from allocator.core import OperatorChange, taken_back
from allocator.v1 import settings_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.settings.overlay import KeptChange, read_kept, write_kept
from allocator.wire.settings.schedule import Schedule

SETTINGS_MAX = 500

BYTES_MAX = 2**19


class Replaced(NamedTuple):
    """A setting before a change (None if it was not set) and after it; a rule's schedule."""

    before: OperatorChange | None
    after: OperatorChange
    schedule: Schedule | None = None


class History:
    """The latest changes, by number. Immutable: `with_change` makes a copy."""

    def __init__(self, changes: Sequence[pb.PastChange] = (), last: int = 0) -> None:
        self.changes = tuple(changes)
        self.last = last

    def with_change(self, replaced: Sequence[Replaced], by: str, at_ms: int) -> "History":
        """Copy the history and add a change, unless the change replaced nothing."""
        if not replaced:
            return self
        made = pb.PastChange(number=self.last + 1, by=by, at_ms=at_ms)
        made.replaced.extend(_written(islice(replaced, SETTINGS_MAX)))
        while made.replaced and made.ByteSize() > BYTES_MAX:
            del made.replaced[len(made.replaced) // 2 :]
        made.left_out = len(replaced) - len(made.replaced)
        return History(_latest((*self.changes, made)), made.number)

    def replaced_by(self, number: int) -> list[pb.KeptChange]:
        """Return the changes that undo a change. Raises LookupError if these are not all known."""
        if not 0 < number <= self.last:
            known = f"the latest is {self.last}" if self.last else "nothing was changed yet"
            raise LookupError(f"number = {number}: there is no such change; {known}")
        found = next((each for each in self.changes if each.number == number), None)
        if found is None or found.left_out:
            text = f"number = {number}: the values that this change replaced are no longer known"
            oldest = next((each.number for each in self.changes if not each.left_out), None)
            least = "" if oldest is None else f"; the oldest that can be reverted is {oldest}"
            raise LookupError(f"{text}{least}")
        return [
            each.before if each.HasField("before") else write_kept(_removal(read_kept(each.after)))
            for each in found.replaced
        ]


def _removal(kept: KeptChange) -> KeptChange:
    return kept._replace(change=taken_back(kept.change))


def _written(replaced: Iterable[Replaced]) -> Iterator[pb.Replaced]:
    for before, after, schedule in replaced:
        message = pb.Replaced(after=write_kept(KeptChange(after, "", 0, schedule)))
        if before is not None:
            message.before.CopyFrom(write_kept(KeptChange(before, "", 0, schedule)))
        yield message


def _latest(changes: Sequence[pb.PastChange]) -> list[pb.PastChange]:
    settings = size = 0
    kept: list[pb.PastChange] = []
    for each in reversed(changes):
        settings += len(each.replaced)
        size += each.ByteSize()
        if settings > SETTINGS_MAX or size > BYTES_MAX:
            break
        kept.append(each)
    return kept[::-1]


def write_history(history: History) -> pb.KeptHistory:
    return pb.KeptHistory(last=history.last, changes=history.changes)


def read_history(message: pb.KeptHistory) -> History:
    for index, each in enumerate(message.changes):
        proto_types.part(each, _check, f"changes[{index}]")
    return History(_latest(message.changes), message.last)


def _check(message: pb.PastChange) -> None:
    for index, each in enumerate(message.replaced):
        proto_types.part(each, read_replaced, f"replaced[{index}]")


def read_replaced(message: pb.Replaced) -> Replaced:
    before = read_kept(message.before).change if message.HasField("before") else None
    after = read_kept(message.after)
    return Replaced(before, after.change, after.schedule)

"""When a scheduled rule is in force, as files and messages state it.

`allocator.server.system.timetable`, which has clock and time zones, evaluates it.
"""

import zlib
from typing import NamedTuple

from allocator.v1 import settings_pb2 as pb


class Schedule(NamedTuple):
    """The times at which a rule is in force; times are in milliseconds since 1970.

    `every`: cron syntax, in `zone`; the rule is in force for `for_ms` from each of these times.
        Empty: it is in force once, from `from_ms` to `until_ms`.
    """

    from_ms: int = 0
    """Not in force before; 0: no bound."""
    until_ms: int = 0
    """Not in force from then on; 0: no bound."""
    every: str = ""
    for_ms: int = 0
    zone: str = "UTC"

    @property
    def text(self) -> str:
        return "/".join(map(str, self))


def write_schedule(schedule: Schedule) -> pb.Schedule:
    return pb.Schedule(**schedule._asdict())


def read_schedule(message: pb.Schedule) -> Schedule:
    return Schedule(
        message.from_ms,
        message.until_ms,
        " ".join(message.every.split()),
        message.for_ms,
        message.zone or "UTC",
    )


def id_of(key: tuple[str, ...]) -> str:
    """Short name of a scheduled rule, by which operators remove it.

    >>> id_of(("limit", "eng", "0/0/0 8 * * */3600000/UTC"))
    'e8d30bc3'
    """
    return f"{zlib.crc32(repr(key).encode()):08x}"

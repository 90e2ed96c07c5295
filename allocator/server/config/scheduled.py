"""When rules of the configuration are in force: the options of kinds that can have a schedule."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import Field, model_validator

from allocator.rule_kinds import RULES
from allocator.server.config.checks import reject_at
from allocator.server.config.schema import Section
from allocator.server.system import timetable
from allocator.server.system.timetable import ScheduleError
from allocator.wire.settings.schedule import Schedule

SCHEDULES_MAX = 200
"""Maximum number of scheduled rules, of operators and of the configuration together."""

WHEN: Mapping[str, Any] = MappingProxyType(
    {
        name: (str, Field("", description=meaning, examples=[example]))
        for name, meaning, example in (
            (
                "from",
                "The rule is scheduled: it does not hold before this time; empty: no bound.",
                "2026-12-24T18:00",
            ),
            ("until", "It holds before this time; empty: no bound.", "2026-12-27T06:00"),
            ("every", "It begins at these times, in cron's syntax; empty: once.", "0 8 * * 1-5"),
            ("for", "How long it holds from each time of `every` on.", "10h"),
            ("tz", "Time zone of these times; empty: UTC.", "Europe/Berlin"),
        )
    }
)


class ScheduledSection(Section):
    """When a rule holds: always, if no time is given."""

    options: ClassVar[Mapping[str, Any]] = WHEN
    """The options of this section; some of their names are keywords of Python."""

    @property
    def schedule(self) -> Schedule | None:
        """None: always."""
        return timetable.read({name: getattr(self, name) for name in WHEN}, now_ms=None)

    @model_validator(mode="after")
    def check_schedule(self) -> "ScheduledSection":
        try:
            _ = self.schedule
        except ScheduleError as error:
            reject_at(error.field, str(error))
        return self


class BoundedSchedules(Section):
    """The base of all arrays of rules."""

    @model_validator(mode="after")
    def check_number(self) -> "BoundedSchedules":
        rules = (each for kind in RULES if kind.scheduled for each in getattr(self, kind.name))
        if (count := sum(schedule_of(each) is not None for each in rules)) > SCHEDULES_MAX:
            kinds = next(kind.name for kind in RULES if kind.scheduled)
            reject_at(kinds, f"{count} scheduled rules; at most {SCHEDULES_MAX}, remove some")
        return self


def schedule_of(rule: Section) -> Schedule | None:
    return rule.schedule if isinstance(rule, ScheduledSection) else None

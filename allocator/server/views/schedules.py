"""Lists scheduled rules: when they are in force, and what they change next."""

from collections.abc import Iterable, Iterator

from allocator.server.config import Loaded
from allocator.server.operators import calendar
from allocator.server.operators.setting_rows import places_of_rules, say_where, scope_of, value_of
from allocator.server.system import timetable
from allocator.v1 import settings_pb2 as pb
from allocator.wire.settings.overlay import KeptChange, Overlay, write_kept
from allocator.wire.settings.schedule import id_of


def listed(
    loaded: Loaded, overlay: Overlay, rules: Iterable[KeptChange], now_ms: int
) -> Iterator[pb.ScheduledRule]:
    places = places_of_rules(*loaded)
    for rule in rules:
        assert rule.schedule is not None
        row, where = pb.ScheduledRule(), pb.Setting()
        say_where(where, rule.key, overlay, places.get(rule.key, ""))
        row.id, row.key, row.scope = id_of(rule.key), rule.key[0], scope_of(rule.key)
        row.value, row.when = value_of(rule.change), timetable.in_words(rule.schedule)
        row.source, row.place, row.set_at_ms = where.source, where.place, where.set_at_ms
        row.rule.CopyFrom(write_kept(rule))
        row.holds = calendar.holds(rule, now_ms)
        row.options.update(timetable.options(rule.schedule))
        if (found := calendar.window(rule, now_ms)) is not None:
            row.begin_ms, row.end_ms = found
            zone = rule.schedule.zone
            row.begin = timetable.shown(found.begin_ms, zone) if found.begin_ms else ""
            row.end = timetable.shown(found.end_ms, zone) if found.end_ms else ""
        yield row


def coming_changes(
    rules: Iterable[KeptChange], now_ms: int, most: int
) -> Iterator[pb.ComingChange]:
    for at_ms, begins, rule in calendar.coming(rules, now_ms, most):
        assert rule.schedule is not None
        yield pb.ComingChange(
            at_ms=at_ms,
            at=timetable.shown(at_ms, rule.schedule.zone),
            begins=begins,
            key=rule.key[0],
            scope=scope_of(rule.key),
            value=value_of(rule.change),
            id=id_of(rule.key),
        )

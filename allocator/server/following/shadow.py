"""Runs the shadow policy in a separate thread, after answers are sent.

The books' thread hands over a recorded cycle and continues. The shadow's thread makes one
comparison at a time, and then pauses for as long as it took; cycles meanwhile are only counted.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
import structlog

from allocator.core import (
    Allocator,
    Comparison,
    CycleRecord,
    Names,
    Policy,
    PolicySpec,
    compare_beside,
)
from allocator.server.system.lasting import LastingThread
from allocator.v1 import admin_pb2 as pb

BYTES_MAX = 128 * 2**20
"""Maximum size of a cycle's input; larger cycles are not compared."""

CLIENTS_MAX = 10_000
"""Maximum number of clients with sums; those without offers the longest are removed first."""

_log = structlog.get_logger()


Client = tuple[str, str]
"""Path of the role, and id of the framework."""


@dataclass
class Tally:
    """The results for one shadow policy.

    `share_apart`: share of the cluster that it would have offered to other clients, summed up.
    `clients`: the sums of each client, without its present share.
    """

    spec: PolicySpec | None = None
    counts: pb.ShadowCounts = field(default_factory=pb.ShadowCounts)
    share_apart: float = 0.0
    clients: "OrderedDict[Client, pb.ShadowShare]" = field(default_factory=OrderedDict)


class Shadow:
    """Runs the shadow policy, and sums its decisions."""

    def __init__(self, build: Callable[[PolicySpec], Policy]) -> None:
        """`build`: makes a policy that shares nothing with the one in force."""
        self._build = build
        self._changed = threading.Condition()
        self._tally = Tally()
        self._pending: CycleRecord | None = None
        self._busy = False
        self._closing = False
        self._thread: LastingThread | None = None
        self._policy: tuple[PolicySpec, Policy] | None = None

    # On the books' thread.

    def after_answers(self, allocator: Allocator) -> None:
        """Hand over the latest cycle, if there is one and the thread has time for it."""
        spec, trail = allocator.settings.shadow, allocator.trail
        if spec is None and self._tally.spec is None:
            return  # the usual case
        assert trail is not None
        record, trail.for_shadow = trail.for_shadow, None
        with self._changed:
            if spec != self._tally.spec:
                self._tally = Tally(spec)
                self._pending = None
            free = not self._busy and self._pending is None
            if record is not None and spec is not None:
                free = self._hand_over(record, free=free)
        # Large snapshots are only copied while the thread has time for them.
        trail.shadow_bytes_max = BYTES_MAX if spec is not None and free else 0

    def _hand_over(self, record: CycleRecord, *, free: bool) -> bool:
        """Pass a cycle to the thread; return whether the thread could take another one."""
        counts = self._tally.counts
        if not free:
            counts.late += 1
        elif record.seen is None:
            counts.too_large += 1
        else:
            self._pending = record
            if self._thread is None:
                thread = LastingThread("shadow", self._run)
                thread.start()
                self._thread = thread
            self._changed.notify_all()
            return False
        return free

    # On any thread.

    def read(self) -> Tally:
        """Copy the results."""
        with self._changed:
            return deepcopy(self._tally)

    def totals(self) -> Tally:
        """Copy the results without those of each client."""
        with self._changed:
            return deepcopy(replace(self._tally, clients=OrderedDict()))

    def settle(self, within_s: float) -> bool:
        """Wait until nothing is in progress; return whether that happened in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._pending is None and not self._busy, within_s
            )

    def close(self, within_s: float | None = None) -> None:
        """End, after the comparison in progress or when the time is up."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.end()
            self._thread.join(within_s)

    # On its own thread.

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False  # also if the last comparison failed
                self._changed.wait_for(lambda: self._closing or self._pending is not None)
                if self._closing:
                    return
                record, self._pending = self._pending, None
                tally, self._busy = self._tally, True
            assert record is not None
            assert tally.spec is not None
            begun_s = time.monotonic()
            found, error = self._ask(record, tally.spec)
            took_s = time.monotonic() - begun_s
            with self._changed:
                tally.counts.busy_s += took_s
                _add(tally, found, error)
                # Use at most half of a processor and of the interpreter's lock.
                self._changed.wait_for(lambda: self._closing, took_s)
                self._busy = False
                self._changed.notify_all()

    def _ask(self, record: CycleRecord, spec: PolicySpec) -> tuple[Comparison | None, str]:
        try:
            if self._policy is None or self._policy[0] != spec:
                self._policy = spec, self._build(spec)
            return compare_beside(record, spec, self._policy[1]), ""
        except BaseException as error:  # noqa: BLE001 - a shadow policy must not do any harm.
            text = f"{type(error).__name__}: {error}"
            return None, text


def _add(tally: Tally, found: Comparison | None, error: str) -> None:
    counts = tally.counts
    if error:
        counts.failed += 1
        if error != counts.error:  # log each error once, not in every cycle
            _log.warning("the shadow policy failed", error=error)
        counts.error = error
        return
    if found is None:
        counts.too_large += 1
        return
    counts.compared += 1
    counts.offers_of_both += found.of_both
    counts.offers_of_policy += found.of_policy
    counts.offers_of_shadow += found.of_beside
    one, other = found.offered, found.offered_beside
    counts.clients_of_policy += int(((one > 0) & (other == 0)).sum())
    counts.clients_of_shadow += int(((one == 0) & (other > 0)).sum())
    tally.share_apart += float(np.abs(one - other).sum()) / 2
    for row in np.flatnonzero((one > 0) | (other > 0)).tolist():
        sums = _sums_of(tally, found.names, row)
        sums.offered += float(one[row])
        sums.offered_by_shadow += float(other[row])
        sums.cycles += bool(one[row] > 0)
        sums.cycles_by_shadow += bool(other[row] > 0)
    while len(tally.clients) > CLIENTS_MAX:
        tally.clients.popitem(last=False)
        counts.forgotten += 1


def _sums_of(tally: Tally, names: Names, row: int) -> pb.ShadowShare:
    handle = int(names.framework[row])
    info = names.info[handle] if handle < len(names.info) else None
    key = names.path[int(names.role[row])], info.framework_id if info else f"framework {handle}"
    if key not in tally.clients:
        role, framework_id = key
        name = info.name if info else ""
        tally.clients[key] = pb.ShadowShare(
            role=role, framework_id=framework_id, framework_name=name
        )
    tally.clients.move_to_end(key)
    return tally.clients[key]

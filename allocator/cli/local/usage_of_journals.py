"""Computes usage from journals, by replaying them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from allocator.cli.local.plugins import load_policies
from allocator.cli.local.replay import journals_in, play_file
from allocator.cli.tree import Exit, fail
from allocator.core import Allocator
from allocator.plain import printable
from allocator.server.following.usage_store import UsageStore
from allocator.server.system import loop_cache
from allocator.usage.account import Account, Closed
from allocator.usage.report import report
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import journal_pb2
from allocator.wire.journal.replay import Replay, Replayed


class AccountedReplay(Replay):
    """A replay with an account of usage."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as of `Replay`
        super().__init__(*args, check=False, **options)
        self.store = UsageStore()
        self._closed: list[Closed] = []
        self.account = Account(self._closed.append)

    def take(self, record: journal_pb2.JournalRecord) -> list[Replayed]:
        answers = super().take(record)
        self._follow()
        return answers

    def finish(self, answered: journal_pb2.JournalAnswered | None = None) -> list[Replayed]:
        # A request waits for the next record, which may end its session.
        answers = super().finish(answered)
        self._follow()
        return answers

    def _follow(self) -> None:
        self.account.follow(self.sidecar)
        if self._closed:
            self.store.write(self._closed, {})
            self._closed.clear()


def usage_of(
    paths: Sequence[Path],
    plugins: Sequence[str] | None,
    request: Callable[[int], pb.GetUsageRequest],
) -> pb.GetUsageResponse:
    """Replay journals, the oldest first, and report their usage.

    `request`: returns the request, given the time of the journals' end in milliseconds since 1970.

    Ends the process if nothing was recorded; damage is a warning, and its time counts as unknown.
    """
    if note := loop_cache.prepare():
        typer.echo(note, err=True)
    from allocator import policies

    load_policies(plugins)
    player = AccountedReplay(policies.build, policies.substitute(), make=Allocator)
    for file in [file for path in paths for file in journals_in(path)]:
        found = play_file(file, player)
        if found.damage:
            text = f"warning: {file}: skipped from here on: {found.damage}"
            typer.echo(printable(text), err=True)
    player.finish()
    now = player.account.moment()
    if now.now_ms < 0:
        fail(Exit.FAILURE, f"no session was recorded in {', '.join(map(str, paths))}")
    return report(player.store, now, request(now.now_ms))

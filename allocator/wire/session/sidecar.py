"""The whole sidecar without sockets, threads or clock: sessions, and one allocator.

Its behaviour depends only on the sequence of calls. The server makes these calls and writes them to
the journal; a replay repeats them.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from allocator.core import AdoptPlan, Allocator, DemandMemory, Settings
from allocator.core.checkpoint import CheckpointError, Column, restore
from allocator.v1 import session_pb2 as pb
from allocator.wire.codec.validation import WireError
from allocator.wire.session.session_start import Greeting
from allocator.wire.session.sidecar_session import (
    KeptSession,
    SessionCounts,
    SessionState,
    SidecarSession,
    Steps,
    finished,
    supersedes,
)
from allocator.wire.settings.operator_settings import OperatorEvent

Answer: TypeAlias = tuple[int, pb.SessionResponse]


KeptState: TypeAlias = tuple[Any, int, int, dict[int, KeptSession]]
"""The allocator's state; number of its session; number of the latest session; open sessions."""


class Sidecar:
    """Sessions by number, of which at most one has the allocator.

    `allocator`: the session's; without a session, an empty one with operators' settings.
    """

    def __init__(
        self,
        new_allocator: Callable[[Settings], Allocator],
        settings: Settings,
        welcome: pb.Welcome,
        *,
        sessions_before: int = 0,
    ) -> None:
        """Start without a session; the first one gets the number after `sessions_before`.

        `new_allocator`: makes an allocator that uses, and changes, the given settings.
        """
        self.allocator = new_allocator(settings)
        self.counts = SessionCounts()
        self.sessions: dict[int, SidecarSession] = {}
        self._new_allocator = new_allocator
        self.welcome = welcome
        self._active = 0
        self._last = sessions_before
        self._parting: list[Answer] = []

    @property
    def active(self) -> int:
        return self._active

    @property
    def session(self) -> SidecarSession | None:
        return self.sessions.get(self._active)

    @property
    def sessions_begun(self) -> int:
        return self._last

    def open(self) -> int:
        """Open a session; returns its number."""
        self._last += 1
        number = self._last
        self.counts.sessions_opened += 1
        self.sessions[number] = self._new_session(number)
        return number

    def receive(
        self,
        number: int,
        data: bytes,
        policy_error: str = "",
        first_plan: AdoptPlan | None = None,
    ) -> list[Answer]:
        """Handle a message; some of the answers may be for another session.

        A session that takes over the sidecar ends the previous one.

        `policy_error`: if not empty, the substitute decides the message's cycle, for this reason.
        `first_plan`: the plan that the cycle waited for.
        """
        if number not in self.sessions:
            return []
        return self.finish(self.receiving(number, data), policy_error, first_plan)

    def finish(
        self,
        steps: Steps[list[Answer]],
        policy_error: str = "",
        first_plan: AdoptPlan | None = None,
    ) -> list[Answer]:
        """Finish what `receiving` began; arguments and result as for `receive`."""
        self.allocator.overrule(policy_error)
        self.allocator.plan_source.foretell(first_plan)
        return finished(steps)

    def receiving(self, number: int, data: bytes) -> Steps[list[Answer]]:
        """Do what `receive` does, but pause between the message's events and the cycle."""
        if number not in self.sessions:
            return []
        said = yield from self.sessions[number].receiving(data)
        # The last message to the previous session comes first.
        answers = [*self._parting, *((number, response) for response in said)]
        self._parting = []
        self._release(number)
        return answers

    def close(self, number: int, error: WireError | None = None) -> list[Answer]:
        """End a session because its stream ended, or with an error."""
        session = self.sessions.get(number)
        said = session.close(error) if session else []
        self._release(number)
        self.sessions.pop(number, None)
        return [(number, response) for response in said]

    def step(self, event: OperatorEvent) -> None:
        """Apply an operator's change, which outlasts the session, or a plan, between messages.

        Raises EventError if it is not possible; then nothing has changed.
        """
        if isinstance(event, Settings):
            self.allocator.reconfigure(event)
        else:
            self.allocator.step(event)

    def learn(self, demands: DemandMemory) -> None:
        """Start with the demands that an earlier process learnt; only before the first session."""
        self.allocator.state.memory = demands

    def kept(self) -> KeptState:
        """Return all state that later answers depend on, for a checkpoint."""
        sessions = {number: session.kept() for number, session in self.sessions.items()}
        return self.allocator.kept(), self._active, self._last, sessions

    def resume(self, root: Column) -> None:
        """Continue from a checkpoint.

        Raises CheckpointError if it is invalid or of another version; then nothing has changed.
        """
        kept = restore(root, self.kept())
        try:
            core, holder, last, sessions = kept
            # Build everything before replacing anything, so that a failure changes nothing.
            allocator = self._new_allocator(core[2].settings)
            allocator.resume(core)
            resumed = {}
            for number, session in sessions.items():
                resumed[number] = self._new_session(number)
                resumed[number].resume(session, allocator if number == holder else None)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise CheckpointError(f"the checkpoint cannot be restored: {error}") from None
        self.allocator, self._active, self._last = allocator, holder, last
        self.sessions = resumed

    def _new_session(self, number: int) -> SidecarSession:
        return SidecarSession(
            lambda greeting: self._admit(number, greeting), self.welcome, self.counts, self._check
        )

    def _check(self, newcomer: Greeting) -> None:
        """Raise a `WireError` if the current session takes precedence over the caller."""
        its = self.session.greeting if self.session else None
        if its is not None and not supersedes(newcomer, its):
            message = (
                f"is {newcomer.instance_started_us}, older than {its.instance_started_us} of "
                f"instance {its.instance_id!r} of master {its.master_id!r}, which has this sidecar"
            )
            raise WireError(pb.ERROR_CODE_SUPERSEDED, "instance_started_us", message)

    def _admit(self, number: int, greeting: Greeting) -> Allocator:
        """Give a session the allocator. Raises WireError if another session takes precedence."""
        self._check(greeting)
        holder = self.session
        if holder and holder.greeting:
            self._supersede(holder, greeting)
        # Start with an empty allocator: the snapshot will contain everything.
        self._active = number
        self._renew()
        return self.allocator

    def _supersede(self, holder: SidecarSession, newcomer: Greeting) -> None:
        code = pb.ERROR_CODE_SUPERSEDED
        message = (
            f"instance {newcomer.instance_id!r} of master {newcomer.master_id!r} took this sidecar "
            "over; it is newer, or the same one calling again"
        )
        # `receive`, which is handling the newcomer's message, will return these answers.
        self._parting += [
            (self._active, response) for response in holder.close(WireError(code, "", message))
        ]

    def _release(self, number: int) -> None:
        session = self.sessions.get(number)
        if number == self._active and session and session.state is SessionState.CLOSED:
            self._active = 0
            self._renew()

    def _renew(self) -> None:
        fresh = self._new_allocator(self.allocator.settings)
        fresh.remember(self.allocator)
        self.allocator = fresh

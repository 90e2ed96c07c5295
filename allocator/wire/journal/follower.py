"""A second sidecar, which applies the records of a first one and decides nothing itself.

In each cycle it uses the recorded grants instead of calling the policy; everything else is done as
in the first sidecar. So both have equal state after each record, byte for byte, and each answer has
the recorded digest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from allocator.core import (
    Allocator,
    Decided,
    Dissent,
    Policy,
    PolicySpec,
    Question,
    check_told,
    decide_by,
    second_opinion,
)
from allocator.v1 import journal_pb2
from allocator.wire.journal.framing import JournalError
from allocator.wire.journal.records import read_grants
from allocator.wire.journal.replay import Replay
from allocator.wire.session.sidecar import Sidecar


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the recording and the follower's result.

    `record`: number of the record, counted from 1 for the sidecar's first; for a checkpoint, of the
        last record before it.
    `dissent`: for a cycle that the policy decides differently here; the books stay valid. None: the
        books differ, or can no longer follow.
    """

    record: int
    session: int
    reason: str
    dissent: Dissent | None = None


class UndecidedError(Exception):
    """A cycle was not decided when it was recorded, or its grants are missing."""


class Follower:
    """A sidecar that follows the record stream of another one.

    `sidecar`: None before the first checkpoint, and when the books differ from the other sidecar's;
        then the follower needs another checkpoint.
    """

    def __init__(
        self,
        build_policy: Callable[[PolicySpec], Policy],
        substitute: Policy | None = None,
        *,
        verify_every: int = 0,
        make: Callable[..., Allocator] = Allocator,
    ) -> None:
        """Start empty.

        `build_policy`: the other sidecar's registry. Policies are always built, but only decide
            cycles that are verified.
        `substitute`: decides such a cycle if its policy fails.
        `verify_every`: decide every nth cycle again, by number; 0: none.
        `make`: makes allocators; called like the class.
        """
        self.verified = 0
        self._told = _Told()
        self._verify_every = verify_every
        self._decide_again = decide_by(substitute)
        self._player = Replay(build_policy, make=partial(make, decide=self._decide))
        self._place = 0, 0
        self._dissent: Dissent | None = None

    @property
    def sidecar(self) -> Sidecar | None:
        return self._player.sidecar

    @property
    def waiting(self) -> journal_pb2.JournalRecord | None:
        """The request whose answer has not been read yet; the state does not include it."""
        return self._player.waiting

    def take(self, record: journal_pb2.JournalRecord) -> tuple[Difference, ...]:
        """Apply a record; return the differences from it.

        A request is applied when the record of its answer arrives.

        Raises JournalError if the record does not fit; then only a checkpoint can be continued
            from.
        """
        player, found = self._player, self._player.found
        before = found.differing, found.refused, found.checkpoints_differing
        self._told.answered, self._told.wrong, self._dissent = record.answered, "", None
        player.take(record)
        asked = self._place  # the request, if the record is an answer; otherwise the record itself
        if not record.HasField("answered"):
            self._place = player.done, record.session
        differences = []
        if self._dissent is not None:
            differences.append(Difference(*asked, self._dissent.reason, self._dissent))
        if found.differing > before[0]:
            differences.append(Difference(*asked, self._told.wrong or "another answer"))
            player.forget()
        if found.refused > before[1]:  # a stream only contains accepted changes
            differences.append(Difference(*self._place, "an operator's setting is refused here"))
            player.forget()
        if found.checkpoints_differing > before[2]:  # the follower continued from the checkpoint
            differences.append(Difference(*self._place, "another state"))
        return tuple(differences)

    @property
    def is_between(self) -> bool:
        """Whether the state is between two records; see `begin_waiting`."""
        return self._player.has_begun_waiting

    def begin_waiting(self) -> bool:
        """Apply the events of the waiting request; return whether it has a cycle to decide."""
        return self._player.begin_waiting()

    def _decide(self, question: Question) -> Decided:
        decided = self._told.decide(question)
        if self._verify_every and question.cycle % self._verify_every == 0:
            self.verified += 1
            self._dissent = second_opinion(question, decided, self._decide_again)
        return decided


class _Told:
    """The recorded answer to a request; `wrong`: why it cannot be followed, or empty."""

    def __init__(self) -> None:
        self.answered = journal_pb2.JournalAnswered()
        self.wrong = ""

    def decide(self, question: Question) -> Decided:
        answered = self.answered
        if not answered.HasField("grants"):
            self.wrong = "no grants are recorded"
            raise _failure(answered.failure)
        try:
            grants = read_grants(answered.grants)
            check_told(question, grants)
        except (JournalError, AssertionError) as error:
            self.wrong = f"its grants cannot be taken over: {error}"
            raise
        return Decided(grants, question.overruled)


def _failure(name: str) -> Exception:
    """Make an exception with the class name of the one that ended the session when recorded."""
    kind = type(name, (UndecidedError,), {}) if name else UndecidedError
    return kind("the cycle was not decided")

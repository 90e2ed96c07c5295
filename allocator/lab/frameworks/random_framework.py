"""A framework that does whatever a framework may do: for soaking, not for measuring."""

from collections.abc import Callable
from functools import partial

import numpy as np

from allocator.lab.frameworks.base import Identity, Master, Offer, Task
from allocator.lab.master.ledger_rows import Amount

REFUSE_MS = (-1, 0, 500, 1_000, 5_000, 5_000, 30_000)
LIFE_MS_MAX = 20_000


class ErraticFramework:
    """Accepts all, part or nothing of its offers, and now and then does something else.

    left: called once when the framework has left.
    """

    def __init__(
        self,
        identity: Identity,
        chance: np.random.Generator,
        left: Callable[[], None] = lambda: None,
    ) -> None:
        self.identity = identity
        self.chance = chance
        self.tasks: dict[Task, None] = {}
        self.gone = False
        self._left = left

    def subscribed(self, master: Master) -> None:
        """Remember the master."""
        self._master = master

    def offered(self, offers: list[Offer]) -> None:
        """Answer each offer in some way."""
        for offer in offers:
            if self.chance.random() < 0.4:
                self._master.decline([offer], self._refuse_ms())
            else:
                self._launch(offer)
        draw = self.chance.random()
        if draw < 0.1:
            self._master.suppress(self)
            self._master.event_heap.after(self._some_ms(), self._revive)
        elif draw < 0.15:
            self._master.revive(self)

    def lost(self, tasks: list[Task]) -> None:
        """Forget the tasks."""
        for task in tasks:
            del self.tasks[task]

    def leave(self) -> None:
        """Leave, whatever runs."""
        if not self.gone:
            self.gone = True
            self._master.unsubscribe(self)
            self._left()

    def _launch(self, offer: Offer) -> None:
        """Use one piece of the offer, or two."""
        pieces: list[Amount] = []
        left = offer.amount
        for _ in range(int(self.chance.integers(1, 3))):
            piece = tuple(self._part(amount) for amount in left)
            if any(piece):
                pieces.append(piece)
                left = tuple(a - b for a, b in zip(left, piece, strict=True))
        if not pieces:
            self._master.decline([offer], self._refuse_ms())
            return
        for task in self._master.accept(offer, pieces, self._refuse_ms()):
            self.tasks[task] = None
            self._master.event_heap.after(self._some_ms(), partial(self._finish, task))

    def _part(self, amount: int) -> int:
        return amount if self.chance.random() < 0.3 else int(self.chance.integers(0, amount + 1))

    def _finish(self, task: Task) -> None:
        if task.live:
            del self.tasks[task]
            self._master.end(task)

    def _revive(self) -> None:
        if not self.gone:
            self._master.revive(self)

    def _refuse_ms(self) -> int:
        return int(self.chance.choice(REFUSE_MS))

    def _some_ms(self) -> int:
        return int(self.chance.integers(1, LIFE_MS_MAX))

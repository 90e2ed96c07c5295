"""The frameworks of a master: their handles, live offers and tasks."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from allocator.lab.frameworks.base import Framework, Offer, Task


@dataclass(slots=True, eq=False)
class RegisteredFramework:
    """A subscribed framework.

    waiting: no offer has been made to it yet.
    roles: all that it ever subscribed to: it may still hold something in each.
    offers, tasks: live ones, oldest first.
    """

    framework: Framework
    handle: int
    framework_id: str
    subscribed_ms: int
    roles: tuple[str, ...]
    waiting: bool = True
    offers: dict[Offer, None] = field(default_factory=dict)
    tasks: dict[Task, None] = field(default_factory=dict)

    def void_offers(self, offers: Iterable[Offer]) -> None:
        """Let offers lapse."""
        for offer in offers:
            offer.live = False
            del self.offers[offer]

    def void_tasks(self, tasks: Iterable[Task]) -> None:
        """Let tasks die."""
        for task in tasks:
            task.live = False
            del self.tasks[task]

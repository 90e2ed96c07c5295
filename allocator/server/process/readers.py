"""The listener of an observer for clients and followers on other machines."""

from collections import Counter
from collections.abc import Sequence

import grpc

from allocator.server.config import Config
from allocator.server.engine.core_loop import GRACE_S
from allocator.server.following.books import FollowedBooks
from allocator.server.grpc.access import Access
from allocator.server.grpc.calls import Calls
from allocator.server.grpc.listeners import listen, new_server
from allocator.server.grpc.questions import QuestionServicer
from allocator.server.grpc.records import FOLLOWERS_PART, RECORDS, RecordServicer
from allocator.server.grpc.requests import SERVICE as ADMIN
from allocator.server.grpc.service import Health
from allocator.v1 import admin_pb2_grpc


class ReadersListener:
    """Serves queries and the record stream; `targets`: the bound addresses, once it listens."""

    def __init__(
        self,
        config: Config,
        targets: Sequence[str],
        questions: QuestionServicer,
        books: FollowedBooks,
    ) -> None:
        """Prepare to listen on `targets`, with the options of `config.listen`."""
        self.targets: list[str] = []
        self._bytes_max = config.limits.message_bytes_max
        self._section = config.listen.model_copy(update={"targets": tuple(targets)})
        self._questions = questions
        self._records = RecordServicer(books.branch, books.ask, FOLLOWERS_PART)
        self._calls = Calls(Access(config.access, changes=False))
        self._server: grpc.Server | None = None

    @property
    def refused(self) -> Counter[tuple[str, str]]:
        return self._calls.refused

    def start(self) -> None:
        server = new_server(self._calls, self._bytes_max)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(self._questions, server)
        self._records.add_to(server)
        health = Health((ADMIN.full_name, RECORDS))
        health.add_to(server)
        health.serving()
        self.targets = listen(server, self._section)
        server.start()
        self._server = server

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(GRACE_S)

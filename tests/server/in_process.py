"""The operators' service in this process: a core on its thread, and a channel to it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from allocator.core import PolicySpec
from allocator.server.config import Config, Loaded
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.grpc.admin import AdminServicer
from allocator.server.operators.operators import Operators
from allocator.server.views.views import Views
from allocator.v1.admin_pb2_grpc import AdminServiceStub, add_AdminServiceServicer_to_server

_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 2**28)]


@contextmanager
def running(loop: CoreLoop) -> Iterator[CoreLoop]:
    """Have the core work meanwhile."""
    loop.start()
    yield loop
    loop.stop()


@contextmanager
def asking(
    loop: CoreLoop, try_policy: Callable[[PolicySpec, float], None] = lambda _spec, _within_s: None
) -> Iterator[AdminServiceStub]:
    """Serve operators' calls meanwhile; gives what makes them.

    `try_policy`: as for `Operators`.
    """
    operators = Operators(loop, Loaded(Config(), {}), try_policy=try_policy)
    server = grpc.server(ThreadPoolExecutor(4))
    servicer = AdminServicer(loop, Views(loop, operators))
    add_AdminServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}", _OPTIONS) as channel:
        yield AdminServiceStub(channel)
    server.stop(None).wait()

"""The operators' service in this process: a core on its thread, and a channel to it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from allocator.server.engine.core_loop import CoreLoop
from allocator.server.grpc.admin import AdminServicer
from allocator.v1.admin_pb2_grpc import AdminServiceStub, add_AdminServiceServicer_to_server

_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 2**28)]


@contextmanager
def running(loop: CoreLoop) -> Iterator[CoreLoop]:
    """Have the core work meanwhile."""
    loop.start()
    yield loop
    loop.stop()


@contextmanager
def asking(loop: CoreLoop) -> Iterator[AdminServiceStub]:
    """Serve operators' calls meanwhile; gives what makes them."""
    server = grpc.server(ThreadPoolExecutor(4))
    add_AdminServiceServicer_to_server(AdminServicer(loop), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}", _OPTIONS) as channel:
        yield AdminServiceStub(channel)
    server.stop(None).wait()

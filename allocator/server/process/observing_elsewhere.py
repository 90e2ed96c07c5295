"""A separate observer, which follows the observer of a sidecar on another machine."""

import time

import structlog

from allocator.server.config import Loaded
from allocator.server.grpc.listeners import ListenError, claim_addresses
from allocator.server.process.lifetime import (
    EXIT_FAILURE,
    LOOK_S,
    SignalInbox,
    begin,
    closing_children,
    end,
    taking_signals,
)
from allocator.server.process.link import call_process
from allocator.server.process.observing import Observer
from allocator.server.process.systemd import READY, STOPPING, notify, watched
from allocator.server.system.compilation import Compilation
from allocator.server.system.http_socket import http_socket

_log = structlog.get_logger()


def run(loaded: Loaded, note: str = "") -> int:
    """Observe until SIGTERM or SIGINT; return the exit code. `note`: for the log."""
    begun_s = time.monotonic()
    config = loaded.config
    begin(config, note)
    call_process("observer")
    meanwhile = "the observer follows no session until they are"
    with (
        taking_signals() as inbox,
        closing_children(Compilation(meanwhile=meanwhile)) as compilation,
    ):
        try:
            claim_addresses(config.listen.targets)
            http = http_socket(config.http.host, config.http.port)
            observer = Observer(loaded, http)
            observer.readers.start()
        except (ListenError, OSError, ValueError) as error:
            _log.error("cannot start", error=str(error))
            return EXIT_FAILURE
        observer.start()
        where = f"{config.http.host}:{http.getsockname()[1]}"
        _log.info(
            "ready",
            targets=observer.readers.targets,
            http=where,
            sources=config.observer.sources,
            start_s=round(time.monotonic() - begun_s, 3),
        )
        notify(READY)
        compilation.start()
        with watched(observer.is_alive):
            _observe_until_signalled(inbox, compilation, observer)
        compilation.stop()
        _log.info("shutting down")
        notify(STOPPING)
        observer.stop()
    return end(compilation)


def _observe_until_signalled(
    inbox: SignalInbox, compilation: Compilation, observer: Observer
) -> None:
    while not inbox.to_end:
        compilation.look()
        observer.look(compilation)
        if inbox.wait(LOOK_S if compilation.ready else 0.05):
            _log.warning("an observer reads its configuration at its start only: restart it")

"""A process that plays runs, one after another, on a sidecar of its own.

``python -m laboratory.experiments.run_worker FD TARGET``, where FD is a connection to
the parent. This process ends when the parent does, however that happens.
"""

import os
import queue
import sys
import threading
import traceback
from multiprocessing.connection import Connection

from laboratory.experiments.runs import ExperimentRun, Note, play_on, result_of
from laboratory.workloads.scenario import JobProgress


def main() -> None:
    connection: Connection[Note, ExperimentRun] = Connection(int(sys.argv[1]))
    runs: queue.SimpleQueue[ExperimentRun] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, runs), daemon=True).start()
    while True:
        connection.send(_play(connection, runs.get(), sys.argv[2]))


def _read(
    connection: "Connection[Note, ExperimentRun]", runs: "queue.SimpleQueue[ExperimentRun]"
) -> None:
    """Play runs from the parent; when it is gone, exit at once, even in the middle of a run."""
    try:
        while True:
            runs.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)


def _play(connection: "Connection[Note, ExperimentRun]", run: ExperimentRun, target: str) -> Note:
    def watch(progress: JobProgress) -> None:
        connection.send(len(progress.ended_ms))

    try:
        return result_of(run, play_on(run, target, watch))
    except Exception:  # noqa: BLE001 - the parent reports it.
        return traceback.format_exc()


if __name__ == "__main__":
    main()

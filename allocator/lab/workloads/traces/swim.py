"""The SWIM samples of Facebook's MapReduce load (Statistical Workload Injector for MapReduce).

A file has one job a line, tab separated and without a header: id, submission in seconds, gap to the
job before in seconds, bytes into map, bytes shuffled, bytes out of reduce.

References
----------
.. [1] Chen, Ganapathi, Griffith, Katz. "The Case for Evaluating MapReduce Performance Using
   Workload Suites." MASCOTS 2011. Data: github.com/SWIMProjectUCB/SWIM.
"""

from dataclasses import dataclass
from pathlib import Path

from allocator.lab.workloads.traces.lines import TraceError, read_lines

FIELDS = ("job", "submit_s", "gap_s", "map_bytes", "shuffle_bytes", "reduce_bytes")
HOUR_S = 3600
BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class SwimJob:
    """One job.

    submit_s: from the beginning of the file, or of the hour that was asked for.
    """

    name: str
    submit_s: int
    map_bytes: int
    shuffle_bytes: int
    reduce_bytes: int

    def maps(self, most: int) -> int:
        """Map tasks: one for each block of 64 MB, at least one, at most so many."""
        return max(1, min(most, -(-self.map_bytes // BLOCK_BYTES)))


def read_swim(path: Path, hour: int | None = None) -> list[SwimJob]:
    """Read a sample, or one hour of it.

    Raises TraceError where a line is wrong, or the hour has no jobs.
    """
    jobs = []
    last_s = 0
    for line in read_lines(path, FIELDS, "\t", header=False):
        submit_s = line.integer("submit_s")
        if submit_s < last_s:
            line.refuse("submit_s", f"at least that of the line before, {last_s}")
        last_s = submit_s
        job = SwimJob(
            name=line.text("job"),
            submit_s=submit_s if hour is None else submit_s - hour * HOUR_S,
            map_bytes=line.integer("map_bytes"),
            shuffle_bytes=line.integer("shuffle_bytes"),
            reduce_bytes=line.integer("reduce_bytes"),
        )
        if hour is None or 0 <= job.submit_s < HOUR_S:
            jobs.append(job)
    if not jobs:
        where = "" if hour is None else f" in hour {hour}; it ends at {last_s} s"
        message = f"{path}: no jobs{where}"
        raise TraceError(message)
    return jobs

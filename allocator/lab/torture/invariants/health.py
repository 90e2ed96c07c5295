"""The process stays within its bounds, and says nothing that it should not."""

import threading
import time

from allocator.lab.torture.invariants.metrics import Metrics
from allocator.lab.torture.rig import Rig

EVERY_S = 1.0
RSS_MIB_MAX = 900.0
"""Of a cluster of a dozen agents, compiled loops and all policies included."""

GROWTH_MIB_MAX = 250.0
"""From one minute after the process got ready on."""

WARM_S = 60.0
DESCRIPTORS_MAX = 300
THREADS_MAX = 150
LOG_BYTES_A_MINUTE_MAX = 2 * 2**20


class Watch:
    """Looks at the process once a second, on a thread of its own."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._metrics = Metrics(rig)
        self._over = threading.Event()
        self._life = 0
        self._warm_mib = 0.0
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()
        self.look()

    def look(self) -> None:
        """Look once."""
        rig, findings = self._rig, self._rig.findings
        code = rig.sidecar.died()
        if code is not None:
            tail = rig.sidecar.meter.tail()
            findings.check("alive", [f"it ended by itself, with exit code {code}\n{tail}"])
            rig.sidecar.start()
            return
        findings.check("alive", [])
        findings.check("no trace of a defect in the log", rig.sidecar.meter.traces())
        minute = rig.sidecar.meter.minute_bytes_max
        rig.sidecar.meter.minute_bytes_max = 0
        most = max(findings.counts["log_bytes_a_minute_max"], minute)
        findings.counts["log_bytes_a_minute_max"] = most
        wrong = [f"{minute} bytes within a minute"] if minute > LOG_BYTES_A_MINUTE_MAX else []
        findings.check("no flood of logs", wrong)
        if rig.sidecar.wanted:
            self._bounds()
            self._metrics.look()

    def _bounds(self) -> None:
        rig, findings = self._rig, self._rig.findings
        rss_mib, _, threads, descriptors = rig.sidecar.figures()
        if not threads:
            return
        age_s = rig.sidecar.age_s
        findings.sample(age_s, rss_mib, descriptors, threads)
        if rig.sidecar.lives != self._life:
            self._life, self._warm_mib = rig.sidecar.lives, 0.0
        if not self._warm_mib and age_s >= WARM_S:
            self._warm_mib = rss_mib
        wrong = []
        if rss_mib > RSS_MIB_MAX:
            wrong.append(f"{rss_mib:.0f} MiB are more than {RSS_MIB_MAX:.0f}")
        if self._warm_mib and rss_mib - self._warm_mib > GROWTH_MIB_MAX:
            wrong.append(f"from {self._warm_mib:.0f} MiB to {rss_mib:.0f} in {age_s:.0f} s")
            self._warm_mib = rss_mib
        if descriptors > DESCRIPTORS_MAX:
            wrong.append(f"{descriptors} descriptors are more than {DESCRIPTORS_MAX}")
        if threads > THREADS_MAX:
            wrong.append(f"{threads} threads are more than {THREADS_MAX}")
        findings.check("bounded memory, threads and descriptors", wrong)

    def _run(self) -> None:
        while not self._over.wait(EVERY_S):
            begun_s = time.monotonic()
            self.look()
            self._rig.findings.counts["watch_ms_max"] = max(
                self._rig.findings.counts["watch_ms_max"],
                int((time.monotonic() - begun_s) * 1000),
            )

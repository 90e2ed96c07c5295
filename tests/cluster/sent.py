"""The times at which a master sent offers, from its own log.

Frameworks see offers later, because their processes may have to wait for a processor.
"""

import re
import time

DAY_S = 86_400.0

_SENT = re.compile(r"^I\d{4} (\d\d):(\d\d):(\d\d\.\d+) .*\] Sending offers ", re.MULTILINE)


def offers_sent(log: str, now_s: float | None = None) -> list[float]:
    """Return when offers were sent, by a master's log, in seconds as `time.time` counts them.

    The log has no dates: lines count as those of the last 24 hours before `now_s`.
    """
    now_s = time.time() if now_s is None else now_s
    local = time.localtime(now_s)
    midnight_s = now_s - now_s % 1 - (local.tm_hour * 60 + local.tm_min) * 60 - local.tm_sec
    moments = (
        midnight_s + int(hour) * 3600 + int(minute) * 60 + float(second)
        for hour, minute, second in _SENT.findall(log)
    )
    # The log has the time of day only. Times that seem to be in the future were yesterday.
    return [moment - DAY_S if moment > now_s + 1 else moment for moment in moments]

"""How many computers each job may use.

References
----------
.. [1] Isard, Prabhakaran, Currey, Wieder, Talwar, Goldberg. "Quincy: Fair Scheduling for
   Distributed Computing Clusters." SOSP 2009, sec. 3.3 and 4.3.
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def fair_shares(wanted: Ints, computers: int, least: Ints | None = None) -> Ints:
    """Divide computers equally among jobs, none of which gets more than it wants.

    wanted (J,): tasks that run or wait.
    least (J,): what a job has in any case, no more than it wants; all together no more than there
        are.
    Returns (J,): adds up to the smaller of the computers and of what all want. What cannot be
        divided equally goes to the first jobs.

    Examples
    --------
    Ten computers: the first job wants two, the others divide eight.

    >>> fair_shares(np.array([2, 9, 9, 9]), 10).tolist()
    [2, 3, 3, 2]

    The second one has five already, and keeps them.

    >>> fair_shares(np.array([2, 9, 9, 9]), 10, np.array([0, 5, 0, 0])).tolist()
    [2, 5, 2, 1]
    """
    low = np.zeros(len(wanted), np.int64) if least is None else least
    # The highest level that there are enough computers for.
    level, above = 0, int(wanted.max(initial=0)) + 1
    while above - level > 1:
        middle = (level + above) // 2
        if int(np.clip(middle, low, wanted).sum()) <= computers:
            level = middle
        else:
            above = middle
    share = np.clip(level, low, wanted)
    left = computers - int(share.sum())
    more = np.flatnonzero((share < wanted) & (share == level))
    share[more[: max(left, 0)]] += 1
    return share

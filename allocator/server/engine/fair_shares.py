"""Fair shares: what the policy would give everybody if the cluster were given out anew, now.

A copy of the core's books is taken between two batches, as for a journal's file. On the thread of
whoever asks everything that is held in the copy is taken back, and the policy in force decides
once, under all of Mesos's rules. So a fair share is what a framework could have if it wanted as
much as it may get: one that wants less has less than that, and nothing is wrong.
"""

import numpy as np

from allocator.core import Allocator, Detached, Floats, Newcomer, PolicySpec
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.reports import report


def deal(loop: CoreLoop, policy: PolicySpec, copied: Detached) -> report.Report:
    """Give everything out anew, in a copy; on any thread.

    `loop`: tells how allocators are made.
    `policy`: which policy decides.
    `copied`: what `Allocator.copied` gave on the core's thread.
    Returns the report of the copy. Its clients are those of the books, row by row.
    """
    return report.read(dealt_anew(loop, policy, copied))


def dealt_anew(loop: CoreLoop, policy: PolicySpec, copied: Detached) -> Allocator:
    """As `deal`; gives the allocator, whose `last_cycle` says whether the policy failed."""
    twin = loop.new_twin(policy)
    twin.reallocate_from_scratch(copied, policy=policy)
    return twin


def newcomers_share(
    loop: CoreLoop, policy: PolicySpec, copied: Detached, newcomer: Newcomer
) -> float:
    """Say what a framework that there is not would be given, as a dominant share.

    `loop`, `policy`, `copied`: as for `deal`.
    Raises EventError where there is no room for it.
    """
    twin = loop.new_twin(policy)
    handle = twin.reallocate_from_scratch(copied, newcomer, policy)
    dealt = report.read(twin)
    return float(dealt.share[dealt.clients.framework == handle].max(initial=0.0))


def root_mean_square(error: Floats) -> float:
    """How far shares are from fair in one number; 0 where there is nobody.

    >>> root_mean_square(np.array([0.3, -0.4, 0.0, 0.0]))
    0.25
    """
    return float(np.sqrt(np.mean(error**2))) if len(error) else 0.0

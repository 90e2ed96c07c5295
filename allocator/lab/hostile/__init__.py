"""The crew of hostile tenants: what may be said to a Mesos master so that it does harm, as data.

Every manner stands here once, in Mesos's own terms, and is played in the simulation of module and
core, before a sidecar process (`torture`), and before a real master where one is at hand. Beside it
stands an honest framework, which must be served as if nobody else were there.

    words     what frameworks and agents may say
    labels, names, filters, calls, agents
              the manners, by what they are about
    tenants   how they are played by the emulated master
"""

from allocator.lab.hostile.agents import AGENTS
from allocator.lab.hostile.calls import CALLS
from allocator.lab.hostile.filters import FILTERS
from allocator.lab.hostile.labels import LABELS
from allocator.lab.hostile.names import NAMES, ROLES
from allocator.lab.hostile.words import Manner as Manner

CREW: tuple[Manner, ...] = (*LABELS, *NAMES, *ROLES, *FILTERS, *CALLS, *AGENTS)
"""All of them."""

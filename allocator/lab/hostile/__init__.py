"""The crew of hostile tenants: what may be said to a Mesos master so that it does harm, as data.

Every manner stands here once, in Mesos's own terms, and is played in the simulation of module and
core, before a sidecar process (`torture`), and before a real master where one is at hand. Beside it
stands an honest framework, which must be served as if nobody else were there.

    words     what frameworks and agents may say
    crew      the manners
    tenants   how they are played by the emulated master
"""

from allocator.lab.hostile.crew import CREW as CREW
from allocator.lab.hostile.words import Manner as Manner

"""Hostile tenants: input of frameworks and agents that may harm a Mesos master, as data.

Each manner of attack is described once, in Mesos's own terms. Tests play it on the emulated master,
against a sidecar process (`tests/torture`), and against a real master if one is available. An
honest framework runs at the same time, and must be served as if it were alone.

    words     requests of frameworks and agents
    crew      the manners

`tests/hostile/tenants.py` has the emulated master play them.
"""

from laboratory.hostile.crew import CREW as CREW
from laboratory.hostile.words import Manner as Manner

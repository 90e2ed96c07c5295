"""A random cluster in which everything that Mesos knows of occurs, and occurs together.

Begin with `scenario`. `checks` says what must hold whatever comes.
"""

from allocator.lab.random_cluster.scenario import RandomScenario as RandomScenario

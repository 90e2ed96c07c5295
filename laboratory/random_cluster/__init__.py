"""A random cluster that combines every feature of Mesos.

Start with `scenario`. `checks` holds the invariants.
"""

from laboratory.random_cluster.scenario import RandomScenario as RandomScenario

"""A random cluster in which everything that Mesos knows of occurs, and occurs together."""

from allocator.lab.random_cluster.scenario import RandomScenario as RandomScenario

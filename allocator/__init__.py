"""Decide, for an Apache Mesos master, who is offered which agent's resources."""

__version__ = "0.1.0"

"""The sidecar's configuration: one frozen `Config`, read once and checked as a whole.

A value comes from the first of these that gives one: a flag (``--set section.key=value``), the
environment (``MESOS_ALLOCATOR_SECTION__KEY``), the TOML file, the default.
"""

from allocator.server.config.example import example
from allocator.server.config.problems import ConfigError, Problem
from allocator.server.config.sections import Config
from allocator.server.config.source import Flag, load

__all__ = ["Config", "ConfigError", "Flag", "Problem", "example", "load"]

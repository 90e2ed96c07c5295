"""The sidecar's configuration: one frozen `Config`, read once and checked as a whole.

A value comes from the first of these that sets it: a flag (``--set section.key=value``), the
environment (``MESOS_ALLOCATOR_SECTION__KEY``), the TOML file, the default.

Start with `sections`, which defines every option.
"""

from allocator.server.config.example import example
from allocator.server.config.problems import ConfigError, ConfigProblem
from allocator.server.config.sections import OPEN_SESSIONS, Config
from allocator.server.config.source import Flag, Loaded, load, load_all

__all__ = [
    "OPEN_SESSIONS",
    "Config",
    "ConfigError",
    "ConfigProblem",
    "Flag",
    "Loaded",
    "example",
    "load",
    "load_all",
]

"""Reloads the configuration while the sidecar runs.

The whole configuration is checked first. Then all options that can change at run time are changed
together; the log names the other changed options, which need a restart. Operators' settings still
take precedence.
"""

import queue
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import structlog

from allocator.policies import POLICIES
from allocator.server.config import Config, ConfigError, Loaded
from allocator.server.config.schema import Section, is_live, live_sections
from allocator.server.operators.operators import Operators
from allocator.server.operators.setting_rows import MISTYPED_LOGGED, mistyped_names
from allocator.server.system.disk import reason
from allocator.server.system.lasting import LastingThread

_log = structlog.get_logger()


class Difference(NamedTuple):
    """The differences between two configurations."""

    live: dict[str, tuple[object, object]]
    restart: list[str]


def difference(old: Config, new: Config) -> Difference:
    """Compare two configurations by key; each list of rules is compared as a whole."""
    before, after = (_flat(each.model_dump(mode="json")) for each in (old, new))
    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    live = {key: pair for key, pair in changed.items() if is_live(Config, key.split("."))}
    return Difference(live, [key for key in changed if key not in live])


def merged(old: Loaded, new: Loaded) -> Loaded:
    """Combine the new configuration's options that can change at run time with the old others."""
    sections: dict[str, Any] = {}
    for name in live_sections(Config):
        section, before = getattr(new.config, name), getattr(old.config, name)
        if isinstance(section, Section):
            waits = {key: getattr(before, key) for key in section.at_start}
            section = section.model_copy(update=waits)
        sections[name] = section
    origins = {key: place for key, place in old.origins.items() if not is_live(Config, key)}
    origins |= {key: place for key, place in new.origins.items() if is_live(Config, key)}
    return Loaded(old.config.model_copy(update=sections), origins)


def read_again(load: Callable[[], Loaded], operators: Operators) -> bool:
    """Read the configuration, and apply it if all of it is valid; return whether it was applied."""
    known = dict(POLICIES)
    try:
        old = operators.loaded
        new = load()
        found = difference(old.config, new.config)
        operators.replace_config(merged(old, new))
    except ConfigError as error:
        problems = [str(problem) for problem in error.problems]
    except ValueError as error:
        problems = [str(error)]
    except TimeoutError:
        problems = ["the core is busy; send SIGHUP again"]
    except OSError as error:
        # For example, no file descriptor is left.
        problems = [f"{reason(error)}; send SIGHUP again when that is over"]
    except BaseException as error:  # noqa: BLE001 - no configuration ends the process.
        _log.exception("the configuration could not be reloaded")
        problems = [f"{type(error).__name__}: {error}"]
    else:
        operators.reloads["done"] += 1
        for text in islice(mistyped_names(operators.loaded), MISTYPED_LOGGED):
            _log.warning("a rule names an unknown resource, probably by mistake", rule=text)
        _log.info(
            "configuration reloaded",
            changed={key: {"old": old, "new": new} for key, (old, new) in found.live.items()},
            needs_restart=found.restart,
            operators_keep=operators.kept_over(found.live),
        )
        return True
    operators.reloads["refused"] += 1
    # Users' policies were loaded with the configuration; restore the previous ones.
    POLICIES.replace(known)
    _log.error("configuration refused, nothing has changed", problems=problems)
    return False


class Reloader:
    """Reloads the configuration on request, in a separate thread.

    So a file or a policy that is slow to load does not delay signals.
    """

    def __init__(self, load: Callable[[], Loaded], operators: Operators) -> None:
        """Start the thread; `load`, `operators`: as for `read_again`."""
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._load, self._operators = load, operators
        LastingThread("reload", self._run).start()

    def ask(self) -> None:
        """Request a reload; it begins after one in progress."""
        self._asked.put(None)

    def _run(self) -> None:
        while True:
            self._asked.get()
            read_again(self._load, self._operators)


def _flat(sections: dict[str, Any]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, section in sections.items():
        if isinstance(section, dict):
            flat |= {f"{name}.{key}": value for key, value in section.items()}
        else:
            flat[name] = section
    return flat

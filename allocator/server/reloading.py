"""The configuration, read again while the sidecar runs.

All of it is checked first. Then what can change while the sidecar runs counts, at once and
together; of the rest it is said that it waits for a restart. What operators set stays over it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import structlog

from allocator.core import EventError
from allocator.policies import POLICIES
from allocator.server.config import Config, ConfigError, Loaded
from allocator.server.disk import reason
from allocator.server.operators import Operators

LIVE = ("policy", "learn", "starvation", "limit", "demand", "constraint")
"""Sections that count while the sidecar runs."""

RESTART = ("policy.plugin_deadline_ms",)
"""What does not, of these."""

_log = structlog.get_logger()


class Difference(NamedTuple):
    """What another configuration says otherwise.

    Attributes
    ----------
    live : dict of str to (old, new)
        What counts at once.
    restart : list of str
        Keys of what counts after a restart.
    """

    live: dict[str, tuple[object, object]]
    restart: list[str]


def difference(old: Config, new: Config) -> Difference:
    """Compare two configurations, key by key; rules as a whole."""
    before, after = (_flat(each.model_dump(mode="json")) for each in (old, new))
    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    live = {key: pair for key, pair in changed.items() if _is_live(key)}
    return Difference(live, [key for key in changed if key not in live])


def merged(old: Loaded, new: Loaded) -> Loaded:
    """Take what counts at once from the new configuration, the rest from the old one."""
    sections: dict[str, Any] = {name: getattr(new.config, name) for name in LIVE}
    deadline_ms = old.config.policy.plugin_deadline_ms
    sections["policy"] = new.config.policy.model_copy(update={"plugin_deadline_ms": deadline_ms})
    origins = {key: place for key, place in old.origins.items() if key[0] not in LIVE}
    origins |= {key: place for key, place in new.origins.items() if key[0] in LIVE}
    return Loaded(old.config.model_copy(update=sections), origins)


def read_again(load: Callable[[], Loaded], operators: Operators) -> bool:
    """Read the configuration, and take it over if all of it is right; one log line says what came.

    Parameters
    ----------
    load : callable
        Reads it, as at the start.
    operators : Operators

    Returns
    -------
    bool
        Whether it was taken over.
    """
    known = dict(POLICIES)
    try:
        old = operators.loaded
        new = load()
        found = difference(old.config, new.config)
        operators.replace_config(merged(old, new))
    except ConfigError as error:
        problems = [str(problem) for problem in error.problems]
    except (EventError, ValueError) as error:
        problems = [str(error)]
    except TimeoutError:
        problems = ["the core is busy; send SIGHUP again"]
    except OSError as error:
        # Such as no descriptor left to read with. What escapes here would end the process.
        problems = [f"{reason(error)}; send SIGHUP again when that is over"]
    else:
        operators.reloads["done"] += 1
        _log.info(
            "configuration read again",
            changed={key: {"old": old, "new": new} for key, (old, new) in found.live.items()},
            needs_restart=found.restart,
            operators_keep=operators.kept_over(found.live),
        )
        return True
    operators.reloads["refused"] += 1
    # Users' policies were read with it; those from before count.
    POLICIES.clear()
    POLICIES.update(known)
    _log.error("configuration not taken over, nothing has changed", problems=problems)
    return False


def _flat(sections: dict[str, Any]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, section in sections.items():
        if isinstance(section, dict):
            flat |= {f"{name}.{key}": value for key, value in section.items()}
        else:
            flat[name] = section
    return flat


def _is_live(key: str) -> bool:
    return key.partition(".")[0] in LIVE and key not in RESTART

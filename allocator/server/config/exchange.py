"""A configuration as text, for another process that shows it."""

import json

from allocator.server.config.checks import ELSEWHERE
from allocator.server.config.sections import Config
from allocator.server.config.source import Loaded


def write_loaded(loaded: Loaded) -> str:
    """Write a configuration and its origins as JSON."""
    origins = [[*key, place] for key, place in loaded.origins.items()]
    return json.dumps({"config": loaded.config.model_dump(mode="json"), "origins": origins})


def read_loaded(text: str, *, elsewhere: bool = False) -> Loaded:
    """Read what `write_loaded` wrote; `elsewhere`: on another machine. Raises ValueError."""
    found = json.loads(text)
    before = ELSEWHERE.set(elsewhere)
    try:
        config = Config.model_validate_json(json.dumps(found["config"]))
    finally:
        ELSEWHERE.reset(before)
    return Loaded(config, {tuple(key): place for *key, place in found["origins"]})

"""A configuration as JSON, for another process that displays it."""

import json

from allocator.server.config.checks import ELSEWHERE
from allocator.server.config.sections import Config
from allocator.server.config.source import Loaded


def write_loaded(loaded: Loaded) -> str:
    origins = [[*key, place] for key, place in loaded.origins.items()]
    return json.dumps({"config": loaded.config.model_dump(mode="json"), "origins": origins})


def read_loaded(text: str, *, elsewhere: bool = False) -> Loaded:
    """Read the output of `write_loaded`; `elsewhere`: of another machine. Raises ValueError."""
    found = json.loads(text)
    before = ELSEWHERE.set(elsewhere)
    try:
        config = Config.model_validate_json(json.dumps(found["config"]))
    finally:
        ELSEWHERE.reset(before)
    return Loaded(config, {tuple(key): place for *key, place in found["origins"]})

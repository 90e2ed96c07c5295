"""Reads the sources of the configuration, and the line at which the file sets each value.

The TOML parser keeps no positions, so `line_numbers` finds them: it feeds the parser one statement
at a time and notes where each began.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from allocator.near import nearest
from allocator.server.config.problems import (
    BROKEN,
    BYTES_MAX,
    PROBLEMS_MAX,
    TOO_DEEP,
    VALUE_LINES_MAX,
    ConfigError,
    ConfigProblem,
    Key,
    Origins,
    dotted,
    from_validation,
    unknown_key,
    unlikely,
)
from allocator.server.config.schema import keys, option_at
from allocator.server.config.sections import Config
from allocator.server.system.disk import read_regular, read_stream

ENVIRONMENT_PREFIX = "MESOS_ALLOCATOR_"
SYNTAX_ERRORS_MAX = 20


class Flag(NamedTuple):
    """One value from the command line or the environment."""

    flag: str
    """The user's text, for messages, such as ``--log-level``."""
    key: str
    """Dotted path, such as ``log.level``."""
    text: str


class Loaded(NamedTuple):
    """A configuration, and the origin of each value; values without an origin are defaults."""

    config: Config
    origins: Origins


def load(path: Path | None, environment: Mapping[str, str], flags: Sequence[Flag] = ()) -> Config:
    """Do what `load_all` does; return only the configuration."""
    return load_all(path, environment, flags).config


def load_all(
    path: Path | None,
    environment: Mapping[str, str],
    flags: Sequence[Flag] = (),
    *,
    stream: bool = False,
) -> Loaded:
    """Read the configuration with its origins.

    Flags override the environment (variables of the form ``MESOS_ALLOCATOR_SECTION__KEY``), which
    overrides the file; of two flags for one key, the later one applies.

    `path`: a TOML file.
    `stream`: whether `path` may be a pipe, which is read to its end.

    Raises ConfigError with the problems of all sources.
    """
    from allocator.server.plugins.loading import load_entry_points

    tree, origins, problems = gather(path, environment, flags, stream=stream)
    problems += [ConfigProblem("", "", text) for text in load_entry_points()]
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        problems += from_validation(Config, error, origins)
    except Exception as error:  # noqa: BLE001 - report errors that no check anticipates.
        problems.append(
            ConfigProblem("", "", f"cannot be checked: {type(error).__name__}: {error}")
        )
    else:
        if not problems:
            return Loaded(config, origins)
    raise ConfigError(sorted(problems, key=_place_of))


def _place_of(problem: ConfigProblem) -> tuple[str, int]:
    """Sort key of a problem: the file's by line, then those of other sources."""
    file, _, line = problem.origin.rpartition(":")
    return (file, int(line)) if line.isdigit() else ("~", 0)


def gather(
    path: Path | None,
    environment: Mapping[str, str],
    flags: Sequence[Flag],
    *,
    stream: bool = False,
) -> tuple[dict[str, Any], Origins, list[ConfigProblem]]:
    """Merge the sources, unchecked: the tree of sections, each value's origin, and problems."""
    tree: dict[str, Any] = {}
    origins: Origins = {}
    problems: list[ConfigProblem] = []
    if path is not None:
        tree, origins, problems = read_file(path, stream=stream)
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX) and "__" in name:
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            problems += _place(tree, origins, Flag(f"environment {name}", key, text))
    for flag in flags:
        problems += _place(tree, origins, flag)
    return tree, origins, problems


def mistyped_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Find variables that resemble an option but have one underscore instead of two."""
    known = {
        f"{section}_{key}".upper(): f"{ENVIRONMENT_PREFIX}{section}__{key}".upper()
        for section, key in keys(Config)
    }
    for name in sorted(environment):
        rest = name.removeprefix(ENVIRONMENT_PREFIX)
        # Variables of commands, such as ..._TLS_CERT, are below the cutoff.
        if rest == name or "__" in rest or not (near := nearest(rest, known, cutoff=0.85)):
            continue
        yield f"environment {name}: is not an option, and is ignored; did you mean {known[near]}?"


def read_file(
    path: Path, *, stream: bool = False
) -> tuple[dict[str, Any], Origins, list[ConfigProblem]]:
    """Read a TOML file past its syntax errors, so that all of it is checked."""
    try:
        text = (read_stream if stream else read_regular)(path, BYTES_MAX).decode()
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            return {}, {}, [ConfigProblem(str(path), "", f"is not UTF-8 at byte {error.start}")]
        why = error.strerror if isinstance(error, OSError) else error
        return {}, {}, [ConfigProblem(str(path), "", f"cannot be read: {why}; name a TOML file")]
    # At each syntax error, replace the line by something valid, and parse again.
    lines = text.split("\n")
    broken: dict[int, ConfigProblem] = {}
    while True:
        try:
            tree = tomllib.loads("\n".join(lines))
            break
        except tomllib.TOMLDecodeError as error:
            line = _line_of(error, len(lines))
            problem = _syntax_problem(path, line, lines[line - 1], error)
            if not _mend(lines, line, known=line in broken) or len(broken) == SYNTAX_ERRORS_MAX:
                return {}, {}, [*broken.values(), broken.get(line, problem)]
            broken.setdefault(line, problem)
        except RecursionError:
            return {}, {}, [ConfigProblem(str(path), "", TOO_DEEP)]
        except ValueError as error:  # of int(), without a position
            return {}, {}, [ConfigProblem(str(path), "", f"cannot be read: {error}")]
    odd = [ConfigProblem(str(path), dotted(key), why) for key, why in unlikely(tree)]
    if odd:
        return {}, {}, odd[:PROBLEMS_MAX]
    # Mark the origin of inserted values, so that these are not reported again.
    origins = {
        key: BROKEN if line in broken else f"{path}:{line}"
        for key, line in line_numbers("\n".join(lines)).items()
    }
    # Values behind a very long one have no line.
    for key in _leaves(tree):
        origins.setdefault(key, str(path))
    return tree, origins, list(broken.values())


def _line_of(error: tomllib.TOMLDecodeError, last: int) -> int:
    match = re.search(r"at line (\d+)", str(error))
    return int(match[1]) if match else last


def _mend(lines: list[str], line: int, *, known: bool) -> bool:
    """Replace a line by its key without a value, or by nothing. Return whether that was possible.

    A line that opens a table must stay, or its keys would go to another table.
    """
    text = lines[line - 1]
    if text.lstrip().startswith("[") or not text.strip():
        return False
    key = text.partition("=")[0].strip()
    lines[line - 1] = "" if known else f'{key} = ""'
    return True


def _syntax_problem(
    path: Path, line: int, text: str, error: tomllib.TOMLDecodeError
) -> ConfigProblem:
    what = re.sub(r" \(at .*\)$", "", str(error)).lower()
    mend = '; text needs quotes, as in key = "value"' if "invalid value" in what else ""
    return ConfigProblem(f"{path}:{line}", text.strip(), f"{what}{mend}")


def line_numbers(text: str) -> dict[Key, int]:
    r"""Line, from 1, at which each table and value of a valid TOML text begins.

    >>> line_numbers('[http]\nport = 1\n[[demand]]\nrole = "a"')
    {('http',): 1, ('http', 'port'): 2, ('demand', 0): 3, ('demand', 0, 'role'): 4}
    """
    found: dict[Key, int] = {}
    arrays: dict[Key, int] = {}
    table: Key = ()
    for line, statement in _statements(text):
        parsed = tomllib.loads(statement)
        if statement.lstrip().startswith("["):
            table = _resolve(parsed, arrays, new=statement.lstrip().startswith("[["))
            found.setdefault(table, line)
        else:
            for key in _leaves(parsed):
                found.setdefault(table + key, line)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    pending = ""
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        # A value may span several lines: add lines until the text parses.
        start = start if pending else number
        pending += line + "\n"
        if number - start > VALUE_LINES_MAX:
            return
        try:
            tomllib.loads(pending)
        except tomllib.TOMLDecodeError:
            continue
        yield start, pending
        pending = ""


def _resolve(header: dict[str, Any], arrays: dict[Key, int], *, new: bool) -> Key:
    """Path of a table header, with the index of each element of an array of tables."""
    key: Key = ()
    node: Any = header
    while isinstance(node, dict) and node:
        (name, node), *_ = node.items()
        key = (*key, name)
        if isinstance(node, list):
            node = node[0]
        # ``[[name]]`` begins the array's next element; other headers refer to its latest one.
        last = not node
        if last and new:
            arrays[key] = arrays.get(key, -1) + 1
        if key in arrays:
            key = (*key, arrays[key])
    return key


def _leaves(tree: dict[str, Any] | list[Any]) -> Iterator[Key]:
    """Paths of all values, each after those that contain it."""
    pairs = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for name, value in pairs:
        yield (name,)
        if isinstance(value, dict | list):
            yield from ((name, *rest) for rest in _leaves(value))


def _place(tree: dict[str, Any], origins: Origins, flag: Flag) -> Iterator[ConfigProblem]:
    """Insert a text from the environment or the command line into the tree."""
    key = flag.key.split(".")
    option = option_at(Config, key)
    if option is None:
        yield ConfigProblem(flag.flag, flag.key, unknown_key(Config, key))
        return
    node = tree
    for name in key[:-1]:
        node = node.setdefault(name, {})
        if not isinstance(node, dict):
            return  # The file sets a value in place of a section, which is reported.
    node[key[-1]] = _value(option, flag.text)
    origins[tuple(key)] = flag.flag


def _value(option: FieldInfo, text: str) -> object:
    """Parse a text as the option's type; return the text itself if that fails."""
    kind = option.annotation
    if get_origin(kind) is tuple and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind in (int, float, bool) or get_origin(kind) is tuple:
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):  # of TOML, and of int() for too many digits
            return text
    return text

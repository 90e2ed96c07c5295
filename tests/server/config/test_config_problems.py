"""Invalid configurations: all errors are reported together, each with its line."""

import difflib
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator import near
from allocator.policies import POLICIES
from allocator.server.config import Config, ConfigError, Flag, load
from allocator.server.config.schema import toml_value
from allocator.server.config.source import line_numbers


def problems(path: Path | None, environment=None, flags=()) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, environment or {}, flags)
    return [str(problem) for problem in caught.value.problems]


def of_text(path: Path, text: str) -> list[str]:
    """Problems of a file, without its name."""
    file = path / "c.toml"
    file.write_text(text, encoding="utf-8")
    return [problem.removeprefix(f"{path}/") for problem in problems(file)]


def test_five_errors_in_a_file_are_all_reported_with_their_lines(tmp_path):
    text = """\
# One wrong type, one number out of range, one unknown key, one unknown name, one missing value.
[http]
host = 17
port = 70000

[log]
levle = "info"

[policy]
name = "ps-dfs"

[[demand]]
role = "eng"
"""
    known = ", ".join(map(repr, POLICIES))
    assert of_text(tmp_path, text) == [
        'c.toml:3: http.host = 17: must be text in quotes, as in host = "127.0.0.1"',
        "c.toml:4: http.port = 70000: must be from 0 to 65535",
        "c.toml:7: log.levle = \"info\": unknown key; did you mean 'log.level'?",
        f"c.toml:10: policy.name = \"ps-dfs\": must be one of {known}; did you mean 'ps-dsf'?",
        "c.toml:12: demand[0].resources: is missing; give it",
    ]


def test_problems_of_all_sources_come_together(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("[limits]\nagents = 0\n")
    environment = {"MESOS_ALLOCATOR_HTTP__PROT": "1", "MESOS_ALLOCATOR_LOG__FORMAT": "xml"}
    flags = [Flag("--set", "policy.flat", "yes"), Flag("--http-port", "http.port", "x")]
    variable = "environment MESOS_ALLOCATOR_"
    formats = "'auto', 'json', 'console'"
    assert problems(file, environment, flags) == [
        f"{file}:2: limits.agents = 0: must be from 1 to 10000000",
        f"{variable}HTTP__PROT: http.prot: unknown key; did you mean 'http.port'?",
        '--http-port: http.port = "x": must be a whole number, as in port = 5057',
        '--set: policy.flat = "yes": must be true or false, as in flat = false',
        f'{variable}LOG__FORMAT: log.format = "xml": must be one of {formats}',
    ]


def test_syntax_errors_do_not_hide_the_rest(tmp_path):
    text = """\
[policy]
name = drf
seed = -1
[http]
port = 1
port = 2
[limits]
queue = 0
"""
    assert of_text(tmp_path, text) == [
        'c.toml:2: name = drf: invalid value; text needs quotes, as in key = "value"',
        "c.toml:3: policy.seed = -1: must be from 0 to 9223372036854775807",
        "c.toml:6: port = 2: cannot overwrite a value",
        "c.toml:8: limits.queue = 0: must be from 1 to 10000",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[http", "c.toml:1: [http: expected ']' at the end of a table declaration"),
        ('[http]\nhost = """a', 'c.toml:2: host = """a: unterminated string'),
        ("x\n" * 50, "c.toml:1: x: expected '=' after a key in a key/value pair"),
    ],
)
def test_a_file_that_is_no_toml_is_reported_and_not_more(tmp_path, text, found):
    assert of_text(tmp_path, text)[0] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[polcy]", "c.toml:1: polcy: unknown section; did you mean 'policy'?"),
        ("http = 3", "c.toml:1: http = 3: must be a section, as in [http]"),
        ("[demand]", "c.toml:1: demand: must be a section, as in [[demand]]"),
        ("[http]\nlevel = 1", "c.toml:2: http.level = 1: unknown key; did you mean 'log.level'?"),
        ("[policy]\nmode = 3", "c.toml:2: policy.mode = 3: must be one of 'oblivious', "),
        ("[policy]\nselection = 'jont'", "did you mean 'joint'?"),
        (
            "[policy]\nname = 'choosy'\n[policy.parameters]\nunit = 'cpus'",
            "c.toml:4: policy.parameters.unit: 'cpus' is not possible; choose from agents, tasks,",
        ),
        (
            "[policy.parameters]\nx = 1",
            "c.toml:2: policy.parameters.x = 1: must be text in quotes",
        ),
        ("[listen]\ntargets = []", "c.toml:2: listen.targets = []: must not be empty"),
        (
            "[listen]\ntargets = [\n  'a:1',\n  'b',\n]",
            'c.toml:2: listen.targets[1] = "b": must be host:port',
        ),
        ("[listen]\ntargets = ['a:70000']", "a port of at most 65535"),
        ("[listen]\ntargets = ['unix:a']", "needs an absolute path"),
        (f"[listen]\ntargets = ['unix:/{'a' * 107}']", "at most 107 bytes"),
        ("[listen]\nunix_mode = 0o1777", "listen.unix_mode = 1023: must be from 0o0 to 0o777"),
        ("[listen]\ntls_key = '/nowhere'", "cannot be read (No such file or directory)"),
        (
            "[listen]\ntls_cert = '/etc/passwd'",
            "c.toml:1: listen.tls_key: is missing while tls_cert is given; give both, or neither",
        ),
        ("[listen]\ntls_key = '/etc/passwd'", "listen.tls_cert: is missing while tls_key is given"),
        ("[listen]\ntls_client_ca = '/etc/passwd'", "c.toml:2: listen.tls_client_ca: needs tls_"),
        ("[[demand]]\nresources = 'cpus:x'", "'x' is not a number"),
        ("[[demand]]\nresources = 'cpus:0'", "names no positive amount"),
        (
            f"[[limit]]\nrole = '{4097 * 'r'}'\nresources = 'cpus:1'",
            "has 4097 bytes; at most 4096 are taken",
        ),
        (
            f"[[weight]]\nframework_name = '{4097 * 'f'}'\nweight = 2",
            "has 4097 bytes; at most 4096 are taken",
        ),
        ("[[constraint]]\nagents = 'zone='", "'zone=' is not a clause"),
        ("[[constraint]]\nagents = ' ; '", "holds for every agent"),
        (
            "[[constraint]]\nall = true\nagents = 'a'\n[[constraint]]\nall = true\nagents = 'b'",
            "c.toml:4: constraint[1]: has the patterns of an earlier rule; keep one of the two",
        ),
        (
            "[[demand]]\nresources = 'cpus:1'",
            "demand[0].all: the rule would be for every",
        ),
        (
            "[[constraint]]\nagents = 'a'\nrole = 'a'\nall = true",
            "c.toml:4: constraint[0].all: does not go with role or framework_name",
        ),
        ("[[constraint]]\nall = true\nagents = 'zone<3'", "'zone<3' is not a clause"),
        ("[journal]\npath = '/tmp'", "is a directory; name a file in it, as in '/tmp/journal'"),
        (f"[journal]\npath = '{'f' * 300}'", "cannot be a file (File name too long); name another"),
        (
            "[listen]\ntargets = ['10.0.0.1:1']",
            "10.0.0.1:1 reaches beyond this machine without TLS",
        ),
        (
            "[access]\nadmin_write = ['x']",
            "c.toml:2: access.admin_write: names certificates, but listen.tls_client_ca asks",
        ),
        ("[state]\ndirectory = 'here'", "must be an absolute path"),
        ("[journal]\nbytes_max = 1.5", "journal.bytes_max = 1.5: must be a whole number"),
        ("[starvation]\noutstanding_max = 0", "outstanding_max = 0: must be above 0, up to 1"),
        ("[fairness]\nusage_weight = 1.5", "fairness.usage_weight = 1.5: must be from 0 to 1"),
        ("[fairness]\nhalf_life_s = -1", "fairness.half_life_s = -1: must be from 0 to"),
        ("[starvation]\noutstanding_max = '1'", "must be a number, as in outstanding_max = 1.0"),
        ("[http]\nhost = 2026-01-01", 'http.host = "2026-01-01": must be text in quotes'),
        (f"[http]\nhost = ['{'a' * 500}']", "aaa...: must be text in quotes"),
    ],
)
def test_a_problem_names_line_key_value_and_fix(tmp_path, text, found):
    (problem,) = of_text(tmp_path, text)
    assert found in problem
    assert problem.startswith("c.toml:")


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("", "unknown key"),
        ("http", "is a section; name one of its keys, as in http.host"),
        ("demand", "rules are given in the file, as [[demand]]"),
        ("demand.role", "rules are given in the file, as [[demand]]"),
        ("http.port.x", "unknown key; did you mean 'http.port'?"),
        ("policy.parameters", "unknown key"),
    ],
)
def test_a_flag_must_name_an_option(key, found):
    (problem,) = problems(None, {}, [Flag("--set", key, "1")])
    assert problem.startswith("--set: ")
    assert found in problem


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (problem,) = problems(tmp_path / "none.toml")
    why = "No such file or directory; name a TOML file"
    assert problem == f"{tmp_path}/none.toml: cannot be read: {why}"
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    (problem,) = problems(tmp_path / "latin.toml")
    assert problem == f"{tmp_path}/latin.toml: is not UTF-8 at byte 5"


names = st.text(string.ascii_lowercase, min_size=1, max_size=4)
values = st.one_of(
    st.integers(-9, 9),
    st.text("ab#=[]\"'", max_size=5),
    st.lists(st.integers(0, 9), max_size=3),
)


@st.composite
def documents(draw) -> tuple[str, dict[tuple, int]]:
    """Draw a TOML text and the line of each of its values."""
    lines: list[str] = []
    expected: dict[tuple, int] = {}
    for section in draw(st.lists(names, max_size=4, unique=True)):
        count = draw(st.integers(0, 2))  # 0: a table; else elements of an array of tables
        for index in range(max(count, 1)):
            path = (section, index) if count else (section,)
            lines.append(f"[[{section}]]" if count else f"[{section}]  # [http]")
            expected[path] = len(lines)
            for key in draw(st.lists(names, max_size=3, unique=True)):
                value = draw(values)
                expected[*path, key] = len(lines) + 1
                if isinstance(value, list) and draw(st.booleans()):
                    lines += [f"{key} = [", *(f"  {each}, # {key} = 1" for each in value), "]"]
                elif isinstance(value, str) and draw(st.booleans()):
                    lines += [f"{key} = '''", "x = 1", "[y]", "'''"]
                else:
                    lines.append(f'"{key}" = {toml_value(value)}')
                lines += draw(st.lists(st.sampled_from(["", "# a = 1", "  "]), max_size=2))
    return "\n".join(lines), expected


@given(documents())
def test_every_value_of_a_file_is_found_at_its_line(document):
    text, expected = document
    found = line_numbers(text)
    assert {key: found[key] for key in expected} == expected


@given(st.text("[]=\"'#\nab1.,{} ", max_size=60))
def test_any_text_either_loads_or_is_refused(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("config") / "c.toml"
    file.write_text(text)
    found: list[str] = []
    try:
        assert load(file, {}) == Config()
    except ConfigError as error:
        found = [str(problem) for problem in error.problems]
    assert all(problem.startswith(f"{file}:") for problem in found)


def test_of_very_many_words_few_are_compared(monkeypatch):
    """To compare with all hosts of a large cluster took most of a second."""
    compared = []

    def look(text: str, words: list[str], n: int, cutoff: float) -> list[str]:
        compared.append(len(words))
        return difflib_close(text, words, n=n, cutoff=cutoff)

    difflib_close = difflib.get_close_matches
    monkeypatch.setattr(difflib, "get_close_matches", look)
    known = [f"agent-{number:05}.example.org" for number in range(20_000)]
    for wrong in ("agent-l2345.example.org", "agent-12345.exampel.org", "AGENT-12345.example.org"):
        assert "agent-12345.example.org" in near.suggestions(wrong, known)
    assert near.nearest("agnet-12345.example.org", known) == "agent-12345.example.org"
    assert max(compared) <= 5 * near.BESIDE
    # The cost of a comparison grows with the length of both words.
    assert near.suggestions("a" * 5000, known) == ""
    assert near.suggestions("agent", ["", "agent" * 1000, "agents"]) == "; did you mean 'agents'?"

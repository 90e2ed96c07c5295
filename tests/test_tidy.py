"""Rules about the code itself, enforced by tests."""

import ast
import builtins
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import TOOLS, declared_tools

ROOT = Path(__file__).resolve().parent.parent
GENERATED = "allocator/v1/"

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
COLUMNS_MAX = 100

# Split in two, because this file must satisfy its own rules.
OLD_NAME_OF_AGENT = "sla" + "ve"
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
REGISTRY = re.compile(
    r"py" + r"pi\.(org|python)|python" + r"hosted\.org|npm" + r"js\.(org|com)|"
    r"deb\.deb" + r"ian\.org|proxy\.gol" + r"ang\.org|crates\.i" + r"o\b",
    re.IGNORECASE,
)
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(wo" + r"rk|ro" + r"ot|ho" + r"me/\w+|opt/pypi)/")


@cache
def tracked() -> tuple[str, ...]:
    """List the files of the checkout, including new ones that git does not ignore."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = {name for name in listing.split("\0") if name}
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


@cache
def text(name: str) -> str:
    """Read a file; a binary one counts as empty."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(text(name), name)


def sources(*prefixes: str) -> list[str]:
    """List the Python files below the prefixes, except generated ones."""
    return [
        name
        for name in tracked()
        if name.endswith(".py") and name.startswith(prefixes) and not name.startswith(GENERATED)
    ]


PACKAGES = ("allocator", "laboratory")

PACKAGE = sources("allocator/", "laboratory/")
PYTHON = [*PACKAGE, *sources("tests/")]


def module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def matches(pattern: re.Pattern[str], names: list[str]) -> list[str]:
    """List where a pattern occurs, as file:line."""
    return [
        f"{name}:{number}"
        for name in names
        for number, line in enumerate(text(name).splitlines(), 1)
        if pattern.search(line)
    ]


def test_a_function_fits_on_a_screen():
    lengths = {
        f"{name}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name in PYTHON
        for node in ast.walk(tree(name))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {each: lines for each, lines in lengths.items() if lines > FUNCTION_LINES_MAX}


def test_a_file_fits_in_a_head():
    lengths = {name: len(text(name).splitlines()) for name in PACKAGE}
    assert not {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX}


def test_a_line_fits_in_its_columns():
    assert not matches(re.compile(f".{{{COLUMNS_MAX + 1}}}"), PYTHON)


def test_a_module_says_what_it_is_for():
    assert not [name for name in PYTHON if not ast.get_docstring(tree(name))]


def protocol_methods() -> set[str]:
    """List the methods that make a class a policy: those of the protocols in the core."""
    name = "allocator/core/policy.py"
    return {
        member.name
        for node in (tree(name).body if (ROOT / name).exists() else [])
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).startswith("Protocol") for base in node.bases)
        for member in node.body
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_")
    }


# Policies are siblings in allocator/policies/; packages below it are shared code.
POLICY_DEPTH = 2

# Return types of functions that rank clients.
RANKING = {"Criterion", "CriterionFunction"}


def defines_policy(name: str) -> bool:
    """Whether a file has a public policy: a class that decides, or a function that ranks."""
    public = [each for each in tree(name).body if not getattr(each, "name", "_").startswith("_")]
    methods = protocol_methods()
    decides = any(
        isinstance(member, ast.FunctionDef) and member.name in methods
        for node in public
        if isinstance(node, ast.ClassDef)
        for member in node.body
    )
    ranks = any(
        isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) in RANKING
        for node in public
    )
    return decides or ranks


def test_a_policy_cites_its_source():
    """Readers of a criterion must be able to find the page that defines it."""
    references = re.compile(r"^References\n-{10}$", re.MULTILINE)
    policies = [
        name
        for name in sources("allocator/policies/")
        if name.count("/") == POLICY_DEPTH and defines_policy(name)
    ]
    assert not [
        name for name in policies if not references.search(ast.get_docstring(tree(name)) or "")
    ]


def test_an_agent_is_called_an_agent():
    """Mesos's former word for an agent occurs only in the adapter and its drivers."""
    own = ("mesos-module/adapter/", "mesos-module/tests/adapter/")
    names = [name for name in tracked() if not name.startswith(own)]
    assert not matches(re.compile(OLD_NAME_OF_AGENT, re.IGNORECASE), names)
    assert not [name for name in names if OLD_NAME_OF_AGENT in name.lower()]


def test_nothing_is_left_for_later():
    assert not matches(UNFINISHED, list(tracked()))


def test_nothing_names_a_registry_or_a_path_of_one_machine():
    names = list(tracked())
    assert not matches(REGISTRY, names)
    assert not matches(MACHINE_PATH, names)


@pytest.mark.parametrize(
    "name", ["requirements.lock", "requirements-dev.lock", "requirements-engines.lock"]
)
def test_a_lock_is_complete_and_says_what_not_where(name):
    """The user chooses the package index; hashes ensure that the choice does not matter."""
    requirements = re.split(r"^(?=[a-z0-9])", text(name), flags=re.MULTILINE)[1:]
    assert requirements
    assert not [each for each in requirements if "--hash=sha256:" not in each]
    assert "://" not in text(name)


def imported_names(name: str) -> Iterator[str]:
    """Yield every module a file may import; for `from a import b` both a and a.b.

    A dotted name in a string counts too, because lazy imports are written that way.
    """
    package = module_name(name).split(".")
    if not name.endswith("/__init__.py"):
        package.pop()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parent, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition(":")[0]


def test_no_file_is_dead():
    """Every module is imported by another one of the packages, or is an entry point."""
    entries = {*(f"{each}.__main__" for each in PACKAGES), "laboratory.setup"}
    used = {
        target for name in PACKAGE for target in imported_names(name) if target != module_name(name)
    }
    modules = {module_name(name) for name in PACKAGE if not name.endswith("/__init__.py")}
    assert not sorted(modules - used - entries)


def public_names(name: str) -> set[str]:
    """List the public names of a module: its own definitions, or the re-exports of a package."""
    names = set()
    for node in tree(name).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif (
            isinstance(node, ast.ImportFrom)
            and name.endswith("/__init__.py")
            and (node.level or (node.module or "").partition(".")[0] in PACKAGES)
        ):
            names.update(alias.asname or alias.name for alias in node.names)
    return {public for public in names if not public.startswith("_")}


def declared_names(name: str) -> list[str] | None:
    """Read `__all__`, if the module has one."""
    for node in tree(name).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


def test_all_is_exactly_what_is_public():
    for name in PACKAGE:
        declared = declared_names(name)
        if declared is not None:
            assert len(declared) == len(set(declared)), name
            assert {each for each in declared if not each.startswith("__")} == public_names(name)


def written_names(name: str) -> Iterator[str]:
    """Yield all names in a file's code, and words of its strings, but not of its prose."""
    prose = {id(node.value) for node in ast.walk(tree(name)) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree(name)):
        for field in ("id", "attr", "name", "arg", "asname", "module"):
            if isinstance(found := getattr(node, field, None), str):
                yield from found.split(".")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from re.findall(r"\w+", node.value)


def prose_of(name: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings and comments, each with its line."""
    for node in ast.walk(tree(name)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(said))):
                yield node.lineno, said
    for token in tokenize.generate_tokens(io.StringIO(text(name)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def leads_nowhere(dotted: str) -> bool:
    """Whether a dotted name begins with our modules but names nothing in them."""
    package, _, rest = dotted.partition(".")
    at, parts = (
        (ROOT / package, rest.split("."))
        if package in PACKAGES and rest
        else (ROOT / "allocator", dotted.split("."))
    )
    for number, part in enumerate(parts):
        if (at / part).is_dir():
            at /= part
        elif (file := at / f"{part}.py").exists():
            after = parts[number + 1 :]
            return bool(after) and after[0] not in public_names(str(file.relative_to(ROOT)))
        else:
            face = str((at / "__init__.py").relative_to(ROOT))
            return number > 0 and part not in public_names(face)
    return False


def test_names_in_backquotes_exist():
    """Names of code and of files in docstrings and comments of the packages exist."""
    files = {f"/{name}" for name in tracked()}
    elsewhere = (".proto", ".cpp", ".hpp", ".toml", ".json", ".yml", ".html", ".css", ".sh")
    known = {*dir(builtins), *(part for name in files for part in re.split(r"[/.]", name))}
    known.update(each for name in sources("") for each in written_names(name))
    known.update(
        each
        for name in tracked()
        if name.endswith(elsewhere)
        for each in re.findall(r"\w+", text(name))
    )
    said = [
        (f"{name}:{line}", word)
        for name in PACKAGE
        for line, prose in prose_of(name)
        for word in re.findall(r"(?<!`)`([A-Za-z][\w./-]*)(?:\(\))?`(?!`)", prose)
    ]
    assert len(said) > 1000, "names are found at all"
    assert not [
        (place, word)
        for place, word in said
        if (
            not any(file.endswith(f"/{word}") for file in files)
            if re.search(r"\.(py|cpp|hpp|proto|md|toml)$", word)
            else not known.issuperset(re.split(r"[./-]", word.rstrip("./-"))) or leads_nowhere(word)
        )
    ]


STARTS = ("subprocess.run", "subprocess.Popen", "subprocess.check_output", "ending_with_us")
"""Functions whose first argument is a command."""

FINDS = ("shutil.which", "tool")
"""Functions whose argument is a program."""


def first_words(node: ast.expr, name: str) -> set[str]:
    """The names of programs in a command expression, as far as they are literals."""
    match node:
        case ast.Constant(value=str(word)):
            return {word} if re.fullmatch(r"[a-z][\w.+-]*", word) else set()
        case ast.Starred(value=value) | ast.BinOp(left=value):
            return first_words(value, name)
        case ast.List(elts=[first, *others]) | ast.Tuple(elts=[first, *others]):
            found = first_words(first, name)
            # Words before the program may be omitted.
            optional = isinstance(first, ast.Starred) and others
            return found | (first_words(others[0], name) if optional else set())
        case ast.Name(id=bound):
            values = [
                each.value
                for each in ast.walk(tree(name))
                if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == bound
                if bound not in {at.id for at in ast.walk(each.value) if isinstance(at, ast.Name)}
            ]
            return set().union(*(first_words(each, name) for each in values))
        case _:
            return set()


def programs(name: str, functions: tuple[str, ...]) -> set[str]:
    """The names of programs that a file passes to these functions."""
    return {
        program
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in functions
        for program in first_words(node.args[0], name)
    }


def test_programs_started_by_tests_are_installed_by_make_tools():
    """A program that is missing on some machines must not fail a test there without a reason."""
    # A real Mesos brings programs of its own; tests/cluster reports missing ones.
    users = [name for name in PYTHON if not name.startswith("tests/cluster/")]
    used = {name: programs(name, STARTS + FINDS) for name in users}
    found = set().union(*used.values())
    assert {"c++", "ip", "openssl", "promtool"} <= found, "programs are found at all"
    assert found == set(declared_tools()), f"{TOOLS} has each program that is used, and no other"


def test_tests_ask_whether_a_program_is_there():
    """If a program is missing, the fixture `tool` skips a test with a reason; a bare name fails."""
    tests = [name for name in sources("tests/") if "/test_" in name or "/conftest" in name]
    bare = {name: programs(name, STARTS) for name in tests if "/cluster/" not in name}
    # A checkout implies git.
    assert not {name: found for name, found in bare.items() if found - {"git"}}


def test_make_brings_the_tools_before_tests_run():
    makefile, script = text("Makefile"), text(".ci/tools")
    for target in ("test", "test-all"):
        (first,) = re.findall(rf"(?m)^{target}:.*\n\t(.*)\n", makefile)
        assert "tools" in first.split()
        assert "PYTEST" not in first
    assert ".ci/tools $(BIN)" in makefile
    assert "<.ci/tools.txt" in script

"""The script that carries the Dockerfile out knows all that stands in it."""

import shlex
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load(path: Path) -> ModuleType:
    loader = SourceFileLoader("prove_image", str(path))
    spec = spec_from_loader("prove_image", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules["prove_image"] = module  # as its dataclasses ask
    loader.exec_module(module)
    return module


script = load(ROOT / "deploy" / "prove-image")

COPIES = {"COPY", "ENV", "RUN", "USER", "WORKDIR"}
STARTS = {"CMD", "ENTRYPOINT", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL"}


def test_continued_lines_are_joined_and_comments_left_out():
    text = "# why\nFROM one AS a\n\nRUN first \\\n# meanwhile\n && second\nuser me\n"
    assert [(word, rest.split()) for word, rest in script.instructions(text)] == [
        ("FROM", ["one", "AS", "a"]),
        ("RUN", ["first", "&&", "second"]),
        ("USER", ["me"]),
    ]


def test_the_dockerfile_holds_nothing_that_cannot_be_carried_out():
    found = list(script.instructions((ROOT / "Dockerfile").read_text("utf-8")))
    assert {word for word, _ in found} <= COPIES | STARTS
    for _, rest in (each for each in found if each[0] == "COPY"):
        *sources, _ = (word for word in shlex.split(rest) if not word.startswith("--"))
        if "--from" not in rest:
            assert all(script.let_in(source) and (ROOT / source).exists() for source in sources)


def test_the_build_context_is_what_dockerignore_lets_in():
    assert script.let_in("allocator")
    assert not script.let_in("tests")
    assert not script.let_in(".git")

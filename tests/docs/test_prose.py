"""Comments, docstrings and messages of all sources are in plain English, as the pages are."""

from pathlib import Path

import pytest

from tests.docs.prose import phrases, prose_of_python, prose_of_slashes
from tests.test_tidy import tracked

ROOT = Path(__file__).resolve().parents[2]

READERS = {
    ".py": prose_of_python,
    **dict.fromkeys((".cpp", ".hpp", ".proto"), prose_of_slashes),
}

WRITTEN_BY_US = ("allocator", "deploy", "examples", "mesos-module", "proto", "tools")


def found_in(path: Path) -> list[str]:
    """List phrases in a file, each with its place."""
    pieces = READERS[path.suffix](path.read_text("utf-8"))
    name = path.relative_to(ROOT)
    return [f"{name}:{each.line}: {found}" for each in pieces for found in phrases(each.text)]


@pytest.mark.parametrize("directory", WRITTEN_BY_US)
def test_sources_have_none_of_the_phrases(directory: str):
    names = [name for name in tracked() if name.startswith(f"{directory}/") and "_pb2" not in name]
    paths = [ROOT / name for name in names if Path(name).suffix in READERS]
    assert paths
    found = [line for path in paths for line in found_in(path)]
    assert not found, "\n".join(found)


def test_phrases_are_found_in_comments_docstrings_and_messages_of_python():
    source = '''
"""Tell everybody."""
def wait():
    # Wait here, for nobody
    # else may.
    raise ValueError(f"{wait} in vain: nobody's fault")
'''
    found = [each for piece in prose_of_python(source) for each in phrases(piece.text)]
    words = ("everybody", "nobody else may", "in vain", "nobody's fault")
    assert len(found) == len(words)
    assert all(any(word in each for each in found) for word in words)


def test_phrases_are_found_in_comments_of_cpp():
    source = '// Asks whoever\n// is there.\nint a;  // in vain\nconst char* b = "http://anew";\n'
    found = [each for piece in prose_of_slashes(source) for each in phrases(piece.text)]
    assert ["whoever is there" in found[0], "in vain" in found[1]] == [True, True]
    assert len(found) == 2


def test_names_in_backticks_are_no_prose():
    assert not phrases("Returns `NOBODY` if no agent is left; ``in vain`` is a name, too.")

"""The sidecar accepts all that the module forwards: their tables of bounds agree."""

import re
from pathlib import Path

from allocator.core import bounds
from allocator.server.config import Config
from allocator.wire.codec.encode import GANG_DECISIONS_MAX
from laboratory import resources

MODULE = Path(__file__).resolve().parents[3] / "mesos-module"
TABLE = MODULE / "brain/user_input/bounds.hpp"
_BOUND = re.compile(r"constexpr size_t (\w+)\s*=\s*([^;]+);")


def of_module() -> dict[str, int]:
    """The module's bounds: expressions of numbers and of earlier bounds."""
    found: dict[str, int] = {}
    for name, text in _BOUND.findall(TABLE.read_text("utf-8")):
        words = re.sub(r"size_t\((\d+)\)", r"\1", text)
        words = re.sub(r"[A-Z_]{3,}", lambda each: str(found[each[0]]), words)
        assert re.fullmatch(r"[\d\s/*<+-]+", words), (name, text)
        found[name] = eval(words.replace("/", "//"))  # only numbers and operators are left
    return found


def test_the_whole_table_of_the_module_is_read():
    declared = TABLE.read_text("utf-8").count("constexpr size_t")
    assert len(of_module()) == declared > 20


def test_the_sidecars_limits_are_not_below_the_modules():
    module = of_module()
    pairs = {
        "LABELS_MAX": bounds.LABELS_MAX,
        "ROLES_OF_FRAMEWORK_MAX": bounds.ROLES_OF_FRAMEWORK_MAX,
        "ALTERNATIVES_MAX": bounds.ALTERNATIVES_MAX,
        "ALTERNATIVE_NAMES_MAX": bounds.DEMAND_NAMES_MAX,
        "REQUESTS_MAX": bounds.REQUESTS_MAX,
        "REQUEST_RESOURCES_MAX": bounds.DEMAND_NAMES_MAX,
        "ASIDE_ROWS_MAX": bounds.ROWS_MAX,
        "ASIDE_TEXT_BYTES_MAX": bounds.ROW_TEXT_MAX,
    }
    assert {name: most for name, most in pairs.items() if module[name] > most} == {}
    # Bounds of the same thing are equal on both sides.
    for name in ("LABELS_MAX", "ALTERNATIVES_MAX", "REQUESTS_MAX", "REQUEST_RESOURCES_MAX"):
        assert module[name] == pairs[name], name


def test_the_limits_of_the_configuration_hold_what_the_module_lets_through():
    module, limits = of_module(), Config().limits
    assert module["ROLES_MAX"] + module["USED_ROLES_MAX"] < limits.roles
    assert module["ROLE_DEPTH_MAX"] == limits.role_depth
    assert 2 * module["PAIRS_OF_PRINCIPAL_MAX"] == limits.clients


def test_an_agent_of_one_object_is_counted_alike_on_both_sides():
    # The module must not report an amount as large as the marker of an unknown one.
    assert of_module()["OBJECT_AMOUNT_MAX"] == bounds.CAPACITY_MAX - 1


def test_no_gang_is_named_that_the_module_would_refuse():
    """It would end the session."""
    declared = (MODULE / "session/decisions.hpp").read_text("utf-8")
    assert f"GANG_DECISIONS_MAX = {GANG_DECISIONS_MAX};" in declared


def test_the_emulated_master_shares_kinds_as_the_module_does():
    module = of_module()
    assert module["KINDS_NAMED_EIGHTHS"] == resources.NAMED_EIGHTHS
    assert module["KINDS_RESERVED_EIGHTHS"] == resources.RESERVED_EIGHTHS
    assert module["KINDS_FREE_OF_OWN"] == resources.FREE_OF_OWN

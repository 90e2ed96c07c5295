"""What is compiled, and how often: loops are compiled as a whole, not their parts."""

from typing import Any, cast

import numba
import numpy as np
from numba.core.registry import cpu_target

from allocator.core.numba.compiled import compiled_here, entry, part


@part()
def _shifted(values: np.ndarray, by: int) -> np.ndarray:
    result = np.full(len(values), by, np.int64)
    for i in range(len(values)):
        result[i] += values[i]
    return result


@entry(cache=False)
def _shift_twice(values: np.ndarray, by: int) -> np.ndarray:
    return _shifted(_shifted(values, by), by)


@numba.njit
def _of_a_user(values: np.ndarray) -> np.ndarray:
    """As in a user's policy, which calls numba functions that our loops call, too."""
    return np.full(len(values), 7, np.int64) + values


def _has_machine_code(loop: Any) -> bool:
    engine = cpu_target.target_context.codegen()._engine
    (signature,) = loop.dispatcher.overloads
    name = loop.dispatcher.overloads[signature].fndesc.llvm_func_name
    return engine.is_symbol_defined(name)


def test_only_loops_become_machine_code_and_others_may_share_their_parts():
    values = np.arange(3)
    with compiled_here():
        assert _shift_twice(values, 2).tolist() == [4, 5, 6]
    assert _has_machine_code(_shift_twice)
    assert not _has_machine_code(_shifted)
    assert _of_a_user(values).tolist() == [7, 8, 9]
    # A user's function that calls one of our parts.
    through = numba.njit(lambda some: _shifted_dispatcher(some, 1))
    assert through(values).tolist() == [1, 2, 3]


_shifted_dispatcher = cast("Any", _shifted).dispatcher


@part()
def _added(values: np.ndarray, by: int) -> int:
    total = 0
    for i in range(len(values)):
        total += values[i] + by
    return total


@part(forceinline=True)
def _added_inline(values: np.ndarray, by: int) -> int:
    return _added(values, by)


@entry(cache=False)
def _add(values: np.ndarray, by: int) -> int:
    return _added_inline(values, by)


def _is_always_inlined(loop: Any) -> bool:
    (compiled,) = loop.dispatcher.overloads.values()
    code = compiled.library.get_llvm_str()
    (define,) = (
        line
        for line in code.splitlines()
        if line.startswith("define") and f"@{compiled.fndesc.llvm_func_name}(" in line
    )
    group = define.split(") ")[-1].split()[0]
    return f"attributes {group} = {{ alwaysinline" in code


def test_parts_are_inlined_only_where_they_ask_for_it():
    """Not because their caller does: the code would grow, and compile for minutes."""
    with compiled_here():
        assert _add(np.arange(3), 2) == 9
    assert _is_always_inlined(_added_inline)
    assert not _is_always_inlined(_added)

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

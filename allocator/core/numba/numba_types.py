"""Adapts numba: how loops are compiled, and a type for pointers to tuples (`as_pointer`).

Imported when the first loop is compiled.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, codegen, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_global,
    signature,
)
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
)

from allocator.core.numba.pointers import as_pointer, keep_alive

_ADDRESS = ir.IntType(8).as_pointer()


_entries: set[str] = set()
"""Names of the functions that Python calls."""

_compiling: ContextVar[bool] = ContextVar("_compiling", default=False)
"""Whether a loop of this package is being compiled."""


class NotCachedError(Exception):
    """A loop is not in the cache, and must not be compiled now."""


def njit(
    function: Callable[..., Any],
    options: dict[str, Any],
    cache_may_fail: Callable[[], bool],
    may_compile: Callable[[], bool],
) -> Any:  # noqa: ANN401
    """Make numba's dispatcher of a function.

    `cache_may_fail`: called if the cache cannot be used; returns whether to continue without it.
    `may_compile`: called if the cache has no code for a call; returns whether to compile. If not,
        the call raises NotCachedError.
    """
    # A function with a wrapper for Python is an entry.
    if not options.get("no_cpython_wrapper"):
        _entries.add(function.__qualname__)
    dispatcher = numba.njit(**options)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT is set
        return np.errstate(all="ignore")(function)  # as in compiled code
    compiler = getattr(dispatcher, "_compiler", None)
    if compiler is not None:
        compiler.compile = _ours(compiler.compile, may_compile)
    # A later numba may store its cache elsewhere; then errors of the cache are raised.
    cache = getattr(dispatcher, "_cache", None)
    for name in ("load_overload", "save_overload") if cache is not None else ():
        setattr(cache, name, _tolerant(getattr(cache, name), cache_may_fail))
    return dispatcher


def _ours(
    compile_function: Callable[..., Any], may_compile: Callable[[], bool]
) -> Callable[..., Any]:
    """Wrap numba's compilation: refuse it if not allowed, and mark it as one of this package."""

    def compile_ours(*arguments: Any) -> Any:  # noqa: ANN401
        if not may_compile():
            raise NotCachedError
        token = _compiling.set(True)
        try:
            return compile_function(*arguments)
        finally:
            _compiling.reset(token)

    return compile_ours


def _tolerant(
    use_cache: Callable[..., Any], cache_may_fail: Callable[[], bool]
) -> Callable[..., Any]:
    """Wrap an access to the cache: a tolerated failure is a miss, or saves nothing."""

    def use(*arguments: Any) -> Any:  # noqa: ANN401
        try:
            return use_cache(*arguments)
        except OSError:
            if not cache_may_fail():
                raise
            return None

    return use


def _generate_code_once() -> None:
    """Optimise parts, and generate their machine code, only within the loops that call them.

    Numba would do both for each part and each of its own functions separately, and again within
    every function that calls them. If a later numba does this elsewhere, only compiling takes
    longer.
    """
    library: Any = codegen.JITCodeLibrary
    optimise = getattr(library, "_optimize_final_module", None)
    finalize = getattr(library, "_finalize_final_module", None)
    set_env = getattr(codegen.JITCPUCodegen, "set_env", None)
    if optimise is None or finalize is None or set_env is None:
        return

    def is_part(self: Any) -> bool:  # noqa: ANN401
        return (
            _compiling.get()
            and self.name not in _entries
            and getattr(self, "_object_caching_enabled", False)
        )

    def optimise_loops(self: Any) -> None:  # noqa: ANN401
        if not is_part(self):
            optimise(self)

    def finalize_loops(self: Any) -> None:  # noqa: ANN401
        if not is_part(self):
            finalize(self)
            return
        self._finalize_dynamic_globals()
        self._finalized = True

    def set_env_of_loops(self: Any, name: str, env: Any) -> None:  # noqa: ANN401
        # A part without machine code of its own needs no environment.
        if self._engine.get_global_value_address(name):
            set_env(self, name, env)

    library._optimize_final_module = optimise_loops  # noqa: SLF001 - see above
    library._finalize_final_module = finalize_loops  # noqa: SLF001
    codegen.JITCPUCodegen.set_env = set_env_of_loops  # type: ignore[method-assign]


_generate_code_once()


class TuplePointer(types.Type):
    """Type of a pointer to a named tuple."""

    def __init__(self, fields: types.BaseNamedTuple) -> None:
        self.fields = fields
        # Numba distinguishes types by their names.
        super().__init__(f"TuplePointer({fields})")


@register_model(TuplePointer)
class _LentModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: TuplePointer) -> None:  # noqa: ANN401
        super().__init__(dmm, fe_type, _ADDRESS)


@infer_getattr
class _LentAttributes(AttributeTemplate):
    key = TuplePointer

    def generic_resolve(  # type: ignore[override]
        self,
        of_type: Any,  # noqa: ANN401
        name: str,
    ) -> Any:  # noqa: ANN401
        """Return the type of a field; a nested tuple becomes a pointer as well."""
        if name not in of_type.fields.fields:
            return None
        field = of_type.fields[of_type.fields.fields.index(name)]
        return TuplePointer(field) if isinstance(field, types.BaseNamedTuple) else field


@lower_getattr_generic(TuplePointer)
def _read_field(
    context: Any,  # noqa: ANN401
    builder: Any,  # noqa: ANN401
    of_type: Any,  # noqa: ANN401
    pointer: Any,  # noqa: ANN401
    name: str,
) -> Any:  # noqa: ANN401
    index = of_type.fields.fields.index(name)
    field = of_type.fields[index]
    layout = context.data_model_manager[of_type.fields].get_data_type().as_pointer()
    place = cgutils.gep_inbounds(builder, builder.bitcast(pointer, layout), 0, index)
    # The pointer to a nested tuple is its address.
    if isinstance(field, types.BaseNamedTuple):
        return builder.bitcast(place, _ADDRESS)
    # Load any other value as a borrowed reference: the function that made the tuple owns it.
    model = context.data_model_manager[field]
    value = model.from_data(builder, _load(builder, place))
    return impl_ret_borrowed(context, builder, field, value)


def _load(builder: Any, place: Any) -> Any:  # noqa: ANN401
    """Load constant data number by number, which the compiler optimises best."""
    kind = place.type.pointee
    # A single number: the compiler may reuse an earlier load.
    if not isinstance(kind, ir.LiteralStructType):
        loaded = builder.load(place)
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded
    result = ir.Constant(kind, ir.Undefined)
    for index in range(len(kind.elements)):
        part = _load(builder, cgutils.gep_inbounds(builder, place, 0, index))
        result = builder.insert_value(result, part, index)
    return result


@infer_global(as_pointer)
class _AsPointerTemplate(AbstractTemplate):
    def generic(self, arguments: Any, _keywords: Any) -> Any:  # noqa: ANN401
        (fields,) = arguments
        return signature(TuplePointer(fields), fields)


@lower_builtin(as_pointer, types.BaseNamedTuple)
def _write_down(context: Any, builder: Any, call: Any, arguments: Any) -> Any:  # noqa: ANN401
    """Generate code of `as_pointer`: store the tuple on the stack, and return its address."""
    data = context.data_model_manager[call.args[0]].as_data(builder, arguments[0])
    place = cgutils.alloca_once(builder, data.type)
    builder.store(data, place)
    # Hide from the compiler that the returned address is the one written to, so that it may assume
    # that the values there never change.
    same = ir.FunctionType(_ADDRESS, [_ADDRESS])
    written = builder.bitcast(place, _ADDRESS)
    return builder.asm(same, "", "=r,0,~{memory}", [written], side_effect=True)


@infer_global(keep_alive)
class _KeepAliveTemplate(AbstractTemplate):
    def generic(self, arguments: Any, _keywords: Any) -> Any:  # noqa: ANN401
        (fields,) = arguments
        return signature(types.none, fields)


@lower_builtin(keep_alive, types.BaseNamedTuple)
def _touch(context: Any, _builder: Any, _call: Any, _arguments: Any) -> Any:  # noqa: ANN401
    """Generate no code for `keep_alive`: naming the arrays as arguments keeps them alive."""
    return context.get_dummy_value()

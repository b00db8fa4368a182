"""Parts and programs: each piece of a program is translated once, however deep and however often it is called.

Plain numba optimises and translates every function by itself and links the result into each caller, where all of it is
optimised and translated again: a function seven calls deep, seven times. Here a function that functions call is a
*part*: its LLVM module is neither optimised nor translated, only kept. A function that Python calls is a *program*: all
parts that it needs are linked into it, each once, and LLVM then optimises the whole once and inlines as it sees fit.

This extends six classes of numba, of which the names below are private or likely to move. If one of them is missing,
`AVAILABLE` is False and `kernels.py` falls back to plain numba: the same bits, and three times the compilation time.
"""

from __future__ import annotations

from typing import Any

try:
    from numba.core import types
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
    from numba.core.compiler_machinery import register_pass
    from numba.core.registry import CPUDispatcher
    from numba.core.typed_passes import NativeLowering

    AVAILABLE = True
except ImportError:  # pragma: no cover - another version of numba
    AVAILABLE = False

OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "forceinline": False,  # LLVM decides
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
"""How kernels are compiled: the GIL released, IEEE arithmetic, and no reference counting (see `kernels.py`)."""

if AVAILABLE:

    class _PartLibrary(JITCodeLibrary):
        """The module of a part: kept as it was lowered, to be linked into programs."""

        def add_llvm_module(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout
            self._final_module.link_in(ll_module)

        def finalize(self) -> None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"  # a program keeps what it calls and did not inline
            self._finalized = True

        def _get_module_for_linking(self) -> Any:
            return self._final_module

    class _ProgramLibrary(JITCodeLibrary):
        """The module of a program, with all parts that it needs, each of them once."""

        def finalize(self) -> None:
            needed: dict[Any, None] = {}
            pending = list(self._linking_libraries)
            while pending:
                library = pending.pop()
                if library not in needed:
                    needed[library] = None
                    if isinstance(library, _PartLibrary):
                        pending.extend(library._linking_libraries)
            self._linking_libraries = list(needed)
            super().finalize()

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _PartLowering(NativeLowering):
        """Lower a function and leave it at that: a part has no machine code and cannot be called from Python."""

        _name = "hedgerow_part_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            done: bool = super().run_pass(state)
            lowered = state["cr"]
            state.library._ensure_finalized()
            key = object()  # what numba looks an implementation up by
            state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
            state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=key, env=lowered.env)
            return done

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _ProgramLowering(NativeLowering):
        """Lower a function into a library that links the parts as late as possible."""

        _name = "hedgerow_program_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = _ProgramLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            done: bool = super().run_pass(state)
            return done

    class _PartCompiler(CompilerBase):
        lowering: Any = _PartLowering

        def define_pipelines(self) -> list[Any]:
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager.passes = [
                (self.lowering, text) if step is NativeLowering else (step, text) for step, text in manager.passes
            ]
            manager.finalize()
            return [manager]

    class _ProgramCompiler(_PartCompiler):
        lowering = _ProgramLowering

    class Part(CPUDispatcher):
        """A kernel as other kernels see it."""

        def __init__(self, function: Any) -> None:
            super().__init__(function, {}, {**OPTIONS, "no_cpython_wrapper": True}, pipeline_class=_PartCompiler)

        def get_call_template(self, args: Any, kws: Any) -> Any:
            # A literal 0 and a number are one signature; else everything that is called with either is compiled twice.
            wide = [types.unliteral(kind) for kind in args]
            return super().get_call_template(wide, {name: types.unliteral(kind) for name, kind in kws.items()})

        def add_overload(self, cres: Any) -> None:
            self.overloads[tuple(cres.signature.args)] = cres

    class Program(CPUDispatcher):
        """A kernel as Python sees it; kernels that call it take its part."""

        def __init__(self, function: Any) -> None:
            super().__init__(function, {}, OPTIONS, pipeline_class=_ProgramCompiler)
            self.part = Part(function)

        def get_call_template(self, args: Any, kws: Any) -> Any:
            return self.part.get_call_template(args, kws)

        def get_overload(self, sig: Any) -> Any:
            return self.part.get_overload(sig)

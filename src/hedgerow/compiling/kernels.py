"""`kernel` and `shared_kernel`: the two decorators that compile a function, and how compiled functions are linked.

A kernel takes bundles, records, arrays and numbers, ten arguments at most.

Plain numba optimises and translates every function by itself and links the result into each caller, where all of it is
optimised and translated again: a function seven calls deep, seven times. Here a function that other kernels call is a
*part*: its LLVM module is kept as it is, neither optimised nor translated. A function that Python calls is a *program*:
it links every part that it needs once, and LLVM then optimises the whole once and inlines as it sees fit. A large
function that several programs need is a *shared* program: they call it by its address, under a symbol that its sources
determine. When a program is loaded from a file, the shared programs that it calls are loaded or compiled first.

The classes here extend five classes of numba; some of the names that they use are private or may move. With an untested
version of numba, kernels are compiled by plain numba: the same bits, and three times the compilation time.

Numba's cache notices a change in the file of a kernel, not in the files of the kernels that it calls. Compiled code is
therefore kept in a folder (`cache.py`) named after a hash of numba's version, of the module's own source and of every
module of this package that it imports, directly or not. A change in any of them makes a new folder, a change elsewhere
does not. Imports inside functions do not count.

Kernels own no memory: they work on arrays of their caller, who keeps them alive. Numba's reference counting took more
than half of a small projection and is therefore off (`_nrt=False`). The compiler refuses a kernel that allocates, even
the temporary of `a[:] = b` for two arrays, with "NRT required but not enabled". Results are numbers, or tuples of them.

Set NUMBA_CACHE_DIR to move the cache, NUMBA_DISABLE_JIT=1 to run every kernel as plain Python.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import config
from numpy.typing import NDArray

from hedgerow.compiling.bundle_types import type_of_bundle  # and numba learns what bundles are
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.cache import KernelCache

try:
    from llvmlite import binding as llvm
    from numba import version_info
    from numba.core import types
    from numba.core.cgutils import normalize_ir_text
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags, _LowerResult
    from numba.core.compiler_machinery import register_pass
    from numba.core.funcdesc import ExternalFunctionDescriptor
    from numba.core.registry import CPUDispatcher
    from numba.core.typed_passes import NativeLowering, NopythonRewrites
    from numba.core.typing.templates import make_concrete_template
    from numba.core.typing.typeof import typeof
    from numba.core.untyped_passes import InlineClosureLikes

    AVAILABLE = (0, 64) <= version_info.short < (0, 69)
except ImportError:  # pragma: no cover - another version of numba
    AVAILABLE = False
"""Whether this module was tested with the installed version of numba."""

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "forceinline": False,  # LLVM decides
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
"""How kernels are compiled: the GIL released, IEEE arithmetic, and no reference counting."""

_PACKAGE = Path(__file__).parents[1]


@cache
def _imports(source: Path) -> tuple[Path, ...]:
    """The files of this package that `source` imports at its top level."""
    found = []
    for node in ast.parse(source.read_bytes()).body:
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            root, *path = name.split(".")
            file = _PACKAGE.joinpath(*path).with_suffix(".py")
            if root == _PACKAGE.name and path and file.is_file():
                found.append(file)
    return tuple(found)


def sources_of(module: Path) -> tuple[Path, ...]:
    """`module` and every file of this package that it depends on, sorted."""
    closed: set[Path] = set()
    pending = [module]
    while pending:
        source = pending.pop()
        if source not in closed:
            closed.add(source)
            pending.extend(_imports(source))
    return tuple(sorted(closed))


@cache
def cache_name(module: Path) -> str:
    """The folder for compiled kernels of exactly these sources."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sources_of(module):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return f"{module.stem}-{digest.hexdigest()[:16]}"


def kernel(function: F) -> F:
    """Compile with caching, strict IEEE arithmetic and the GIL released; no allocation, no array as a result."""
    return _compiled(function, None)


def shared_kernel(example: Any) -> Callable[[F], F]:
    """Compile a large kernel once for all its callers. `example` is a value of its result."""
    return lambda function: _compiled(function, example)


def _compiled(function: F, example: Any) -> F:
    if config.DISABLE_JIT:
        return function
    folder = cache_name(Path(function.__code__.co_filename))  # named now, when the sources are read
    compiled: Any
    if not AVAILABLE:
        compiled = _plainly(function)
    else:
        compiled = Program(function) if example is None else Shared(function, folder, example)
    compiled._cache = KernelCache(function, folder)  # as `cache=True` would set numba's own cache
    return cast(F, compiled)


def _plainly(function: F) -> Any:
    """Compile with plain numba, each function by itself, if its version is not one of the tested."""
    return numba.jit(**{name: value for name, value in OPTIONS.items() if name != "no_cfunc_wrapper"})(function)


if AVAILABLE:

    class _Flags(Flags):
        """Options, compared by those that are set: numba looks up every single one, 10^5 times in a compilation."""

        def __hash__(self) -> int:
            return len(self._values)

        def __eq__(self, other: object) -> bool:
            return self._values == other._values if isinstance(other, _Flags) else super().__eq__(other)

    class _PartLibrary(JITCodeLibrary):
        """The module of a part: kept as it was lowered, to be linked into programs."""

        def add_ir_module(self, ir_module: Any) -> None:
            module = llvm.parse_assembly(normalize_ir_text(str(ir_module)))  # the programs verify it
            module.data_layout = self._codegen._data_layout
            self._final_module.link_in(module)

        def finalize(self) -> None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"  # a program keeps it if it calls it without inlining
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

        def _finalize_final_module(self) -> None:
            for order in self._reload_init:  # load or compile first what this program calls
                if isinstance(order, partial) and order.func is _publish:
                    order()
            super()._finalize_final_module()

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _PartLowering(NativeLowering):
        """Lower a function and stop there: a part has no machine code and cannot be called from Python."""

        _name = "hedgerow_part_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = state.flags.no_cpython_wrapper = True
            done: bool = super().run_pass(state)
            lowered = state["cr"]
            state.library._ensure_finalized()
            key = object()  # the key under which numba looks up an implementation
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

    _NEEDLESS = (InlineClosureLikes, NopythonRewrites)
    """Passes for closures and for expressions of whole arrays, of which kernels have none."""

    class _PartCompiler(CompilerBase):
        lowering: Any = _PartLowering

        def define_pipelines(self) -> list[Any]:
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager.passes = [
                (self.lowering, text) if step is NativeLowering else (step, text)
                for step, text in manager.passes
                if step not in _NEEDLESS
            ]
            manager.finalize()
            return [manager]

    class _ProgramCompiler(_PartCompiler):
        lowering = _ProgramLowering

    class LinkedKernel(CPUDispatcher):
        """A kernel as other kernels see it."""

        def __init__(self, function: Any) -> None:
            super().__init__(function, {}, OPTIONS, pipeline_class=_PartCompiler)
            self._compiler._customize_flags = _Flags

        def get_call_template(self, args: Any, kws: Any) -> Any:
            # A literal 0 and a number share one signature; otherwise numba compiles every callee for both.
            wide = [types.unliteral(kind) for kind in args]
            return super().get_call_template(wide, {name: types.unliteral(kind) for name, kind in kws.items()})

        def add_overload(self, cres: Any) -> None:
            from hedgerow.compiling.warmup import PART, announcer

            self.overloads[tuple(cres.signature.args)] = cres
            announcer.advance(PART)

    class Program(CPUDispatcher):
        """A kernel as Python sees it; kernels that call it take its part."""

        def __init__(self, function: Any) -> None:
            super().__init__(function, {}, OPTIONS, pipeline_class=_ProgramCompiler)
            self._compiler._customize_flags = _Flags
            self._compiler.compile = self._announced(self._compiler.compile)
            self.part = LinkedKernel(function)

        def _announced(self, compiled: Any) -> Any:
            def announced(args: Any, return_type: Any) -> Any:
                # Imported here, because every top-level import enters the name of every kernel's folder.
                from hedgerow.compiling.warmup import announcer

                with announcer.program(self):
                    return compiled(args, return_type)

            return announced

        def typeof_pyval(self, val: Any) -> Any:
            """The type of an argument; a bundle knows its own, which saves more than a microsecond a call."""
            return type_of_bundle(val) if isinstance(val, Bundle) else super().typeof_pyval(val)

        def get_call_template(self, args: Any, kws: Any) -> Any:
            return self.part.get_call_template(args, kws)

        def get_overload(self, sig: Any) -> Any:
            return self.part.get_overload(sig)

    class Shared(Program):
        """A program that kernels call too, by its address."""

        def __init__(self, function: Any, version: str, example: Any) -> None:
            """`version` stands for the sources that the function depends on, `example` is a value of its result."""
            super().__init__(function)
            self.version, self.result = version, typeof(example)
            self._stubs: dict[Any, object] = {}

        def get_call_template(self, args: Any, kws: Any) -> Any:
            """The signature, without compiling; the code that needs the address compiles, as late as possible."""
            signature = self.result(*map(types.unliteral, args))
            template = make_concrete_template(f"Shared({self.py_func.__name__})", self.py_func.__name__, [signature])
            return template, None, signature.args, kws

        def get_overload(self, sig: Any) -> Any:
            if sig not in self._stubs:
                self._stubs[sig] = self._stub(sig)
            return self._stubs[sig]

        def _stub(self, args: Any) -> object:
            """What callers link: a declaration, and a request to publish the address before they are loaded."""
            function, key = self.py_func, object()
            library = _PartLibrary(self.targetctx.codegen(), f"shared.{function.__qualname__}")
            library.finalize()
            library._reload_init.add(partial(_publish, function.__module__, function.__qualname__, args))
            declaration = ExternalFunctionDescriptor(self._symbol(args), self.result, args)
            self.targetctx.insert_user_function(key, declaration, [library])
            return key

        def _symbol(self, args: Any) -> str:
            digest = hashlib.sha256(f"{self.version} {args}".encode()).hexdigest()[:16]
            return f"hedgerow_{self.py_func.__qualname__}_{digest}"

        def publish(self, args: Any) -> None:
            """Make the compiled function known to the linker."""
            from hedgerow.compiling import warmup

            if args not in self.overloads:
                warmup.wait(self.py_func.__name__, lambda: not self._cache.is_empty)
            self.compile(args)
            compiled = self.overloads[args]
            address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
            if not address or compiled.signature.return_type != self.result:
                raise TypeError(f"{self.py_func.__qualname__} returns {compiled.signature.return_type}: {address}")
            llvm.add_symbol(self._symbol(args), address)

    def _publish(module: str, name: str, args: Any) -> None:
        getattr(import_module(module), name).publish(args)


@kernel
def copy_into(source: NDArray[Any], target: NDArray[Any]) -> None:
    """target[:] = source for arrays (n,). Written out: the assignment would make a temporary copy in compiled code."""
    for i in range(len(source)):
        target[i] = source[i]

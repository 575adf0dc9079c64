"""How kernels are compiled: as little as a fit needs, for a newcomer waits for it.

What other kernels call, and Python never, needs no wrappers and no machine code of its own. And
nothing of what numba makes on the way is garbage before it is done: no use to look for it.
How to write kernels: docs/design/kernels.md.
"""

import gc
import threading
from typing import Any

from numba._dynfunc import make_function
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _PartLibrary(JITCodeLibrary):
    """Code that callers link in and optimise with their own: by itself it is neither optimised nor
    translated to machine code, which would be thrown away.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    """Numba's own, into a library of parts."""

    _name = "isingkit_part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Whether code was changed: always."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        module = lowered.fndesc.lookup_module()
        # callers look it up by this object; 0 is where its machine code would be
        key = make_function(module, lowered.fndesc.qualname, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


class _PartCompiler(CompilerBase):
    """Numba's own compiler, but for the pass that makes a library."""

    def define_pipelines(self) -> list[Any]:
        """The one for functions without Python objects."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_PartLowering if one is NativeLowering else one, what) for one, what in passes.passes
        ]
        passes.finalize()
        return [passes]


class _WithoutCollection(event.Listener):
    """Python's collector of cyclic garbage rests while numba compiles: a tenth of its time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_compiling = 0
        self._was_enabled = False

    def on_start(self, event: Any) -> None:
        """Numba has begun with a kernel, or with one that it calls."""
        with self._lock:
            if self._n_compiling == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._n_compiling += 1

    def on_end(self, event: Any) -> None:
        """Numba has done with it."""
        with self._lock:
            self._n_compiling -= 1
            if self._n_compiling == 0 and self._was_enabled:
                gc.enable()


event.register("numba:compile", _WithoutCollection())

KERNEL = {"cache": True, "nogil": True, "fastmath": False, "no_cfunc_wrapper": True}
PART = KERNEL | {"cache": False, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
# loops that become vectors: a division that may raise is none; sums may be taken in any order
VECTOR_PART = PART | {"error_model": "numpy", "fastmath": {"contract", "reassoc"}}

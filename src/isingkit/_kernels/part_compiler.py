"""KernelCompiler and PartCompiler: numba's compiler, for kernels and for what only they call.

They reach into numba, and `flags.py` uses them only with the versions they were tried with: others
compile as they compile everything, which takes a newcomer a few seconds longer.
"""

from typing import Any

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import register_pass
from numba.core.targetconfig import TargetConfig
from numba.core.typed_passes import NativeLowering

_DEFAULTS = {name: option.default for name, option in Flags.options.items()}


class _QuickFlags(Flags):
    """Numba's own, compared quickly: it does so for every call that it types, and asks one flag
    after the other.
    """

    def values(self) -> dict[str, Any]:
        """Of all flags, by name."""
        return _DEFAULTS | self._values

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TargetConfig):
            return bool(self.values() == other.values())
        return NotImplemented

    def __hash__(self) -> int:
        return _HASH


_HASH = hash(Flags())  # numba's takes the names alone: it is the same for all


class KernelCompiler(Compiler):
    """Numba's own compiler, with quick flags."""

    def __init__(
        self,
        typingctx: Any,
        targetctx: Any,
        library: Any,
        args: Any,
        return_type: Any,
        flags: Flags,
        locals: Any,
    ) -> None:
        quick = _QuickFlags(flags)
        super().__init__(typingctx, targetctx, library, args, return_type, quick, locals)


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


class PartCompiler(KernelCompiler):
    """The same, but for the pass that makes a library."""

    def define_pipelines(self) -> list[Any]:
        """The one for functions without Python objects."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_PartLowering if one is NativeLowering else one, what) for one, what in passes.passes
        ]
        passes.finalize()
        return [passes]

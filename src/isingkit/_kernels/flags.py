"""How kernels are compiled. What other kernels call, and Python never, needs no wrappers."""

KERNEL = {"cache": True, "nogil": True, "fastmath": False, "no_cfunc_wrapper": True}
PART = KERNEL | {"no_cpython_wrapper": True}
# loops that become vectors: a division that may raise is none; sums may be taken in any order
VECTOR_PART = PART | {"error_model": "numpy", "fastmath": {"contract", "reassoc"}}

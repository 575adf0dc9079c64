"""Parts of kernels, as tests call them."""

from numba import njit


def kernel_of(part):
    """A kernel that does what a part does: Python crashes that calls a part itself."""

    def kernel(*arguments):
        return part(*arguments)

    return njit(kernel)

"""Vector code in LLVM's own words, for kernels that numba's plain loops do not make vectors of."""

from llvmlite import ir
from numba.core import cgutils


class Vectors:
    """LLVM's vector operations on `lanes` 64-bit words, whatever vectors the processor has."""

    def __init__(self, context, builder, signature, args, lanes):
        self.context, self.builder, self.signature, self.args, self.lanes = (
            context,
            builder,
            signature,
            args,
            lanes,
        )
        self.words = ir.VectorType(ir.IntType(64), lanes)

    def data(self, position):
        """Pointer to the first entry of an array argument."""
        proxy = cgutils.create_struct_proxy(self.signature.args[position])
        return proxy(self.context, self.builder, self.args[position]).data

    def size(self, number):
        return ir.Constant(ir.IntType(64), number)

    def constant(self, number, kind=None):
        return ir.Constant(kind or self.words, [number] * self.lanes)

    def at(self, array, place, kind=None):
        """Pointer to a vector that starts at a place of a flat array."""
        return self.builder.bitcast(
            self.builder.gep(array, [place]), (kind or self.words).as_pointer()
        )

    def load(self, pointer):
        return self.builder.load(pointer, align=1)

    def broadcast(self, scalar, kind=None):
        """A scalar in every lane."""
        kind = kind or self.words
        one = self.builder.insert_element(
            ir.Constant(kind, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def rotated(self, word, by):
        return self.builder.or_(
            self.builder.shl(word, self.constant(by)),
            self.builder.lshr(word, self.constant(64 - by)),
        )

    def xoshiro(self, s0, s1, s2, s3):
        """A random word a lane and the next state (xoshiro256++, one generator a lane)."""
        xor = self.builder.xor
        random = self.builder.add(self.rotated(self.builder.add(s0, s3), 23), s0)
        shifted = self.builder.shl(s1, self.constant(17))
        s2 = xor(s2, s0)
        s3 = xor(s3, s1)
        s1 = xor(s1, s2)
        s0 = xor(s0, s3)
        return random, (s0, s1, xor(s2, shifted), self.rotated(s3, 45))

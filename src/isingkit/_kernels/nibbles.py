"""Pair counts by table look-up: 128 spin pairs a vector instruction, on processors with AVX2 but no vector popcount.

A row of 4 samples of one spin is a nibble x. For a fixed nibble y of spin i the table T_y[x] = popcount(x ^ y) has 16 bytes, one
register; one byte shuffle looks up 32 spins j at once and one byte addition counts them. That is 4 instructions where XOR +
popcount spends about 9, and there is no horizontal sum at all.
"""

import numba
import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

LANES = 32  # spins in one vector of bytes
PARTS = 4  # vectors side by side
COLUMNS = PARTS * LANES  # spins j of one tile
ROWS = 2  # spins i of one tile: 2 x 4 accumulators, 4 strips and 2 tables fit the 16 registers
STRIP = 64  # spins i counted against one block in one go; their counts stay in cache
STEPS = 63  # nibbles before a byte counter could overflow: 63 * 4 < 2**8
SLAB = 256 * STEPS  # nibbles before a 16-bit counter could overflow: 256 * 63 * 4 < 2**16

_BYTES = ir.VectorType(ir.IntType(8), LANES)
_COUNTS = ir.VectorType(ir.IntType(16), LANES)
_TABLE = ir.VectorType(ir.IntType(8), 16)

# LOOKUP[16 * y + x] = popcount(x ^ y)
LOOKUP = np.array([(x ^ y).bit_count() for y in range(16) for x in range(16)], dtype=np.uint8)


def wins_here() -> bool:
    """Whether this processor, as numba compiles for it, has AVX2 and lacks a vector popcount."""
    features = numba.config.CPU_FEATURES
    if features is None:
        if numba.config.CPU_NAME is not None:
            return False
        features = binding.get_host_cpu_features().flatten()
    enabled = features.split(",")
    return "+avx2" in enabled and "+avx512vpopcntdq" not in enabled


def strips(n_blocks: int, n_words: int) -> NDArray[np.uint8]:
    """An empty (n_blocks, 16 * n_words, COLUMNS) array at a multiple of 64 bytes: no vector of it straddles two cache lines."""
    shape = (n_blocks, 16 * n_words, COLUMNS)
    room = np.empty(np.prod(shape) + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + np.prod(shape)].reshape(shape)


@intrinsic  # type: ignore[untyped-decorator]
def _count_tile(typing, lookup, shifted, i, nibbles, j, stride, n_steps, out, at, out_stride):  # type: ignore[no-untyped-def]
    """out[at + r * out_stride + l] += sum_k LOOKUP[shifted[k, i + r] + nibbles[k, j + l]], r < ROWS, l < COLUMNS, k < n_steps."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        def data(position):  # type: ignore[no-untyped-def]
            return cgutils.create_struct_proxy(signature.args[position])(context, builder, args[position]).data

        def address(pointer, *offsets):  # type: ignore[no-untyped-def]
            for offset in offsets:
                pointer = builder.gep(pointer, [offset])
            return pointer

        def vector(pointer, kind):  # type: ignore[no-untyped-def]
            return builder.bitcast(pointer, kind.as_pointer())

        size = ir.IntType(64)
        tables, row_bytes, column_bytes, counts = data(0), data(1), data(3), data(7)
        shuffle = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_BYTES, [_BYTES, _BYTES]), "llvm.x86.avx2.pshuf.b")
        both_halves = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [lane % 16 for lane in range(LANES)])
        zero = ir.Constant(_BYTES, [0] * LANES)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(PARTS)] for _ in range(ROWS)]
        with cgutils.for_range(builder, args[6]) as loop:
            start = builder.mul(loop.index, args[5])
            columns = [
                builder.load(vector(address(column_bytes, start, args[4], ir.Constant(size, part * LANES)), _BYTES), align=1)
                for part in range(PARTS)
            ]
            for row in range(ROWS):
                which = builder.zext(builder.load(address(row_bytes, start, args[2], ir.Constant(size, row))), size)
                table = builder.load(vector(address(tables, which), _TABLE), align=1)
                table = builder.shuffle_vector(table, ir.Constant(_TABLE, ir.Undefined), both_halves)
                for part in range(PARTS):
                    found = builder.call(shuffle, [table, columns[part]])
                    builder.store(builder.add(builder.load(sums[row][part]), found), sums[row][part])
        for row in range(ROWS):
            for part in range(PARTS):
                place = builder.add(
                    builder.add(args[8], builder.mul(args[9], ir.Constant(size, row))), ir.Constant(size, part * LANES)
                )
                target = vector(address(counts, place), _COUNTS)
                total = builder.add(builder.load(target, align=2), builder.zext(builder.load(sums[row][part]), _COUNTS))
                builder.store(total, target, align=2)
        return context.get_dummy_value()

    return types.void(lookup, shifted, i, nibbles, j, stride, n_steps, out, at, out_stride), generate


@njit(cache=True, nogil=True, fastmath=False)
def split(start, stop, words, nibbles, shifted):
    """nibbles[b, k, j] = k-th group of 4 samples of spin j of block b, shifted = 16 * nibbles, for blocks start to stop.

    words: (n_spins, n_words) uint64     nibbles, shifted: (n_blocks, 16 * n_words, COLUMNS) uint8, overwritten
    """
    n_spins, n_words = words.shape
    column = np.zeros(COLUMNS, np.uint64)
    for block in range(start, stop):
        first = block * COLUMNS
        width = min(COLUMNS, n_spins - first)
        column[width:] = 0
        for w in range(n_words):
            for j in range(width):
                column[j] = words[first + j, w]
            for t in range(16):
                plain, high = nibbles[block, 16 * w + t], shifted[block, 16 * w + t]
                for j in range(COLUMNS):
                    plain[j] = column[j] & np.uint64(15)
                    high[j] = (column[j] & np.uint64(15)) << np.uint64(4)
                    column[j] >>= np.uint64(4)


@njit(cache=True, nogil=True, fastmath=False)
def subtract_differences(start, stop, nibbles, shifted, n_steps, lookup, sums):
    """sums[i, j] -= 2 * (samples in which spins i and j differ), for i in strips start to stop
    (STRIP spins each) and j >= i.

    nibbles, shifted: (n_blocks, >= n_steps, COLUMNS) uint8     sums: (n_spins, n_spins) int64
    One writer per entry and integer sums: the result does not depend on the number of threads.
    """
    n_blocks, room, _ = nibbles.shape
    flat_nibbles, flat_shifted = nibbles.ravel(), shifted.ravel()
    tile = np.empty((STRIP, COLUMNS), np.uint16)
    flat_tile = tile.ravel()
    for strip in range(start, stop):
        block, offset = divmod(strip * STRIP, COLUMNS)
        for other in range(block, n_blocks):
            first_row, first_column = strip * STRIP, other * COLUMNS
            for slab in range(0, n_steps, SLAB):
                tile[:] = 0
                for k in range(slab, min(slab + SLAB, n_steps), STEPS):
                    steps = min(STEPS, n_steps - k)
                    row_at, column_at = (block * room + k) * COLUMNS + offset, (other * room + k) * COLUMNS
                    for row in range(0, STRIP, ROWS):
                        _count_tile(
                            lookup, flat_shifted, row_at + row, flat_nibbles, column_at, COLUMNS, steps,
                            flat_tile, row * COLUMNS, COLUMNS,
                        )  # fmt: skip
                for r in range(min(STRIP, len(sums) - first_row)):
                    i = first_row + r
                    for c in range(max(0, i - first_column), min(COLUMNS, len(sums) - first_column)):
                        sums[i, first_column + c] -= 2 * np.int64(tile[r, c])

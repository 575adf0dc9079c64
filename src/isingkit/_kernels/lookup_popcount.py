"""Pair counts by table look-up in vector registers, for processors with AVX2 but no vector
popcount.

Four samples of one spin are a nibble x. For two spins with nibbles y and y' the 16-byte table
T[x] = popcount(x ^ y) + 16 popcount(x ^ y') is one register, and one byte shuffle looks up 32 spins
j at once: 256 pairs of values. Three look-ups add up before half a byte could overflow. Their sums,
and the same shifted by half a byte, are then added up modulo 256 with no regard to what spills
over; the two halves of each count follow from both at the end. XOR + popcount takes about four
times the instructions.
"""

from functools import cache

import numba
import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from isingkit._kernels.flags import KERNEL
from isingkit._kernels.gram import popcount
from isingkit._kernels.vectors import Vectors

LANES = 32  # spins in one vector of bytes
PARTS = 4  # vectors side by side
# spins j of one tile; its spins i are two, whose 8 vectors of counts stay in registers
COLUMNS = PARTS * LANES
AHEAD = 32  # words read of one spin before the next: rows of words lie pages apart
STRIP = 64  # spins i counted against one block in one go; their counts stay in cache
TRIPLE = 3  # look-ups before half a byte could overflow: 3 * 4 < 2**4
STEPS = 21 * TRIPLE  # nibbles before a byte could: 63 * 4 < 2**8
SLAB = 256 * STEPS  # nibbles before a 16-bit count could: 256 * 63 * 4 < 2**16

# TABLES[16 * (y + 16 * y') + x] = popcount(x ^ y) + 16 * popcount(x ^ y')
TABLES = np.array(
    [
        (x ^ (pair & 15)).bit_count() + 16 * (x ^ (pair >> 4)).bit_count()
        for pair in range(256)
        for x in range(16)
    ],
    dtype=np.uint8,
)


def has_shuffle() -> bool:
    """Whether this processor, as numba compiles for it, has AVX2, whose byte shuffle looks up 32
    bytes at once.
    """
    return "+avx2" in _features()


def is_fastest() -> bool:
    """Whether look-ups are the quickest way to count here: not where there is a vector popcount."""
    return has_shuffle() and "+avx512vpopcntdq" not in _features()


def _features() -> list[str]:
    features = numba.config.CPU_FEATURES
    if features is None:
        if numba.config.CPU_NAME is not None:
            return []
        features = _host_features()
    return list(features.split(","))


@cache
def _host_features() -> str:
    """Asked for once: it takes a third of a millisecond."""
    return str(binding.get_host_cpu_features().flatten())


def steps_of(n_words: int) -> int:
    """Nibbles in n_words words, rounded up to whole triples."""
    return -(-16 * n_words // TRIPLE) * TRIPLE


def strips(n_blocks: int, n_words: int) -> NDArray[np.uint8]:
    """An empty (n_blocks, n_steps, COLUMNS) array at a multiple of 64 bytes: no vector of it
    straddles two cache lines.
    """
    shape = (n_blocks, steps_of(n_words), COLUMNS)
    room = np.empty(np.prod(shape) + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + np.prod(shape)].reshape(shape)


@njit(**KERNEL)
def split(start, stop, words, first_word, last_word, n_steps, nibbles, spin_sums):
    """nibbles[b, k, j] = k-th group of 4 samples, from first_word to last_word, of spin j of block
    b, for blocks start to stop.

    Zero past the last spin and past the last word. On the way spin_sums[j] += 2 * (set bits of spin
    j).
    words: (n_spins, n_words) uint64     nibbles: (n_blocks, >= n_steps, COLUMNS) uint8
    """
    n_spins = len(words)
    n_words = last_word - first_word
    column = np.empty(COLUMNS, np.uint64)
    ahead = np.zeros((AHEAD, COLUMNS), np.uint64)
    for block in range(start, stop):
        first = block * COLUMNS
        width = min(COLUMNS, n_spins - first)
        ahead[:, width:] = 0
        for w in range(n_words):
            if w % AHEAD == 0:
                for j in range(width):
                    up = np.uint64(0)
                    for k in range(min(AHEAD, n_words - w)):
                        ahead[k, j] = words[first + j, first_word + w + k]
                        up += popcount(ahead[k, j])
                    spin_sums[first + j] += 2 * np.int64(up)
            for j in range(COLUMNS):
                column[j] = ahead[w % AHEAD, j]
            for t in range(16):
                row = nibbles[block, 16 * w + t]
                for j in range(COLUMNS):
                    row[j] = column[j] & np.uint64(15)
                    column[j] >>= np.uint64(4)
        nibbles[block, 16 * n_words : n_steps] = 0


def _count_tile(parts):
    """An intrinsic that counts two spins i against `parts` vectors of spins j."""

    @intrinsic
    def count(typing, tables, nibbles, pair, column, n_triples, counts, at):
        """counts[at + r * COLUMNS + l] += samples in which spin r of the pair and spin l of the
        columns differ; arrays are flat.

        pair, column: where their first nibbles are
        """
        bytes_ = ir.VectorType(ir.IntType(8), LANES)
        words = ir.VectorType(ir.IntType(16), LANES)
        quarter = ir.VectorType(ir.IntType(8), 16)
        half = ir.VectorType(ir.IntType(16), LANES // 2)

        def generate(context, builder, signature, args):
            v = Vectors(context, builder, signature, args, LANES)
            size = v.size

            def load(array, at, kind):
                return v.load(v.at(array, at, kind))

            def down(value, bits):
                """Bytes shifted in pairs: the upper byte's low bits spill into the lower one."""
                places = ir.Constant(half, [bits] * (LANES // 2))
                return builder.bitcast(builder.lshr(builder.bitcast(value, half), places), bytes_)

            def minus_sixteen(value, other):
                return builder.sub(value, builder.shl(other, ir.Constant(bytes_, [4] * LANES)))

            all_tables, all_nibbles, all_counts = (v.data(position) for position in (0, 1, 5))
            shuffle = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(bytes_, [bytes_, bytes_]), "llvm.x86.avx2.pshuf.b"
            )
            twice = ir.Constant(
                ir.VectorType(ir.IntType(32), LANES), [lane % 16 for lane in range(LANES)]
            )
            zero = ir.Constant(bytes_, [0] * LANES)
            whole, shifted = (
                [cgutils.alloca_once_value(builder, zero) for _ in range(parts)] for _ in range(2)
            )
            with cgutils.for_range(builder, args[4]) as loop:
                found = [None] * parts
                for look_up in range(TRIPLE):
                    step = builder.add(builder.mul(loop.index, size(TRIPLE)), size(look_up))
                    step = builder.mul(step, size(COLUMNS))
                    both = load(
                        all_nibbles, builder.add(step, args[2]), ir.IntType(16)
                    )  # y + 256 y'
                    both = builder.zext(both, ir.IntType(64))
                    which = builder.add(
                        both, builder.mul(builder.and_(both, size(15)), size(15))
                    )  # 16 y + 256 y'
                    table = load(all_tables, which, quarter)
                    table = builder.shuffle_vector(table, ir.Constant(quarter, ir.Undefined), twice)
                    for part in range(parts):
                        place = builder.add(step, builder.add(args[3], size(part * LANES)))
                        differ = builder.call(shuffle, [table, load(all_nibbles, place, bytes_)])
                        found[part] = differ if look_up == 0 else builder.add(found[part], differ)
                for part in range(parts):
                    for total, more in (
                        (whole[part], found[part]),
                        (shifted[part], down(found[part], 4)),
                    ):
                        builder.store(builder.add(builder.load(total), more), total)
            for part in range(parts):
                # modulo 256: whole = low + 16 high; shifted = high, in the lower of two bytes + 16
                # low of the upper
                total = builder.load(whole[part])
                moved = builder.load(shifted[part])
                high = minus_sixteen(moved, down(minus_sixteen(total, moved), 8))
                for row, differ in enumerate((minus_sixteen(total, high), high)):
                    place = builder.gep(
                        all_counts, [builder.add(args[6], size(row * COLUMNS + part * LANES))]
                    )
                    target = builder.bitcast(place, words.as_pointer())
                    more = builder.zext(differ, words)
                    builder.store(builder.add(builder.load(target, align=2), more), target, align=2)
            return context.get_dummy_value()

        return types.void(tables, nibbles, pair, column, n_triples, counts, at), generate

    return count


count_1, count_2, count_3, count_4 = (_count_tile(parts) for parts in range(1, PARTS + 1))


@njit(**KERNEL)
def subtract_differences(start, stop, nibbles, n_steps, tables, n_samples, sums):
    """sums[i, j] -= 2 * (samples in which spins i and j differ), for i in strips start to stop
    (STRIP spins each) and j >= i.

    nibbles: as from `split`
    sums: (n_spins, n_spins) int64, overwritten by n_samples - 2 * ... where n_samples >= 0
    One writer per entry and integer sums: the result does not depend on the number of threads.
    """
    n_blocks, room, _ = nibbles.shape
    flat_nibbles = nibbles.ravel()
    tile = np.empty((STRIP, COLUMNS), np.uint16)
    flat_tile = tile.ravel()
    for strip in range(start, stop):
        block, offset = divmod(strip * STRIP, COLUMNS)
        for other in range(block, n_blocks):
            first_row = strip * STRIP
            first_column = other * COLUMNS
            for slab in range(0, n_steps, SLAB):
                tile[:] = 0
                for k in range(slab, min(slab + SLAB, n_steps), STEPS):
                    n_triples = min(STEPS, n_steps - k) // TRIPLE
                    pair = (block * room + k) * COLUMNS + offset
                    column = (other * room + k) * COLUMNS
                    for row in range(0, STRIP, 2):
                        # vectors in which all j < i
                        skip = (offset + row) // LANES if other == block else 0
                        first = column + skip * LANES
                        at = row * COLUMNS + skip * LANES
                        if skip == 0:
                            count_4(
                                tables, flat_nibbles, pair + row, first, n_triples, flat_tile, at
                            )
                        elif skip == 1:
                            count_3(
                                tables, flat_nibbles, pair + row, first, n_triples, flat_tile, at
                            )
                        elif skip == 2:
                            count_2(
                                tables, flat_nibbles, pair + row, first, n_triples, flat_tile, at
                            )
                        else:
                            count_1(
                                tables, flat_nibbles, pair + row, first, n_triples, flat_tile, at
                            )
                for r in range(min(STRIP, len(sums) - first_row)):
                    i = first_row + r
                    row = sums[i, first_column:]
                    for c in range(max(0, i - first_column), min(COLUMNS, len(row))):
                        row[c] = (
                            n_samples if n_samples >= 0 and slab == 0 else row[c]
                        ) - 2 * np.int64(tile[r, c])

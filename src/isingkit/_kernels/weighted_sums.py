"""Which sums of real numbers with the signs of a spin are large: sum_m y_m s_jm, of many rows y
against all spins j.

By table look-up in vector registers, as in `lookup_popcount`: four samples of spin j are a nibble
x, the 16 sums of four numbers of a row are a table of 16 bytes, and one byte shuffle looks up 32
spins j. Bytes are rounded, so that sums are known up to an error whose bound is known; what could
pass within it must be summed again. A product of matrices in single precision takes five times as
long.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from isingkit._kernels.flags import KERNEL, PART, VECTOR_PART
from isingkit._kernels.lookup_popcount import COLUMNS, LANES, PARTS
from isingkit._kernels.vectors import Vectors

ROWS = 32  # rows whose tables stay in cache
PAIR = 2  # look-ups before a byte could overflow: 2 * 127 < 2**8
LARGEST = 127
STEPS = 64  # nibbles of a block of spins that stay in the first cache while all rows look them up
SLAB = 512  # nibbles before a 16-bit sum could overflow: 512 * 127 < 2**16; a multiple of STEPS


@njit(**KERNEL)
def tables_of(start, stop, rows, tables, units, offsets, errors):
    """Tables of sums of four numbers each, in whole units: row r has the sum of its looked-up
    bytes, times unit, minus offset.

    rows: (n_rows, n_samples) float64     tables: (n_rows, n_steps, 16) uint8, overwritten
    units, offsets, errors: (n_rows,), overwritten; the sum is off by at most the error
    """
    n_samples = rows.shape[1]
    n_steps = tables.shape[1]
    four = np.zeros(4)
    exact = np.empty(16)
    for r in range(start, stop):
        row = rows[r]
        largest = 0.0
        for k in range(0, n_samples, 4):
            size = 0.0
            for b in range(k, min(k + 4, n_samples)):
                size += abs(row[b])
            largest = max(largest, size)
        unit = 2 * largest / LARGEST if largest > 0 else 1.0
        offset = 0.0
        error = 0.0
        for k in range(n_steps):
            size = 0.0
            table = tables[r, k]
            for b in range(4):
                four[b] = row[4 * k + b] if 4 * k + b < n_samples else 0.0
                size += abs(four[b])
            off = 0.0
            for x in range(16):
                exact[x] = size
                for b in range(4):
                    exact[x] += four[b] if (x >> b) & 1 else -four[b]
                table[x] = np.uint8(exact[x] / unit + 0.5)
                off = max(off, abs(exact[x] - unit * table[x]))
            offset += size
            error += off
        units[r] = unit
        offsets[r] = offset
        errors[r] = error * (1 + 1e-6) + 1e-9 * offset


@intrinsic
def _add_looked_up(typing, tables, nibbles, table, column, n_pairs, sums, at):
    """sums[at + l] += what one row's tables have for spin l of a block; arrays are flat.

    table, column: where the row's first table and the block's first nibbles are
    """
    bytes_ = ir.VectorType(ir.IntType(8), LANES)
    words = ir.VectorType(ir.IntType(16), LANES // 2)
    quarter = ir.VectorType(ir.IntType(8), 16)
    all_words = ir.VectorType(ir.IntType(16), LANES)

    def generate(context, builder, signature, args):
        v = Vectors(context, builder, signature, args, LANES)
        size = v.size
        all_tables, all_nibbles, all_sums = (v.data(position) for position in (0, 1, 5))
        kind = ir.FunctionType(bytes_, [bytes_, bytes_])
        shuffle = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx2.pshuf.b")
        places = ir.VectorType(ir.IntType(32), LANES)
        twice = ir.Constant(places, [lane % 16 for lane in range(LANES)])
        zipped = ir.Constant(places, [lane // 2 + 16 * (lane % 2) for lane in range(LANES)])
        eight = ir.Constant(words, [8] * (LANES // 2))
        zero = ir.Constant(words, [0] * (LANES // 2))
        whole, upper = (
            [cgutils.alloca_once_value(builder, zero) for _ in range(PARTS)] for _ in range(2)
        )
        with cgutils.for_range(builder, args[4]) as loop:
            found = [None] * PARTS
            for look_up in range(PAIR):
                step = builder.add(builder.mul(loop.index, size(PAIR)), size(look_up))
                one = v.load(
                    v.at(all_tables, builder.add(args[2], builder.mul(step, size(16))), quarter)
                )
                one = builder.shuffle_vector(one, ir.Constant(quarter, ir.Undefined), twice)
                for part in range(PARTS):
                    place = builder.add(
                        args[3], builder.add(builder.mul(step, size(COLUMNS)), size(part * LANES))
                    )
                    value = builder.call(shuffle, [one, v.load(v.at(all_nibbles, place, bytes_))])
                    found[part] = value if look_up == 0 else builder.add(found[part], value)
            for part in range(PARTS):
                both = builder.bitcast(found[part], words)  # lower byte + 256 upper byte
                for total, more in ((whole[part], both), (upper[part], builder.lshr(both, eight))):
                    builder.store(builder.add(builder.load(total), more), total)
        for part in range(PARTS):
            odd = builder.load(upper[part])
            even = builder.sub(builder.load(whole[part]), builder.shl(odd, eight))  # modulo 2**16
            place = builder.gep(all_sums, [builder.add(args[6], size(part * LANES))])
            target = builder.bitcast(place, all_words.as_pointer())
            more = builder.shuffle_vector(even, odd, zipped)
            builder.store(builder.add(builder.load(target, align=2), more), target, align=2)
        return context.get_dummy_value()

    return types.void(tables, nibbles, table, column, n_pairs, sums, at), generate


@njit(**KERNEL)
def large_sums_by_lookup(
    start, stop, tables, units, offsets, errors, nibbles, after, row_factors, column_factors, level
):
    """(row, spin) where (|sum| + error) (row_factors[:, row] . column_factors[:, spin]) > level,
    for rows start to stop.

    tables, units, offsets, errors: as from `tables_of`     nibbles: as from `lookup_popcount.split`
    after: (n_rows,): only spins j > after[row] count
    row_factors: (2, n_rows) float32, not negative
    column_factors: (2, n_blocks * COLUMNS) float32, not negative, 0 past the last spin
    """
    n_steps = tables.shape[1]
    n_blocks, room, _ = nibbles.shape
    flat_nibbles = nibbles.ravel()
    flat_tables = tables.ravel()
    tile = np.empty((ROWS, COLUMNS), np.uint16)
    sums = np.empty((ROWS, COLUMNS), np.float32)
    flat_tile = tile.ravel()
    flat_sums = sums.ravel()
    found = np.empty((1024, 2), np.int64)
    n_found = 0
    for first in range(start, stop, ROWS):
        size = min(ROWS, stop - first)
        for block in range(max(after[first : first + size].min() + 1, 0) // COLUMNS, n_blocks):
            sums[:] = 0
            for slab in range(0, n_steps, SLAB):
                tile[:] = 0
                for k in range(slab, min(slab + SLAB, n_steps), STEPS):
                    n_pairs = min(STEPS, n_steps - k) // PAIR
                    column = (block * room + k) * COLUMNS
                    for r in range(size):
                        table = ((first + r) * n_steps + k) * 16
                        _add_looked_up(
                            flat_tables,
                            flat_nibbles,
                            table,
                            column,
                            n_pairs,
                            flat_tile,
                            r * COLUMNS,
                        )
                for t in range(size * COLUMNS):
                    flat_sums[t] += flat_tile[t]
            for r in range(size):
                unit = np.float32(units[first + r])
                offset = np.float32(offsets[first + r])
                for c in range(COLUMNS):
                    sums[r, c] = unit * sums[r, c] - offset
            # single precision errs, too
            error = errors[first : first + size] + 1e-6 * offsets[first : first + size]
            found, n_found = _passing(
                sums[:size],
                first,
                block * COLUMNS,
                error,
                after,
                row_factors,
                column_factors,
                level,
                found,
                n_found,
            )
    return found[:n_found]


@njit(**KERNEL)
def large_products(start, stop, sums, errors, after, row_factors, column_factors, level):
    """The same from sums that a product of matrices has: (n_rows, n_columns) float32."""
    found = np.empty((1024, 2), np.int64)
    width = sums.shape[1]
    others = column_factors[:, :width]
    found, n_found = _passing(
        sums[start:stop], start, 0, errors[start:stop], after, row_factors, others, level, found, 0
    )
    return found[:n_found]


@njit(**PART)
def _passing(
    sums, first_row, first_column, errors, after, row_factors, column_factors, level, found, n_found
):
    """Append (row, column) of the entries of a tile that pass, as in `large_sums_by_lookup`;
    `found` grows as it must.

    sums: (n_rows, n_columns) float32     errors: (n_rows,)
    """
    width = sums.shape[1]
    factors = column_factors[:, first_column : first_column + width]
    one = factors[0]
    two = factors[1]
    limit = np.float32(level)
    for r in range(len(sums)):
        row = sums[r]
        i = first_row + r
        error = np.float32(errors[r])
        mine = row_factors[0, i]
        other = row_factors[1, i]
        n_here = 0
        for c in range(width):
            n_here += (abs(row[c]) + error) * (mine * one[c] + other * two[c]) > limit
        if n_here == 0:
            continue
        found = room_for(found, n_found, n_here)
        for c in range(max(0, after[i] + 1 - first_column), width):
            if (abs(row[c]) + error) * (mine * one[c] + other * two[c]) > limit:
                found[n_found, 0] = i
                found[n_found, 1] = first_column + c
                n_found += 1
    return found, n_found


@njit(**KERNEL)
def room_for(found, n_found, n_more):
    """`found` itself, or a larger copy."""
    if n_found + n_more <= len(found):
        return found
    larger = np.empty((2 * len(found) + n_more, found.shape[1]), found.dtype)
    larger[:n_found] = found[:n_found]
    return larger


@njit(**VECTOR_PART)
def _signed_sum(row, words):
    """sum_m row[m] s_m, and nothing past the last sample."""
    total = 0.0
    n_samples = len(row)
    for w in range(n_samples // 64):
        word = words[w]
        part = row[64 * w : 64 * w + 64]
        for b in range(64):
            total += part[b] if (word >> np.uint64(b)) & np.uint64(1) else -part[b]
    for m in range(n_samples // 64 * 64, n_samples):
        total += row[m] if (words[m // 64] >> np.uint64(m % 64)) & np.uint64(1) else -row[m]
    return total


@njit(**KERNEL)
def sums_of_pairs(start, stop, rows, words, pairs, sums):
    """sums[p] = sum_m rows[r, m] s_jm, (r, j) = pairs[p], in double precision, for pairs start to
    stop.
    """
    for p in range(start, stop):
        sums[p] = _signed_sum(rows[pairs[p, 0]], words[pairs[p, 1]])

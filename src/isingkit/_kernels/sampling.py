"""Monte Carlo sweeps of many chains at once: one bit a chain for couplings of one strength, one
number a chain for all others.
"""

from math import factorial

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.vectors import Vectors
from isingkit._kernels.xoshiro import next_word

WORDS = 8  # words of one block of chains: one spin of 512 chains is one cache line
CHAINS = 64 * WORDS
LARGEST_DEGREE = 63
UNCHECKED = 4  # digits compared between two looks at whether all chains are decided


@njit(**PART)
def _random_spin(stream, stride, n_spins):
    """A random spin, by the first of a block's generators (xoshiro256++); the high half of a
    product, for n_spins < 2**32.
    """
    word = next_word(stream, stride)
    return np.int64(((word >> np.uint64(32)) * np.uint64(n_spins)) >> np.uint64(32))


# Chains as bits


def _bit_update(n_planes, n_counts):
    """An intrinsic that updates one spin of a block of 512 chains.

    For degrees < 2**n_planes, of whose counts the last n_counts are left to chance (those past the
    degree never occur).
    """

    @intrinsic
    def update(
        typing,
        state,
        spin,
        neighbours,
        signs,
        start,
        stop,
        digits,
        first_row,
        first,
        relative,
        streams,
    ):
        """state[spin] of all chains after one update.

        state: flat (n_spins, WORDS)
        neighbours[start:stop], signs[start:stop]: 0, or all ones for negative couplings
        digits: flat (..., 64), binary digits, all ones or 0, of the probabilities of counts from
        `first` on, from row `first_row` on
        relative: all ones for Metropolis (counts of satisfied couplings, probabilities to flip), 0
        for heat bath (couplings that pull up)
        streams: flat (4, WORDS), the xoshiro256++ generators of the words
        """

        def generate(context, builder, signature, args):
            v = Vectors(context, builder, signature, args, WORDS)
            states, others, negative, digits, generators = (v.data(k) for k in (0, 2, 3, 6, 10))
            spin, start, stop, first_row, first, relative = (args[k] for k in (1, 4, 5, 7, 8, 9))
            zero = v.constant(0)
            ones = v.constant(-1)

            def row(array, at):
                return v.at(array, builder.mul(at, v.size(WORDS)))

            mine = v.load(row(states, spin))
            relative = v.broadcast(relative)
            turn = builder.and_(builder.not_(mine), relative)

            # binary digits of the count, by a ripple of carries
            planes = [cgutils.alloca_once_value(builder, zero) for _ in range(n_planes)]
            with cgutils.for_range_slice(builder, start, stop, v.size(1)) as (k, _):
                other = v.load(row(states, builder.load(builder.gep(others, [k]))))
                carry = builder.xor(
                    builder.xor(other, v.broadcast(builder.load(builder.gep(negative, [k])))), turn
                )
                for plane in planes:
                    old = builder.load(plane)
                    builder.store(builder.xor(old, carry), plane)
                    carry = builder.and_(old, carry)

            # chains of each count that is left to chance
            masks = []
            undecided = zero
            for number in range(n_counts):
                count = builder.add(first, v.size(number))
                mask = ones
                for digit, plane in enumerate(planes):
                    bit = builder.and_(builder.lshr(count, v.size(digit)), v.size(1))
                    mask = builder.and_(
                        mask,
                        builder.xor(builder.load(plane), v.broadcast(builder.sub(bit, v.size(1)))),
                    )
                masks.append(mask)
                undecided = builder.or_(undecided, mask)
            accepted = cgutils.alloca_once_value(builder, builder.not_(undecided))
            undecided = cgutils.alloca_once_value(builder, undecided)

            # digit by digit a uniform number is compared with each chain's chance, until every
            # chain is decided
            stream = [
                cgutils.alloca_once_value(builder, v.load(row(generators, v.size(k))))
                for k in range(4)
            ]
            position = cgutils.alloca_once_value(builder, v.size(0))
            check = builder.append_basic_block("check")
            body = builder.append_basic_block("digit")
            done = builder.append_basic_block("done")
            builder.branch(check)
            builder.position_at_end(check)
            any_left = builder.call(
                cgutils.get_or_insert_function(
                    builder.module,
                    ir.FunctionType(ir.IntType(64), [v.words]),
                    f"llvm.vector.reduce.or.v{WORDS}i64",
                ),
                [builder.load(undecided)],
            )
            more = builder.and_(
                builder.icmp_unsigned("!=", any_left, v.size(0)),
                builder.icmp_unsigned("<", builder.load(position), v.size(64)),
            )
            builder.cbranch(more, body, done)
            builder.position_at_end(body)
            s0, s1, s2, s3 = (builder.load(s) for s in stream)
            left = builder.load(undecided)
            taken = builder.load(accepted)
            for ahead in range(UNCHECKED):
                random, (s0, s1, s2, s3) = v.xoshiro(s0, s1, s2, s3)
                wanted = zero
                for number, mask in enumerate(masks):
                    at = builder.mul(builder.add(first_row, v.size(number)), v.size(64))
                    at = builder.add(builder.add(at, builder.load(position)), v.size(ahead))
                    wanted = builder.or_(
                        wanted,
                        builder.and_(mask, v.broadcast(builder.load(builder.gep(digits, [at])))),
                    )
                taken = builder.or_(
                    taken, builder.and_(left, builder.and_(builder.not_(random), wanted))
                )
                left = builder.and_(left, builder.not_(builder.xor(random, wanted)))
            for place, value in zip(
                (*stream, undecided, accepted), (s0, s1, s2, s3, left, taken), strict=True
            ):
                builder.store(value, place)
            builder.store(builder.add(builder.load(position), v.size(UNCHECKED)), position)
            builder.branch(check)
            builder.position_at_end(done)
            for k in range(4):
                builder.store(builder.load(stream[k]), row(generators, v.size(k)), align=8)
            builder.store(
                builder.xor(builder.and_(mine, relative), builder.load(accepted)),
                row(states, spin),
                align=8,
            )
            return context.get_dummy_value()

        signature = types.void(
            state,
            spin,
            neighbours,
            signs,
            start,
            stop,
            digits,
            first_row,
            first,
            relative,
            streams,
        )
        return signature, generate

    return update


# For couplings of one strength Metropolis leaves counts from half the degree on to chance, heat
# bath all of them.
_flip_up_to_3, _flip_up_to_7, _flip_up_to_15, _flip_up_to_63 = (
    _bit_update(n, 1 << n - 1) for n in (2, 3, 4, 6)
)
_draw_up_to_3, _draw_up_to_7, _draw_up_to_15, _draw_up_to_63 = (
    _bit_update(n, 1 << n) for n in (2, 3, 4, 6)
)


@njit(**KERNEL)
def heat_bath_bit_sweeps(
    start, stop, graph, digits, row_of_degree, above_3, above_7, above_15, random_order,
    streams, states, n_sweeps,
):  # fmt: skip
    """Heat-bath sweeps of 512 chains a block, for blocks start to stop; all couplings have one
    strength and there is no field.

    graph: indptr, indices, signs: int64, CSR of J, with 0 or -1 an entry for its sign
    digits: (n * 64,) int64, binary digits, 0 or -1, of the probabilities of all counts; those of
    degree d start at row row_of_degree[d]
    above_3, above_7, above_15: None where no spin has so many neighbours. What None excludes is
    not compiled, and the code for many neighbours takes seconds to. (It is not a function of its
    own: a call would count references to its arrays, which takes half as long as the update.)
    streams: (n_blocks, 4 * WORDS) uint64
    states: (n_blocks, n_spins * WORDS) uint64; both are left where the next call goes on
    """
    indptr, others, signs = graph
    n_spins = len(indptr) - 1
    stream = np.empty(4 * WORDS, np.uint64)  # of its own: threads must not share cache lines
    for block in range(start, stop):
        state = states[block]
        _copy(streams[block], stream)
        for _ in range(n_sweeps):
            for step in range(n_spins):
                i = _random_spin(stream, WORDS, n_spins) if random_order else step
                a = indptr[i]
                b = indptr[i + 1]
                degree = b - a
                row = row_of_degree[degree]
                if degree <= 3:
                    _draw_up_to_3(state, i, others, signs, a, b, digits, row, 0, 0, stream)
                elif above_3 is None:
                    continue
                elif degree <= 7:
                    _draw_up_to_7(state, i, others, signs, a, b, digits, row, 0, 0, stream)
                elif above_7 is None:
                    continue
                elif degree <= 15:
                    _draw_up_to_15(state, i, others, signs, a, b, digits, row, 0, 0, stream)
                elif above_15 is None:
                    continue
                else:
                    _draw_up_to_63(state, i, others, signs, a, b, digits, row, 0, 0, stream)
        _copy(stream, streams[block])


@njit(**KERNEL)
def metropolis_bit_sweeps(
    start, stop, graph, digits, row_of_degree, above_3, above_7, above_15, random_order,
    streams, states, n_sweeps,
):  # fmt: skip
    """The same by Metropolis' rule."""
    indptr, others, signs = graph
    n_spins = len(indptr) - 1
    stream = np.empty(4 * WORDS, np.uint64)  # of its own: threads must not share cache lines
    for block in range(start, stop):
        state = states[block]
        _copy(streams[block], stream)
        for _ in range(n_sweeps):
            for step in range(n_spins):
                i = _random_spin(stream, WORDS, n_spins) if random_order else step
                a = indptr[i]
                b = indptr[i + 1]
                degree = b - a
                row = row_of_degree[degree]
                first = (degree + 1) // 2  # a flip that costs nothing is left to chance, too
                if degree <= 3:
                    _flip_up_to_3(state, i, others, signs, a, b, digits, row, first, -1, stream)
                elif above_3 is None:
                    continue
                elif degree <= 7:
                    _flip_up_to_7(state, i, others, signs, a, b, digits, row, first, -1, stream)
                elif above_7 is None:
                    continue
                elif degree <= 15:
                    _flip_up_to_15(state, i, others, signs, a, b, digits, row, first, -1, stream)
                elif above_15 is None:
                    continue
                else:
                    _flip_up_to_63(state, i, others, signs, a, b, digits, row, first, -1, stream)
        _copy(stream, streams[block])


# Chains as numbers

LANES = 64  # chains of one block; their states of one spin are one cache line
GROUP = 16  # of them in one vector of numbers
GENERATORS = LANES // 4  # a word of random bits serves four chains
# relative: what is closer than that to being undecided in single precision is done again in double
SLACK = 1e-4
# sums of |field| and |couplings| done in double throughout; e**(2 * 40) still fits into single
# precision
STRONG = 40.0
EVERYTHING = 1e30  # the slack that trusts nothing


class _Real:
    """Single or double precision: how e**x is made of the bits of a number."""

    def __init__(self, kind, bits, mantissa, n_terms, limit=None):
        self.kind = kind
        self.words = ir.VectorType(ir.IntType(bits), GROUP)
        self.numbers = ir.VectorType(kind, GROUP)
        self.limit = limit
        self.mantissa = mantissa
        self.series = [
            0.6931471805599453**n / factorial(n) for n in range(n_terms)
        ]  # of 2**f, |f| <= 1/2

    def constant(self, value):
        return ir.Constant(self.numbers, [value] * GROUP)

    def fused(self, builder, a, b, c):
        """a * b + c, in one instruction where the processor has it and single precision is to be
        quick.
        """
        flags = ("contract",) if self is _SINGLE else ()
        return builder.fadd(builder.fmul(a, b, flags=flags), c, flags=flags)

    def exponential(self, builder, x):
        """e**x: 2**k by the exponent's bits, 2**f by its series; adding 1.5 * 2**mantissa leaves k
        in the last bits.
        """
        for beyond, limit in ((">", self.limit), ("<", -self.limit)) if self.limit else ():
            x = builder.select(
                builder.fcmp_ordered(beyond, x, self.constant(limit)), self.constant(limit), x
            )
        shift = self.constant(1.5 * 2.0**self.mantissa)
        y = builder.fmul(x, self.constant(1.4426950408889634))
        whole = builder.fadd(y, shift)
        f = builder.fsub(y, builder.fsub(whole, shift))
        value = self.constant(self.series[-1])
        for coefficient in self.series[-2::-1]:
            value = self.fused(builder, value, f, self.constant(coefficient))
        power = builder.shl(
            builder.bitcast(whole, self.words), ir.Constant(self.words, [self.mantissa] * GROUP)
        )
        return builder.bitcast(builder.add(builder.bitcast(value, self.words), power), self.numbers)


_SINGLE = _Real(ir.FloatType(), 32, 23, 6)  # to 5 digits
_DOUBLE = _Real(ir.DoubleType(), 64, 52, 12, limit=700.0)  # to 14 digits


def _general_update(heat_bath):
    """An intrinsic that updates one spin of a block of 64 chains."""

    @intrinsic
    def update(
        typing, state, spin, neighbours, couplings, start, stop, field, streams, single, slack
    ):
        """state[spin] of a block of 64 chains after one update.

        state: flat (n_spins, LANES) int8     neighbours[start:stop], couplings[start:stop]
        streams: flat (4, GENERATORS)
        single: -2 * couplings in single precision
        slack: relative; what is closer to being undecided in single precision is done in double,
        with a huge slack everything
        A uniform number of 16 bits and a probability in single precision decide nearly every lane;
        the few that are too close to call get more random bits and double precision, so that
        probabilities are right to 14 digits. Which lanes these are depends on the processor, what
        becomes of them does not: more bits are mixed from the generators' state, which they leave
        as it is.
        """
        bytes_ = ir.VectorType(ir.IntType(8), GROUP)
        bits = ir.VectorType(ir.IntType(1), GROUP)

        def generate(context, builder, signature, args):
            v = Vectors(context, builder, signature, args, GROUP // 2)
            states, others, strengths, generators, rounded = (v.data(k) for k in (0, 2, 3, 7, 8))
            spin, start, stop, field, slack = (args[k] for k in (1, 4, 5, 6, 9))
            whole_group = Vectors(context, builder, signature, args, GROUP)
            one = ir.Constant(ir.DoubleType(), 1.0)
            surely_factor, maybe_factor = (
                whole_group.broadcast(builder.fptrunc(edge, _SINGLE.kind), _SINGLE.numbers)
                for edge in (builder.fadd(one, slack), builder.fsub(one, slack))
            )

            def odds(real, lane, old):
                """exp(-2 h), or exp(-2 h s) for Metropolis."""

                def twice(value):
                    return builder.fmul(value, ir.Constant(ir.DoubleType(), -2.0))

                def everywhere(value):
                    return whole_group.broadcast(value, real.numbers)

                local = cgutils.alloca_once(builder, real.numbers)
                start_field = (
                    twice(field) if real is _DOUBLE else builder.fptrunc(twice(field), real.kind)
                )
                builder.store(everywhere(start_field), local)
                with cgutils.for_range_slice(builder, start, stop, v.size(1)) as (k, _):
                    place = builder.add(
                        builder.mul(builder.load(builder.gep(others, [k])), v.size(LANES)), lane
                    )
                    spins = builder.sitofp(v.load(v.at(states, place, bytes_)), real.numbers)
                    exact = twice(builder.load(builder.gep(strengths, [k])))
                    factor = exact if real is _DOUBLE else builder.load(builder.gep(rounded, [k]))
                    builder.store(
                        real.fused(builder, everywhere(factor), spins, builder.load(local)), local
                    )
                x = builder.load(local)
                if heat_bath:
                    return real.exponential(builder, x)
                # a flip that costs nothing is tossed for: spins in turn could go round in circles
                # for ever
                costs_nothing = builder.fcmp_ordered("==", x, real.constant(0.0))
                chance = real.exponential(
                    builder, builder.fmul(x, builder.sitofp(old, real.numbers))
                )
                return builder.select(costs_nothing, real.constant(0.5), chance)

            def is_below(real, uniform, chance):
                """uniform < 1 / (1 + chance) for heat bath, uniform < chance for Metropolis."""
                if heat_bath:
                    odds_of_both = builder.fadd(chance, real.constant(1.0))
                    return builder.fcmp_ordered(
                        "<", builder.fmul(uniform, odds_of_both), real.constant(1.0)
                    )
                return builder.fcmp_ordered("<", uniform, chance)

            def random_words(lane):
                first = builder.udiv(lane, v.size(4))
                places = [
                    v.at(generators, builder.add(v.size(k * GENERATORS), first)) for k in range(4)
                ]
                random, after = v.xoshiro(*(v.load(place) for place in places))
                for place, word in zip(places, after, strict=True):
                    builder.store(word, place, align=1)
                return random

            def more_words(lane, number):
                """Random words for the few; `number`, from 1 on, tells apart those of one state
                (finisher of splitmix64).
                """
                first = builder.udiv(lane, v.size(4))
                one, two = (
                    v.load(v.at(generators, builder.add(v.size(k * GENERATORS), first)))
                    for k in (1, 2)
                )
                word = builder.add(
                    builder.xor(one, v.rotated(two, 29)),
                    v.constant(number * 0x9E3779B97F4A7C15 % 2**64),
                )
                for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                    word = builder.mul(
                        builder.xor(word, builder.lshr(word, v.constant(shift))), v.constant(factor)
                    )
                return builder.xor(word, builder.lshr(word, v.constant(31)))

            def outcome(decided, old):
                if heat_bath:
                    return builder.select(
                        decided, ir.Constant(bytes_, [1] * GROUP), ir.Constant(bytes_, [-1] * GROUP)
                    )
                return builder.select(
                    decided, builder.sub(ir.Constant(bytes_, [0] * GROUP), old), old
                )

            mine_at = builder.mul(spin, v.size(LANES))

            def decide(lane, first, group, coarse):
                """The update of one of two groups, by 16 random bits a chain; `first` is where
                their random words come from.
                """
                target = v.at(states, builder.add(mine_at, lane), bytes_)
                old = v.load(target)
                lower = builder.fmul(
                    builder.sitofp(coarse, _SINGLE.numbers), _SINGLE.constant(2.0**-16)
                )
                upper = builder.fadd(lower, _SINGLE.constant(2.0**-16))
                chance = odds(_SINGLE, lane, old)
                surely = is_below(_SINGLE, builder.fmul(upper, surely_factor), chance)
                maybe = is_below(_SINGLE, builder.fmul(lower, maybe_factor), chance)
                builder.store(outcome(surely, old), target, align=1)
                open_ = builder.bitcast(builder.xor(surely, maybe), ir.IntType(GROUP))
                with builder.if_then(
                    builder.icmp_unsigned("!=", open_, ir.Constant(ir.IntType(GROUP), 0)),
                    likely=False,
                ):
                    parts = []
                    for half in (1, 2):
                        words = builder.lshr(more_words(first, 2 * group + half), v.constant(12))
                        words = builder.or_(words, v.constant(0x3FF0000000000000))
                        parts.append(
                            builder.bitcast(words, ir.VectorType(ir.DoubleType(), GROUP // 2))
                        )
                    together = ir.Constant(ir.VectorType(ir.IntType(32), GROUP), list(range(GROUP)))
                    fine = builder.fsub(
                        builder.shuffle_vector(*parts, together), _DOUBLE.constant(1.0)
                    )
                    uniform = builder.fadd(builder.sitofp(coarse, _DOUBLE.numbers), fine)
                    uniform = builder.fmul(uniform, _DOUBLE.constant(2.0**-16))
                    decided = is_below(_DOUBLE, uniform, odds(_DOUBLE, lane, old))
                    still_open = builder.bitcast(open_, bits)
                    builder.store(
                        outcome(builder.select(still_open, decided, surely), old), target, align=1
                    )

            sixteen = ir.Constant(_SINGLE.words, [16] * GROUP)
            with cgutils.for_range(builder, v.size(LANES // (2 * GROUP))) as pairs:
                first = builder.mul(pairs.index, v.size(2 * GROUP))
                both = builder.bitcast(random_words(first), _SINGLE.words)
                halves = (
                    builder.lshr(both, sixteen),
                    builder.lshr(builder.shl(both, sixteen), sixteen),
                )
                for group, coarse in enumerate(halves):
                    decide(builder.add(first, v.size(group * GROUP)), first, group, coarse)
            return context.get_dummy_value()

        signature = types.void(
            state, spin, neighbours, couplings, start, stop, field, streams, single, slack
        )
        return signature, generate

    return update


_draw = _general_update(heat_bath=True)
_flip = _general_update(heat_bath=False)


@njit(**KERNEL)
def heat_bath_sweeps(start, stop, graph, fields, random_order, streams, states, n_sweeps):
    """Sweeps of 64 chains a block, for blocks start to stop; any couplings and fields.

    graph: indptr, indices: int64, couplings: float64, CSR of J     fields: (n_spins,)
    streams: (n_blocks, 4 * GENERATORS) uint64
    states: (n_blocks, n_spins * LANES) int8; both are left where the next call goes on
    """
    indptr, indices, couplings = graph
    n_spins = len(fields)
    single, slack = _in_single_precision(graph, fields)
    own_stream = np.empty(4 * GENERATORS, np.uint64)  # threads must not share its cache lines
    for block in range(start, stop):
        state = states[block]
        _copy(streams[block], own_stream)
        for _ in range(n_sweeps):
            for step in range(n_spins):
                i = _random_spin(own_stream, GENERATORS, n_spins) if random_order else step
                a = indptr[i]
                b = indptr[i + 1]
                _draw(state, i, indices, couplings, a, b, fields[i], own_stream, single, slack[i])
        _copy(own_stream, streams[block])


@njit(**KERNEL)
def metropolis_sweeps(start, stop, graph, fields, random_order, streams, states, n_sweeps):
    """The same by Metropolis' rule, but for isolated spins, which in a weak field would flip
    nearly every time.
    """
    indptr, indices, couplings = graph
    n_spins = len(fields)
    single, slack = _in_single_precision(graph, fields)
    own_stream = np.empty(4 * GENERATORS, np.uint64)
    for block in range(start, stop):
        state = states[block]
        _copy(streams[block], own_stream)
        for _ in range(n_sweeps):
            for step in range(n_spins):
                i = _random_spin(own_stream, GENERATORS, n_spins) if random_order else step
                a = indptr[i]
                b = indptr[i + 1]
                field = fields[i]
                if a == b:
                    _draw(state, i, indices, couplings, a, b, field, own_stream, single, slack[i])
                else:
                    _flip(state, i, indices, couplings, a, b, field, own_stream, single, slack[i])
        _copy(own_stream, streams[block])


@njit(**PART)
def _in_single_precision(graph, fields):
    """-2 * couplings, and for each spin how far they can be trusted: not at all where all of them
    together are strong.
    """
    indptr, _, couplings = graph
    single = np.empty(len(couplings), np.float32)
    slack = np.empty(len(fields), np.float64)
    for i in range(len(fields)):
        strength = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            single[k] = -2 * couplings[k]
            strength += abs(couplings[k])
        slack[i] = EVERYTHING if abs(fields[i]) + strength > STRONG else SLACK
    return single, slack


@njit(**PART)
def _copy(source, target):
    for k in range(len(target)):
        target[k] = source[k]

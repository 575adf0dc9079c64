import functools
import itertools
import operator
import sys

import numpy as np
import pytest
from numba import config

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit._kernels import gram as popcounts
from isingkit._kernels import lookup_popcount


@pytest.fixture
def by_kernels(monkeypatch):
    """Pair sums of small tables by kernels, too, not by numpy."""
    monkeypatch.setattr(sys.modules["isingkit.gram"], "_FEW", 0)


@pytest.mark.parametrize("few", [0, 1 << 30])
@pytest.mark.parametrize("n_spins", [1, 2, 63, 64, 65, 130, 257])
@pytest.mark.parametrize("n_samples", [1, 2, 63, 64, 65, 127, 128, 129, 252, 253, 1000])
def test_pair_sums_are_exact_around_word_and_tile_boundaries(
    rng, n_samples, n_spins, few, monkeypatch
):
    monkeypatch.setattr(sys.modules["isingkit.gram"], "_FEW", few)  # by kernels, by numpy
    values = rng.choice(np.array([-1, 1], np.int8), (n_samples, n_spins))
    stat = ik.gram(
        ik.Spins(values, tuple(f"x{j}" for j in range(n_spins)), ((-1, 1),) * n_spins, None, False)
    )
    np.testing.assert_array_equal(stat.sums, values.T.astype(np.int64) @ values)
    np.testing.assert_array_equal(stat.spin_sums, values.sum(axis=0, dtype=np.int64))
    assert stat.sums.dtype == np.int64


def test_pair_sums_equal_their_definition(spins):
    np.testing.assert_array_equal(ik.gram(spins).sums, reference.pair_sums(spins))


@pytest.mark.parametrize("n_samples", [70_000, 64 * 1100])
def test_look_up_and_popcount_kernels_agree_past_the_sixteen_bit_counter(
    rng, n_samples, by_kernels, monkeypatch
):
    """Opposite columns differ in every sample: the largest counts there are."""
    if not lookup_popcount.has_shuffle():
        pytest.skip("the look-up kernel needs AVX2")
    monkeypatch.setattr(lookup_popcount, "is_fastest", lambda: True)
    values = rng.choice(np.array([-1, 1], np.int8), (n_samples, 5))
    values[:, 3] = -values[:, 0]
    packed = ik.pack(values)
    looked_up = ik.gram(packed)
    monkeypatch.setattr(lookup_popcount, "is_fastest", lambda: False)
    np.testing.assert_array_equal(ik.gram(packed).sums, looked_up.sums)
    assert looked_up.sums[0, 3] == -n_samples


def test_slabs_of_samples_add_up(rng, monkeypatch):
    values = rng.choice(np.array([-1, 1], np.int8), (64 * 200 + 5, 70))
    monkeypatch.setattr(sys.modules["isingkit.gram"], "_SLAB_BYTES", 1)
    np.testing.assert_array_equal(ik.gram(values).sums, values.T.astype(np.int64) @ values)


def test_the_look_up_kernel_is_not_chosen_for_processors_without_its_instructions(monkeypatch):
    monkeypatch.setattr(config, "CPU_FEATURES", "+sse2,+popcnt")
    assert not lookup_popcount.is_fastest()
    monkeypatch.setattr(config, "CPU_FEATURES", "+avx2,+avx512vpopcntdq")
    assert not lookup_popcount.is_fastest()
    monkeypatch.setattr(config, "CPU_FEATURES", None)
    monkeypatch.setattr(config, "CPU_NAME", "generic")
    assert not lookup_popcount.is_fastest()


def test_gram_of_chunks_adds_up_to_gram_of_whole_bit_for_bit(rng):
    values = rng.choice(np.array([-1, 1], np.int8), (1000, 33))
    packed = ik.pack(values)
    cuts = [0, 1, 64, 65, 400, 777, 1000]
    chunks = [ik.gram(packed[a:b]) for a, b in itertools.pairwise(cuts)]
    merged, whole = functools.reduce(operator.add, chunks), ik.gram(packed)
    np.testing.assert_array_equal(merged.sums, whole.sums)
    np.testing.assert_array_equal(merged.spin_sums, whole.spin_sums)
    assert merged.n_samples == whole.n_samples
    assert isinstance(merged, ik.Gram)


@pytest.mark.parametrize("looked_up", [True, False])
def test_gram_is_identical_for_one_and_two_threads(rng, monkeypatch, looked_up):
    if looked_up and not lookup_popcount.has_shuffle():
        pytest.skip("the look-up kernel needs AVX2")
    monkeypatch.setattr(lookup_popcount, "is_fastest", lambda: looked_up)
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 2)
    packed = ik.pack(rng.choice(np.array([-1, 1], np.int8), (1000, 300)))
    one, two = ik.gram(packed, n_jobs=1), ik.gram(packed, n_jobs=2)
    np.testing.assert_array_equal(one.sums, two.sums)
    np.testing.assert_array_equal(one.spin_sums, two.spin_sums)


def test_missing_values_count_only_where_both_are_present(rng):
    table = rng.choice([0.0, 1.0, np.nan], (300, 9), p=[0.4, 0.4, 0.2])
    values = np.nan_to_num(2 * table - 1, nan=0.0).astype(int)
    stat = ik.gram(ik.pack(ik.as_spins(table, missing="pairwise")))
    np.testing.assert_array_equal(stat.sums, values.T @ values)
    np.testing.assert_array_equal(stat.joint.counts, np.abs(values).T @ np.abs(values))
    np.testing.assert_array_equal(stat.spin_sums, values.sum(axis=0))
    np.testing.assert_array_equal(stat.joint.spin_sums, values.T @ np.abs(values))


def test_grams_with_and_without_missing_values_add_up(rng):
    table = rng.choice([0.0, 1.0], (200, 5))
    table[150:, 2][::3] = np.nan
    packed = ik.pack(ik.as_spins(table, missing="pairwise"))
    whole = ik.gram(packed)
    top = ik.gram(ik.pack(table[:150]))
    for merged in (top + ik.gram(packed[150:]), ik.gram(packed[150:]) + top):
        np.testing.assert_array_equal(merged.sums, whole.sums)
        np.testing.assert_array_equal(merged.joint.counts, whole.joint.counts)
        np.testing.assert_array_equal(merged.joint.spin_sums, whole.joint.spin_sums)


@pytest.mark.parametrize("missing", [False, True])
def test_counts_and_whole_weights_equal_repeated_rows_exactly(rng, missing):
    table = rng.choice([0.0, 1.0], (150, 6))
    if missing:
        table[rng.random(table.shape) < 0.2] = np.nan
    weights = rng.integers(0, 5, 150)
    packed = ik.pack(ik.as_spins(table, missing="pairwise"))
    counted = ik.gram(packed, counts=weights)
    weighted = ik.gram(packed, sample_weight=weights)
    np.testing.assert_array_equal(counted.sums, weighted.sums)
    assert (counted.n_rows, counted.n_effective) == (weights.sum(), weights.sum())
    assert weighted.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    repeated = ik.gram(packed[np.repeat(np.arange(150), weights)])
    np.testing.assert_array_equal(weighted.sums, repeated.sums)
    np.testing.assert_array_equal(weighted.spin_sums, repeated.spin_sums)
    assert weighted.n_samples == repeated.n_samples
    assert weighted.sums.dtype == np.int64
    if missing:
        np.testing.assert_array_equal(weighted.joint.counts, repeated.joint.counts)
        np.testing.assert_array_equal(weighted.joint.spin_sums, repeated.joint.spin_sums)


def test_real_weights_give_weighted_sums(rng):
    values, weights = rng.choice([-1, 1], (150, 6)), rng.random(150)
    stat = ik.gram(values, sample_weight=weights)
    np.testing.assert_allclose(stat.sums, values.T @ (weights[:, None] * values), rtol=1e-13)
    assert stat.n_samples == pytest.approx(weights.sum())
    assert stat.n_rows == 150
    assert stat.n_effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    halves = ik.gram(values[:70], sample_weight=weights[:70]) + ik.gram(
        values[70:], sample_weight=weights[70:]
    )
    assert halves.n_effective == pytest.approx(stat.n_effective)
    plain = ik.gram(values[70:])
    some = ik.gram(values[:70], sample_weight=weights[:70]) + plain
    whole = ik.gram(values, sample_weight=np.append(weights[:70], np.ones(80)))
    assert some.n_effective == pytest.approx(whole.n_effective)
    assert (plain + plain).n_effective == 160


@pytest.mark.parametrize(
    "weights", [[1, 2], [1, -1, 1], [1, np.nan, 1], [0, 0, 0], [[1, 1, 1]], "count", 1e200]
)
def test_bad_weights_are_refused(weights):
    with pytest.raises(ex.SampleWeightError, match="sample_weight must hold"):
        ik.gram([[0, 1], [1, 0], [1, 1]], sample_weight=weights)


def test_grams_of_other_spins_or_codings_do_not_add():
    with pytest.raises(ex.ModelMismatchError):
        ik.gram([[0, 1], [1, 0]]) + ik.gram([[0, 1, 1], [1, 0, 0]])
    with (
        pytest.raises(
            ex.CodingMismatchError,
            match="'x0' was read as .'a', 'b'. in one part and as .'', 'a'. in the other.*mapping=",
        ),
        pytest.warns(ex.ConstantColumnWarning),
    ):
        ik.gram([["a", "x"], ["b", "y"]]) + ik.gram([["a", "x"], ["a", "y"]])
    one = ik.as_spins([["a", "x"], ["b", "y"]])
    both = ik.gram(one) + ik.gram(
        ik.as_spins([["a", "x"], ["a", "y"]], mapping=one.mapping)
    )  # its advice
    assert both.spin_sums.tolist() == [-2, 0]
    assert repr(both) == "Gram(4 samples of 2 spins)"


def test_popcount_kernel_is_compiled_and_counts_bits():
    out = np.zeros(1, np.int64)
    popcounts.spin_sums(0, 1, np.array([[2**64 - 1, 5]], dtype=np.uint64), 128, out)
    assert out[0] == 2 * 66 - 128

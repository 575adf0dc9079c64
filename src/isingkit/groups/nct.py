"""The Network Comparison Test of van Borkulo et al. (2022), with eLasso: networks are learnt anew
for every relabelling.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from isingkit.arrays import FloatArray, IntArray, Pairs
from isingkit.estimators.elasso import ELassoIsing
from isingkit.exceptions import SettingError
from isingkit.groups.grouped_rows import GroupedRows
from isingkit.groups.networks import model_of_pairs
from isingkit.model import IsingModel

_TIE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class NetworkComparisonTest:
    """Of two groups. Couplings are isingkit's; times 4 they are the weights that IsingFit has."""

    pairs: Pairs  # all
    couplings: FloatArray  # (2, n_pairs)
    fields: FloatArray  # (2, n_spins)
    p_values: FloatArray  # (n_pairs,): of differences, each by itself
    family_p_values: FloatArray  # (n_pairs,): of differences as the largest of all
    p_value: float  # of the largest difference, NCT's M
    strength_p_value: float  # of the difference in global strength, NCT's S

    def models(self, rows: GroupedRows) -> dict[str, IsingModel]:
        """The network of each group."""
        names = rows.packed.names
        models = [
            model_of_pairs(self.pairs, couplings, fields, names)
            for couplings, fields in zip(self.couplings, self.fields, strict=True)
        ]
        return dict(zip(rows.labels, models, strict=True))


def network_comparison_test(
    rows: GroupedRows, n_relabellings: int, rng: Generator
) -> NetworkComparisonTest:
    """eLasso's networks of two groups, and of rows with other labels."""
    _require_plain(rows)
    n_spins = rows.packed.n_spins
    pairs = np.argwhere(np.triu(np.ones((n_spins, n_spins), dtype=bool), 1))
    couplings, fields = _networks(rows, rows.groups, pairs)
    observed = np.abs(couplings[1] - couplings[0])
    strengths = np.abs(couplings).sum(axis=1)
    own_difference = abs(strengths[1] - strengths[0])
    n_as_large = np.zeros(len(pairs), dtype=np.int64)
    n_larger_maximum = np.zeros(len(pairs), dtype=np.int64)
    n_stronger = 0
    for _ in range(n_relabellings):
        relabelled, _ = _networks(rows, rng.permutation(rows.groups), pairs)
        differences = np.abs(relabelled[1] - relabelled[0])
        n_as_large += differences >= observed - _TIE
        n_larger_maximum += differences.max() >= observed - _TIE
        totals = np.abs(relabelled).sum(axis=1)
        difference = abs(totals[1] - totals[0])
        n_stronger += difference >= own_difference - _TIE
    n_labellings = 1 + n_relabellings
    family = (1 + n_larger_maximum) / n_labellings
    p_values = (1 + n_as_large) / n_labellings
    of_strength = (1 + n_stronger) / n_labellings
    return NetworkComparisonTest(
        pairs, couplings, fields, p_values, family, float(family.min()), of_strength
    )


def _require_plain(rows: GroupedRows) -> None:
    """Refuse what NCT knows nothing of."""
    if rows.n_groups > 2:
        problem = f"'nct' with {rows.n_groups} groups"
        raise SettingError(setting="method", value=problem, expected="'score' beyond two groups")
    if rows.units is not None or rows.covariates.shape[1]:
        expected = "'score' with covariates or row_groups, of which 'nct' knows nothing"
        raise SettingError(setting="method", value="nct", expected=expected)


def _networks(rows: GroupedRows, groups: IntArray, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
    """(2, n_pairs) couplings and (2, n_spins) fields of eLasso."""
    models = []
    for group in (0, 1):
        members = np.flatnonzero(groups == group)
        weights = rows.weights[members] if rows.are_weighted else None
        models.append(ELassoIsing().fit(rows.packed[members], sample_weight=weights).model_)
    couplings = [model.couplings.toarray()[tuple(pairs.T)] for model in models]
    return np.array(couplings), np.array([model.fields for model in models])

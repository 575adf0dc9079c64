"""Causes: what acts on spins from outside the network, row by row, beside their neighbours.

Covariates are known. A hidden cause is not: its score is a sum over spins, of which a regression
must not see the spins that it is about, nor bent functions of the score. docs/design/causes.md.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isingkit.arrays import FloatArray, IntArray

_ROWS_PER_CODE = 4  # of the same covariates, on average, for samples to share cells
# on squares of effects, where samples count 1: next to nothing on those of covariates
_FREE, _RIDGE = 1e-3, 0.5
_BENDS = (2.0, 4.0)  # of a hidden cause's score, in units of its spread


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Regressors that belong to rows: covariates, then functions of scores of hidden causes."""

    values: FloatArray  # (n_causes, n_rows)
    # (n_causes, n_spins): what a spin adds to a score, for each it is above its mean; (n_causes, 0)
    # where no cause is made of spins
    loadings: FloatArray
    bends: FloatArray  # (n_causes,): above 0, tanh(bend x value) counts instead
    means: FloatArray  # (n_spins,): of spins; empty where loadings are
    codes: IntArray  # (n_rows,): which of the different rows of values; empty where they are many
    firsts: IntArray  # (n_codes,): a row of each
    n_covariates: int
    # (n_causes, n_covariates): what covariates explain of scores, and is no part of these
    slopes: FloatArray

    @property
    def n_causes(self) -> int:
        return len(self.values)

    @property
    def ridges(self) -> FloatArray:
        """(n_causes,): penalties on squares of effects."""
        return np.where(np.arange(self.n_causes) < self.n_covariates, _FREE, _RIDGE)

    @property
    def covariates(self) -> FloatArray:
        """(n_covariates, n_rows)."""
        return self.values[: self.n_covariates]

    @property
    def regressors(self) -> FloatArray:
        """(n_causes, n_rows): values, bent; no spin is left out of scores."""
        bends = self.bends[:, None]
        return np.where(bends > 0, np.tanh(bends * self.values), self.values)

    @property
    def are_hidden(self) -> bool:
        """Whether some are made of spins."""
        return self.loadings.shape[1] > 0

    def __getitem__(self, rows: slice) -> "Causes":
        """The same causes in some of the rows."""
        if len(self.codes):
            return known_causes(self.values[:, rows])
        return replace(self, values=np.ascontiguousarray(self.values[:, rows]))

    def in_rows(self, spins: FloatArray) -> "Causes":
        """The same causes in all rows of a table, (n_spins, n_rows).

        Where there are covariates, these are the first rows here, too: completions follow.
        """
        n_rows = spins.shape[1]
        if not self.are_hidden:
            return self[:n_rows]
        loadings = self.loadings[self.n_covariates :]
        scores = loadings @ spins - (loadings * self.means) @ np.abs(spins)
        covariates = self.covariates[:, :n_rows] if self.n_covariates else np.empty((0, n_rows))
        scores -= self.slopes[self.n_covariates :] @ covariates
        return replace(self, values=np.concatenate([covariates, scores]))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them."""
        return (self.values, self.loadings, self.bends, self.means, self.codes, self.firsts)


def no_causes(n_rows: int) -> Causes:
    """Nothing but neighbours."""
    return known_causes(np.empty((0, n_rows)))


def known_causes(covariates: FloatArray) -> Causes:
    """Covariates, (n_covariates, n_rows), as they are."""
    n_causes, n_rows = covariates.shape
    codes = firsts = np.empty(0, np.int64)
    if n_causes:
        _, first, code = np.unique(covariates, axis=1, return_index=True, return_inverse=True)
        if _ROWS_PER_CODE * len(first) <= n_rows:
            codes = code.ravel().astype(np.int64)
            firsts = first.astype(np.int64)
    loadings = np.empty((n_causes, 0))
    values = np.ascontiguousarray(covariates)
    slopes = np.zeros((n_causes, n_causes))
    bends = np.zeros(n_causes)
    return Causes(values, loadings, bends, np.empty(0), codes, firsts, n_causes, slopes)


def with_hidden(
    known: Causes,
    scores: FloatArray,
    loadings: FloatArray,
    means: FloatArray,
    slopes: FloatArray,
    bent: bool,
) -> Causes:
    """Known causes and scores of hidden ones, whose spread is 1; bent: and tanh of these.

    scores: (n_hidden, n_rows), sums of loadings, (n_hidden, n_spins), times spins less their means,
    less slopes, (n_hidden, n_covariates), times covariates
    """
    bends = (0.0, *_BENDS) if bent else (0.0,)
    n_hidden = len(scores)
    values = np.concatenate([known.covariates, *[scores] * len(bends)])
    nothing = np.zeros((known.n_covariates, len(means)))
    nowhere = np.empty(0, np.int64)
    nothing_off = np.zeros((known.n_covariates, known.n_covariates))
    n_bends = len(bends)
    of_known = np.zeros(known.n_covariates)
    all_loadings = np.concatenate([nothing, *[loadings] * n_bends])
    all_bends = np.concatenate([of_known, np.repeat(bends, n_hidden)])
    all_slopes = np.concatenate([nothing_off, *[slopes] * n_bends])
    return Causes(
        values,
        all_loadings,
        all_bends,
        means,
        nowhere,
        nowhere,
        known.n_covariates,
        all_slopes,
    )

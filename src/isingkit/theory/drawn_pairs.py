"""Pairs of spins whose estimates of stage one were drawn, and that stage two then decides."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from scipy.special import ndtr

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.theory.pairs import fisher_transformed


@dataclass(frozen=True, slots=True, eq=False)
class DrawnPairs:
    """Kinds of pairs, and drawn candidates of each: how likely these are to pass stage two."""

    count: FloatArray  # (n,): pairs of a kind
    is_edge: BoolArray  # (n,)
    mean: FloatArray  # (n,): of stage one, typically
    second_mean: FloatArray  # (n,): of stage two, typically
    n_drawn: FloatArray  # (n,): pairs of a kind that were drawn, candidates or not
    kind: IntArray  # (n_candidates,)
    centre: FloatArray  # (n_candidates,): mean of stage two given stage one
    std: FloatArray  # (n_candidates,)

    @classmethod
    def mean_of(cls, parts: Sequence[Self]) -> Self:
        """Pairs of several models, each counted in part; kinds stay those of their model."""
        joined = {
            one.name: np.concatenate([getattr(part, one.name) for part in parts])
            for one in fields(cls)
        }
        n_kinds = [len(part.count) for part in parts]
        first_kinds = np.cumsum([0, *n_kinds[:-1]])
        n_candidates = [len(part.kind) for part in parts]
        joined["kind"] = joined["kind"] + np.repeat(first_kinds, n_candidates)
        joined["count"] = joined["count"] / len(parts)
        return cls(**joined)

    def passing(self, threshold: FloatArray, prune: float | None) -> FloatArray:
        """(n_thresholds, n): probability to pass both stages; stage one where prune is None."""
        kept = [self._kept(level) if prune is not None else 1.0 for level in threshold]
        found = np.empty((len(threshold), len(self.count)))
        for place, weights in enumerate(kept):
            every = np.broadcast_to(weights, self.kind.shape)
            found[place] = np.bincount(self.kind, weights=every, minlength=len(self.count))
        return found / self.n_drawn

    def _kept(self, level: float) -> FloatArray:
        """Probability of each candidate to pass stage two."""
        means = self.second_mean
        upper = fisher_transformed(level, means)[self.kind]
        lower = fisher_transformed(level, -means)[self.kind]
        upwards = ndtr((self.centre - upper) / self.std)
        downwards = ndtr((-self.centre - lower) / self.std)
        return np.asarray(upwards + downwards)

"""The way of one pair through the steps of AutoIsing, for people to read."""

from typing import TYPE_CHECKING

import numpy as np

from isingkit.edge_table import interval_text

if TYPE_CHECKING:
    from isingkit.estimators.auto import AutoIsing


def way_of_pair(fit: "AutoIsing", i: int, j: int) -> str:
    """What each step said of spins i < j, a line for each."""
    names = fit.model_.names
    lines = [f"screen     {_screened(fit, i, j)}", *_candidacy(fit, i, j)]
    return "\n".join([*lines, *_causes(fit, i, j), *_verdict(fit, names[i], names[j])])


def _candidacy(fit: "AutoIsing", i: int, j: int) -> list[str]:
    if not (fit.candidates_ == (i, j)).all(axis=1).any():
        return ["candidate  no"]
    both = f"{_eliminated(fit, i, j)}, {_eliminated(fit, j, i)}"
    return ["candidate  yes", f"eliminate  {both}"]


def _causes(fit: "AutoIsing", i: int, j: int) -> list[str]:
    """What the pair was tested given, besides neighbours, where there is anything."""
    n_covariates = 0 if fit._coding is None else len(fit._coding.columns)
    n_hidden = 0 if fit.hidden_ is None else fit.hidden_.n_hidden
    counted = [(n_covariates, "covariate"), (n_hidden, "hidden cause")]
    given = [f"{n} {name}{'s' * (n > 1)}" for n, name in counted if n]
    if not given:
        return []
    lines = [f"causes     tested given {' and '.join(given)}"]
    for k in range(n_hidden):
        both = ", ".join(_loading(fit, spin, k) for spin in (i, j))
        lines.append(f"loadings   on hidden cause {k + 1}: {both}")
    return lines


def _loading(fit: "AutoIsing", spin: int, k: int) -> str:
    assert fit.hidden_ is not None
    loading = fit.hidden_.loadings[spin, k]
    error = fit.hidden_.std_errors[spin, k]
    return f"'{fit.model_.names[spin]}' {loading:+.3f} +- {error:.3f}"


def _verdict(fit: "AutoIsing", source: str, target: str) -> list[str]:
    """What the tests say of a pair."""
    tables = [(fit.edges_, "an edge"), (fit.rejected_, "not an edge")]
    for (table, verdict), weights in zip(tables, fit._weights, strict=True):
        is_pair = (table["source"] == source) & (table["target"] == target)
        for k in np.flatnonzero(is_pair):
            row = table[k]
            error = "" if np.isnan(row["std_error"]) else f" +- {row['std_error']:.3f}"
            if error and table is fit.edges_:
                error += f"; 95 percent interval {interval_text(*fit.intervals_[k].tolist())}"
            numbers = f"p = {row['p_value']:.2g}, q = {row['q_value']:.2g}"
            weight = f"a weight of {weights[k]:.2g}; 1 is usual"
            null = f", against |coupling| <= {fit.at_least:g}" if fit.at_least else ""
            rule = f"by {fit.control} at level {fit.level:g}"
            return [
                f"refit      coupling {row['coupling']:+.3f}{error}",
                f"test       z = {row['z']:+.2f}, {numbers}{null}",
                f"weight     the rest of the network gives it {weight}",
                f"verdict    {verdict}, {rule}",
            ]
    nothing = "nothing in the screen nor in the network found hints at one"
    return [f"verdict    not an edge: {nothing}"]


def _screened(fit: "AutoIsing", i: int, j: int) -> str:
    scores, least = fit.screen_.scores, fit.screen_.least
    score = float(scores[i, j])
    at = f"standard errors at ridge {fit.screen_.ridge:g}"
    if abs(score) < least:  # others as small were not all looked at
        return f"less than {least:.1f} {at}"
    names = fit.model_.names
    ranks = [int((np.abs(scores[[a]]) > abs(score)).sum()) + 1 for a in (i, j)]
    of_both = f"number {ranks[0]} of '{names[i]}', number {ranks[1]} of '{names[j]}'"
    return f"{score:+.1f} {at}: {of_both}"


def _eliminated(fit: "AutoIsing", spin: int, candidate: int) -> str:
    directed = fit.elimination_.directed
    own = directed[:, 0] == spin
    is_it = own & (directed[:, 1] == candidate)
    order = int(fit.elimination_.order[is_it][0])
    done = f"dropped it, number {order} of" if order else "kept it of"
    return f"'{fit.model_.names[spin]}' {done} {own.sum()}"

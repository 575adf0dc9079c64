"""Convex losses of one spin given all others, with absolute-value and quadratic penalties, along
paths of penalties.

The loss of spin i is a function of its fields f = H + sum_j J_j s_j in the samples, through the
margins m = s_i f: logistic: mean log(1 + exp(-2m)); screening: mean exp(-m); log screening: log
mean exp(-m).
"""

import numpy as np
from numba import njit

from isingkit._kernels.elementary import exp, log1p_of_share
from isingkit._kernels.lasso import descend, violation

LOGISTIC, SCREENING, LOG_SCREENING = 0, 1, 2
SEPARATED = np.inf  # the residual that stands for a loss without a minimum
LARGEST_VARIANCE = (
    900.0  # of a coupling, in units of the lightest sample; more only where there is no minimum
)
_ALL_EXPLAINED = 0.999  # share of the loss, where a path that may end early does
_HOPELESS = (
    3  # penalties in a row at which even a perfect fit with half the neighbours would be too costly
)
FAR = 300.0  # couplings that no data can hold up
_NOTHING = 1e-10  # couplings no larger are 0 but for rounding
_SHORTEST = 1e-9  # step of a line search


@njit(cache=True, nogil=True, fastmath=False)
def _least_margin(kind, own, field):
    """What to take off margins before a logarithm of a sum of exponentials, so that none overflows;
    0 for the other losses.
    """
    least = np.inf
    if kind != LOG_SCREENING:
        return 0.0
    for k in range(len(field)):
        least = min(least, own[k] * field[k])
    return least


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def slopes_of_loss(kind, own, field, weights, slope, curvature):
    """slope and curvature: (n_samples,), overwritten with the first two derivatives of the loss by
    each field.

    Of log screening the curvature lacks the outer product of the slopes, which is taken off where
    the Hessian is made.
    """
    if kind == LOGISTIC:
        for k in range(len(field)):
            margin = own[k] * field[k]
            small = exp(-2 * abs(margin))
            share = weights[k] / (1 + small)
            slope[k] = (
                -2 * own[k] * share * (small if margin > 0 else 1.0)
            )  # times the probability of the other value
            curvature[k] = 4 * share * small / (1 + small)
        return
    total = 0.0
    least = _least_margin(kind, own, field)
    for k in range(len(field)):
        term = weights[k] * exp(least - own[k] * field[k])
        total += term
        slope[k] = -term * own[k]
        curvature[k] = term
    if kind == LOG_SCREENING:
        for k in range(len(field)):
            slope[k] /= total
            curvature[k] /= total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def loss_of(kind, own, field, weights):
    """The loss itself."""
    total = 0.0
    if kind == LOGISTIC:
        for k in range(len(field)):
            margin = own[k] * field[k]
            total += weights[k] * (log1p_of_share(exp(-2 * abs(margin))) - 2 * min(margin, 0.0))
        return total
    least = _least_margin(kind, own, field)
    for k in range(len(field)):
        total += weights[k] * exp(least - own[k] * field[k])
    return np.log(total) - least if kind == LOG_SCREENING else total


@njit(cache=True, nogil=True, fastmath=False)
def _penalised(loss, x, l1, l2):
    """The loss and its penalties; x[0] is the field, which has none."""
    for a in range(1, len(x)):
        loss += l1[a] * abs(x[a]) + l2 * x[a] ** 2
    return loss


@njit(cache=True, nogil=True, fastmath=False)
def _extend_hessian(kind, design, known, curvature, slopes, l2, room, hessian):
    """Second derivatives by the unknowns, in place, from row `known` on; those before it stay as
    they are.

    design, room: (n, n_samples)     slopes: (n,), first derivatives
    hessian: (n or more, n or more)
    """
    size = len(design)
    for a in range(known, size):
        for k in range(len(curvature)):
            room[a, k] = design[a, k] * curvature[k]
    rows = np.dot(room[known:size], design.T)
    for a in range(known, size):
        for b in range(size):
            value = rows[a - known, b] - (slopes[a] * slopes[b] if kind == LOG_SCREENING else 0.0)
            hessian[a, b], hessian[b, a] = value, value
        # a trifle keeps steps finite where nothing bends the loss any more, or where there is no
        # field
        hessian[a, a] += 1e-13 * hessian[a, a] + 1e-15 + (2 * l2 if a > 0 else 0.0)


@njit(cache=True, nogil=True, fastmath=False)
def _step(kind, own, field, weights, x, moved, l1, l2, promised, direction, slope, curvature):
    """Move x and field towards `moved`, as far as the objective falls as it should; gives the
    length of the step, 0 for none.

    promised: slope of the objective along the step
    slope, curvature: overwritten with those at the end of the step
    A full step after which the objective would not rise half as steeply as it fell is taken without
    a look at the objective itself: where that is nearly quadratic, as it is near the end, it has
    fallen by at least a quarter of what was promised. Log screening bends too sharply for that at
    strong coupling; it must go on falling.
    """
    n_samples, size = len(field), len(x)
    for k in range(n_samples):
        field[k] += direction[k]
    slopes_of_loss(kind, own, field, weights, slope, curvature)
    along = np.dot(slope, direction)
    for a in range(1, size):
        along += (2 * l2 * moved[a] + l1[a] * np.sign(moved[a])) * (moved[a] - x[a])
    if along <= (0.0 if kind == LOG_SCREENING else -0.5 * promised):
        x[:] = moved
        return 1.0
    for k in range(n_samples):
        field[k] -= direction[k]
    here = _penalised(loss_of(kind, own, field, weights), x, l1, l2)
    length, there, tried = 1.0, moved.copy(), np.empty(n_samples)
    while length > _SHORTEST:
        for k in range(n_samples):
            tried[k] = field[k] + length * direction[k]
        if _penalised(
            loss_of(kind, own, tried, weights), there, l1, l2
        ) <= here + 1e-4 * length * promised + 1e-14 * abs(here):
            x[:] = there
            field[:] = tried
            slopes_of_loss(kind, own, field, weights, slope, curvature)
            return length
        length /= 2
        for a in range(size):
            there[a] = x[a] + length * (moved[a] - x[a])
    slopes_of_loss(kind, own, field, weights, slope, curvature)
    return 0.0


@njit(cache=True, nogil=True, fastmath=False)
def _admit(i, keep, slopes, level, scales, spins, place, spin_of, design, size):
    """Add to the design the couplings whose slope exceeds level * scale; gives the new size of the
    design.
    """
    for j in range(len(keep)):
        if keep[j] and j != i and place[j] < 0 and abs(slopes[j]) > level * scales[j]:
            place[j], spin_of[size] = size, j
            design[size] = spins[j]
            size += 1
    return size


@njit(cache=True, nogil=True, fastmath=False)
def node_paths(
    start, stop, spins, weights, keep, kind, penalties, scales, l2, fit_fields, tolerance, most_steps, least_gain, cost,
    fields, estimates, losses, residuals,
):  # fmt: skip
    """Minimise loss + sum_j penalty * scale_j |J_j| + l2 * J_j^2 for spins start to stop and each
    of their penalties.

    spins: (n_spins, n_samples) float64, -1/+1     weights: (n_samples,), of sum 1
    keep: (n_spins,) bool, spins that change
    penalties: (n_spins, n), falling     scales: (n_spins,)
    fields, losses, residuals: (n, n_spins), overwritten
    estimates: (n, n_spins, n_spins), zero on entry
    Proximal Newton steps on the couplings that may be present; the Hessian is kept while it still
    serves; the optimality of all others is then looked at with one product. Losses are without
    penalties. A residual of infinity: no minimum. With a `cost` of each neighbour, a path ends once
    these alone cost twice as much as the best loss and neighbours so far; twice, for where spins
    can be separated, fits at small penalties may drop neighbours again.
    """
    n_spins, n_samples = spins.shape
    slope, curvature = np.empty(n_samples), np.empty(n_samples)
    design, room = np.empty((n_spins + 1, n_samples)), np.empty((n_spins + 1, n_samples))
    hessian = np.empty((n_spins + 1, n_spins + 1))
    lightest = max(weights.min(), 0.01 / n_samples)  # weights may be next to nothing
    design[0] = (
        1.0 if fit_fields else 0.0
    )  # the field's row; the others are those of couplings that may be present
    for i in range(start, stop):
        if not keep[i]:
            continue
        own = spins[i]
        place, spin_of = (
            np.full(n_spins, -1),
            np.full(n_spins + 1, -1),
        )  # of spins in the design, and back
        all_x, all_l1 = np.zeros(n_spins + 1), np.zeros(n_spins + 1)
        if fit_fields:
            all_x[0] = np.arctanh(np.dot(weights, own))
        field = np.full(n_samples, all_x[0])
        slopes = np.zeros(n_spins)
        size, known, before, null, gained = (
            1,
            0,
            np.inf,
            1.0,
            0.0,
        )  # known: rows of the Hessian that serve
        best, hopeless = np.inf, 0
        for number in range(penalties.shape[1]):
            penalty = penalties[i, number]
            # in a path, couplings that the next penalty will probably let in; without penalty, all
            level = -1.0 if penalty == 0.0 else np.inf if number == 0 else 2 * penalty - before
            size = _admit(i, keep, slopes, level, scales, spins, place, spin_of, design, size)
            before = penalty
            residual, last = np.inf, np.inf
            slopes_of_loss(kind, own, field, weights, slope, curvature)
            for _ in range(most_steps):
                for a in range(1, size):
                    all_l1[a] = penalty * scales[spin_of[a]]
                part, x, l1 = design[:size], all_x[:size], all_l1[:size]
                plain = np.dot(part, slope)
                gradient = plain + 2 * l2 * x
                gradient[0] = plain[0]
                residual = 0.0
                for a in range(size):
                    residual = max(residual, violation(gradient[a], x[a], l1[a]))
                if residual <= tolerance:
                    slopes[:] = np.dot(spins, slope)
                    level = penalty * (1 + 1e-12) + tolerance
                    wider = _admit(
                        i, keep, slopes, level, scales, spins, place, spin_of, design, size
                    )
                    if wider == size:
                        break
                    size, last = wider, np.inf
                    continue
                if residual > 0.2 * last:
                    known = 0
                fresh = known == 0
                if known < size:
                    _extend_hessian(kind, part, known, curvature, plain, l2, room, hessian)
                known, last = size, residual
                moved = x.copy()
                if penalty == 0.0:
                    moved -= np.linalg.solve(hessian[:size, :size].copy(), gradient)
                else:
                    descend(hessian, moved, gradient.copy(), l1, 0.02 * residual, 500)
                promised = 0.0
                for a in range(size):
                    promised += gradient[a] * (moved[a] - x[a]) + l1[a] * (
                        abs(moved[a]) - abs(x[a])
                    )
                direction = np.dot(moved - x, part)
                length = _step(
                    kind,
                    own,
                    field,
                    weights,
                    x,
                    moved,
                    l1,
                    l2,
                    promised,
                    direction,
                    slope,
                    curvature,
                )
                if (
                    np.abs(x).max() > FAR
                ):  # only log screening goes on falling faster than absolute values rise
                    residual = SEPARATED
                    break
                if length == 0.0 and fresh:
                    break
                if length < 1.0:
                    known = 0
            if penalty == 0.0 and l2 == 0.0:
                plain = np.dot(design[:size], slope)
                _extend_hessian(kind, design[:size], 0, curvature, plain, l2, room, hessian)
                known = size
                variances = np.diag(np.linalg.inv(hessian[:size, :size].copy()))
                for a in range(1, size):
                    if not 0 < variances[a] < LARGEST_VARIANCE / lightest:
                        residual = SEPARATED
            loss = loss_of(kind, own, field, weights)
            fields[number, i], losses[number, i], residuals[number, i] = all_x[0], loss, residual
            for a in range(1, size):
                if abs(all_x[a]) > _NOTHING:
                    estimates[number, i, spin_of[a]] = all_x[a]
            if least_gain > 0:
                if number == 0:
                    null = loss
                explained = 1 - loss / null
                if number >= 5 and (explained - gained < least_gain or explained > _ALL_EXPLAINED):
                    break
                gained = explained
            if cost > 0:
                n_neighbours = 0
                for a in range(1, size):
                    n_neighbours += abs(all_x[a]) > _NOTHING
                best = min(best, loss + cost * n_neighbours)
                hopeless = hopeless + 1 if cost * n_neighbours > 2 * best else 0
                if hopeless == _HOPELESS:
                    break

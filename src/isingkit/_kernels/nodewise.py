"""Convex losses of one spin given all others, with absolute-value and quadratic penalties, along
paths of penalties.

The loss of spin i is a function of its fields f = H + sum_k B_k z_k + sum_j J_j s_j in the samples,
z covariates, through the margins m = s_i f: logistic: mean log(1 + exp(-2m)); screening: mean
exp(-m); log screening: log mean exp(-m).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from isingkit._kernels.cholesky import factorize, products, solve, variances_of
from isingkit._kernels.elementary import exp, log1p_of_share
from isingkit._kernels.flags import CACHE, KERNEL, PART, VECTOR_PART
from isingkit._kernels.lasso import minimise_quadratic, violation

LOGISTIC = None  # so that numba, which looks at types, leaves out the code of the others
SCREENING = 1
LOG_SCREENING = 2
SEPARATED = np.inf  # the residual that stands for a loss without a minimum
# of a coupling, in units of the lightest sample; more only where there is no minimum
LARGEST_VARIANCE = 900.0
_ALL_EXPLAINED = 0.999  # share of the loss, where a path that may end early does
_FEWEST = 5  # penalties of such a path
# penalties in a row at which even a perfect fit with half the neighbours would be too costly
_HOPELESS = 3
FAR = 300.0  # couplings that no data can hold up
_NOTHING = 1e-10  # couplings no larger are 0 but for rounding
_SHORTEST = 1e-9  # step of a line search
_ROUNDS = 100  # in which the minimum of a quadratic model is looked for
_FALLS_ENOUGH = 0.2  # of the residual in a step, for the Hessian to be kept


class Samples(NamedTuple):
    """What the losses are of."""

    spins: np.ndarray  # (n_spins, n_samples) float64: -1/+1
    weights: np.ndarray  # (n_samples,): of sum 1
    changes: np.ndarray  # (n_spins,) bool: spins that are not constant
    scales: np.ndarray  # (n_spins,): of the penalty of each coupling, by the spin at its other end
    first_fields: np.ndarray  # (n_spins,): where to start
    covariates: np.ndarray  # (n, n_samples) float64


class Settings(NamedTuple):
    """What is minimised, and when to stop."""

    loss: int | None
    l2: float
    fit_fields: bool
    tolerance: float  # of the residual
    most_steps: int  # for each penalty
    least_gain: float  # of the share of the loss explained; a path that gains less ends, 0 for none
    cost: float  # of each neighbour, in units of the loss; 0 where a path is not to end early
    largest_variance: float  # of a coupling without penalties; more only where there is no minimum


class Results(NamedTuple):
    """What comes out, for each penalty."""

    fields: np.ndarray  # (n, n_spins), overwritten
    estimates: np.ndarray  # (n, n_spins, n_spins), zero on entry
    losses: np.ndarray  # (n, n_spins), overwritten: without penalties
    residuals: np.ndarray  # (n, n_spins), overwritten: distance to optimality, or SEPARATED
    effects: np.ndarray  # (n, n_spins, n_covariates), overwritten
    # (n_spins, n_covariates), overwritten: of the effects, without penalties and times samples
    variances: np.ndarray


class _Room(NamedTuple):
    """What is known of one spin and what its steps overwrite.

    Few arrays of many rows, because numba takes long over functions of many arrays. Unknowns are
    the spin's field and the effects of covariates, which are free, and after these the couplings
    that may be present: at most `most`, n_spins + 1 + n_covariates.
    """

    design: np.ndarray  # (most, n_samples): 1 for the field, covariates, spins for couplings
    hessian: np.ndarray  # (most, most)
    factor: np.ndarray  # (most, most)
    of_samples: np.ndarray  # (5, n_samples): FIELD, SLOPE, ...
    of_unknowns: np.ndarray  # (8, most): X, PLAIN, ...
    places: np.ndarray  # (3, most) int64: PLACE, SPIN, ACTIVE


FIELD = 0  # of the spin in each sample
SLOPE = 1  # of the loss by each field
CURVATURE = 2  # of the loss
DIRECTION = 3  # change of the fields in a full step
TRIED = 4  # fields after a step

X = 0  # the unknowns
PLAIN = 1  # slopes of the loss by them
GRADIENT = 2  # with those of the quadratic penalty
SLOPES = 3  # of the loss by the couplings of all spins, where they were last looked at
# as `minimise_quadratic` takes them
MOVED = 4  # where a full step leads
THERE = 5  # where a shorter step leads
L1 = 6  # penalties
ROOM = 7

PLACE = 0  # of a spin's coupling among the unknowns, or -1
SPIN = 1  # of an unknown
ACTIVE = 2  # unknowns that move together


@njit(**PART)
def _least_margin(own, field):
    """What to take off margins before a logarithm of a sum of exponentials, so that none
    overflows.
    """
    least = np.inf
    for k in range(len(field)):
        least = min(least, own[k] * field[k])
    return least


@njit(
    cache=CACHE,
    nogil=True,
    no_cfunc_wrapper=True,
    error_model="numpy",
    fastmath={"contract", "reassoc"},
)
def slopes_of_loss(kind, own, field, weights, slope, curvature):
    """slope and curvature: (n_samples,), overwritten with the first two derivatives of the loss by
    each field.

    Of log screening the curvature lacks the outer product of the slopes, which is taken off where
    the Hessian is made.
    """
    if kind is None:
        for k in range(len(field)):
            margin = own[k] * field[k]
            small = exp(-2 * abs(margin))
            share = weights[k] / (1 + small)
            other = small if margin > 0 else 1.0  # over share: the probability of the other value
            slope[k] = -2 * own[k] * share * other
            curvature[k] = 4 * share * small / (1 + small)
        return
    total = 0.0
    least = _least_margin(own, field) if kind == LOG_SCREENING else 0.0
    for k in range(len(field)):
        term = weights[k] * exp(least - own[k] * field[k])
        total += term
        slope[k] = -term * own[k]
        curvature[k] = term
    if kind == LOG_SCREENING:
        for k in range(len(field)):
            slope[k] /= total
            curvature[k] /= total


@njit(
    cache=CACHE,
    nogil=True,
    no_cfunc_wrapper=True,
    error_model="numpy",
    fastmath={"contract", "reassoc"},
)
def loss_of(kind, own, field, weights):
    """The loss itself."""
    total = 0.0
    if kind is None:
        for k in range(len(field)):
            margin = own[k] * field[k]
            total += weights[k] * (log1p_of_share(exp(-2 * abs(margin))) - 2 * min(margin, 0.0))
        return total
    least = _least_margin(own, field) if kind == LOG_SCREENING else 0.0
    for k in range(len(field)):
        total += weights[k] * exp(least - own[k] * field[k])
    return np.log(total) - least if kind == LOG_SCREENING else total


# Kernels that only other kernels call have no wrappers for Python, which take as long to compile as
# the kernels themselves. LLVM optimises whatever a kernel calls once more in each caller: what has
# one caller and no loops of its own to speak of is inlined.


@njit(**KERNEL)
def node_paths(start, stop, samples, penalties, settings, results):
    """Minimise loss + sum_j penalty * scale_j |J_j| + l2 * J_j^2 for spins start to stop and each
    of their penalties.

    samples: Samples     penalties: (n_spins, n), falling     settings: Settings
    results: Results
    Proximal Newton steps on the couplings that may be present; the Hessian is kept while it still
    serves; the optimality of all others is then looked at with one product. With a cost of each
    neighbour, a path ends once these alone cost twice as much as the best loss and neighbours so
    far; twice, for where spins can be separated, fits at small penalties may drop neighbours again.
    """
    n_spins, n_samples = samples.spins.shape
    n_free = 1 + len(samples.covariates)
    most = n_spins + n_free
    room = _Room(
        np.empty((most, n_samples)),
        np.empty((most, most)),
        np.empty((most, most)),
        np.empty((5, n_samples)),
        np.empty((8, most)),
        np.empty((3, most), np.int64),
    )
    field = room.of_samples[FIELD]
    x = room.of_unknowns[X]
    history = np.empty(4)
    for i in range(start, stop):
        if not samples.changes[i]:
            continue
        _clear(room, samples.first_fields[i], samples.covariates, settings.fit_fields)
        size = np.int64(n_free)
        known = np.int64(0)  # rows of the Hessian that serve
        before = np.inf
        for number in range(penalties.shape[1]):
            penalty = penalties[i, number]
            # in a path, couplings that the next penalty will probably let in; without one, all
            level = -1.0 if penalty == 0.0 else np.inf if number == 0 else 2 * penalty - before
            before = penalty
            size, known, residual = _minimise(
                i, samples, penalty, level, settings, room, size, known
            )
            loss = loss_of(settings.loss, samples.spins[i], field, samples.weights)
            results.fields[number, i] = x[0]
            results.losses[number, i] = loss
            results.residuals[number, i] = residual
            _note_effects(room.of_unknowns, results.effects[number, i], results.variances[i])
            n_neighbours = _note_estimates(
                x, room.places, n_free, size, results.estimates[number, i]
            )
            if _is_over(number, loss, n_neighbours, settings, history):
                break


@njit(**PART)
def _clear(room, first_field, covariates, fit_fields):
    """Make room for another spin: no couplings or effects, and the field to start with."""
    design = room.design
    of_samples = room.of_samples
    unknowns = room.of_unknowns
    for k in range(design.shape[1]):
        design[0, k] = 1.0 if fit_fields else 0.0
        of_samples[FIELD, k] = first_field
    for a in range(len(covariates)):
        for k in range(design.shape[1]):
            design[1 + a, k] = covariates[a, k]
    for a in range(len(design)):
        unknowns[X, a] = 0.0
        unknowns[L1, a] = 0.0
        unknowns[SLOPES, a] = 0.0
        room.places[PLACE, a] = -1
    unknowns[X, 0] = first_field


@njit(**PART, inline="always")
def _minimise(i, samples, penalty, level, settings, room, size, known):
    """The minimum for one penalty, by Newton steps; gives how many unknowns there are, how many
    rows of the Hessian serve, and the residual.
    """
    kind = settings.loss
    l2 = settings.l2
    tolerance = settings.tolerance
    spins, weights, _, scales, _, covariates = samples
    n_free = 1 + len(covariates)
    design, hessian, factor, of_samples, unknowns, places = room
    field = of_samples[FIELD]
    slope = of_samples[SLOPE]
    curvature = of_samples[CURVATURE]
    plain = unknowns[PLAIN]
    slopes = unknowns[SLOPES]
    own = spins[i]
    residual = np.inf
    last = np.inf
    size = _admit(i, samples, level, slopes, design, places, size)
    slopes_of_loss(kind, own, field, weights, slope, curvature)
    for _ in range(settings.most_steps):
        products(slope, design, size, plain)
        residual = _residual(penalty, scales, l2, unknowns, places, n_free, size)
        if residual <= tolerance:
            products(slope, spins, len(spins), slopes)
            wider = _admit(
                i, samples, penalty * (1 + 1e-12) + tolerance, slopes, design, places, size
            )
            if wider == size:
                break
            size = wider
            last = np.inf
            continue
        if residual > _FALLS_ENOUGH * last:
            known = np.int64(0)
        is_fresh = known == 0
        _extend_hessian(kind, l2, design, of_samples, plain, known, n_free, size, hessian)
        known = size
        last = residual
        promised = _aim(penalty, residual, hessian, factor, unknowns, places, size)
        length = _step(kind, own, weights, l2, design, of_samples, unknowns, n_free, size, promised)
        if _largest(unknowns[X], size) > FAR:
            # only log screening goes on falling faster than absolute values rise
            residual = SEPARATED
            break
        if length == 0.0 and is_fresh:
            break
        if length < 1.0:
            known = np.int64(0)
    if penalty == 0.0 and l2 == 0.0:
        products(slope, design, size, plain)
        _extend_hessian(kind, l2, design, of_samples, plain, np.int64(0), n_free, size, hessian)
        known = size
        factorize(hessian, factor, size)
        variances_of(factor, unknowns[THERE], unknowns[MOVED], size)
        if not _are_below(unknowns[MOVED], settings.largest_variance, size):
            residual = SEPARATED
    return size, known, residual


@njit(**PART)
def _admit(i, samples, level, slopes, design, places, size):
    """Add to the design the couplings whose slope exceeds level * scale; gives the new size of the
    design.
    """
    for j in range(len(samples.spins)):
        may_be = samples.changes[j] and j != i and places[PLACE, j] < 0
        if may_be and abs(slopes[j]) > level * samples.scales[j]:
            places[PLACE, j] = size
            places[SPIN, size] = j
            for k in range(design.shape[1]):
                design[size, k] = samples.spins[j, k]
            size += 1
    return size


@njit(**PART)
def _residual(penalty, scales, l2, unknowns, places, n_free, size):
    """How far the unknowns are from optimal; their penalties and the gradient are overwritten."""
    residual = 0.0
    for a in range(size):
        x = unknowns[X, a]
        l1 = penalty * scales[places[SPIN, a]] if a >= n_free else 0.0
        gradient = unknowns[PLAIN, a] + (2 * l2 * x if a >= n_free else 0.0)
        unknowns[L1, a] = l1
        unknowns[GRADIENT, a] = gradient
        residual = max(residual, violation(gradient, x, l1))
    return residual


@njit(**PART)
def _extend_hessian(kind, l2, design, of_samples, plain, known, n_free, size, hessian):
    """Second derivatives by the unknowns, in place, from row `known` on; those before it stay as
    they are.
    """
    curvature = of_samples[CURVATURE]
    weighted = of_samples[TRIED]
    for a in range(known, size):
        for k in range(len(curvature)):
            weighted[k] = design[a, k] * curvature[k]
        products(weighted, design, a + 1, hessian[a])
        for b in range(a + 1):
            if kind == LOG_SCREENING:
                hessian[a, b] -= plain[a] * plain[b]
            hessian[b, a] = hessian[a, b]
        # a trifle keeps steps finite where nothing bends the loss any more, or where there is no
        # field
        hessian[a, a] += 1e-13 * hessian[a, a] + 1e-15 + (2 * l2 if a >= n_free else 0.0)


@njit(**PART, inline="always")
def _aim(penalty, residual, hessian, factor, unknowns, places, size):
    """Where the quadratic model of the loss has its minimum with penalties, into MOVED; gives the
    slope of the objective along the way.
    """
    x = unknowns[X]
    l1 = unknowns[L1]
    gradient = unknowns[GRADIENT]
    moved = unknowns[MOVED]
    change = unknowns[THERE]
    for a in range(size):
        moved[a] = x[a]
        change[a] = gradient[a]
    if penalty == 0.0:
        factorize(hessian, factor, size)
        solve(factor, change, size)
        for a in range(size):
            moved[a] -= change[a]
    else:
        last, active = unknowns[MOVED:], places[ACTIVE]
        minimise_quadratic(hessian, factor, last, active, size, 0.02 * residual, _ROUNDS)
    promised = 0.0
    for a in range(size):
        promised += gradient[a] * (moved[a] - x[a]) + l1[a] * (abs(moved[a]) - abs(x[a]))
    return promised


@njit(**PART, inline="always")
def _step(kind, own, weights, l2, design, of_samples, unknowns, n_free, size, promised):
    """Move X and FIELD towards MOVED, as far as the objective falls as it should; gives the length
    of the step, 0 for none.

    promised: slope of the objective along the step
    SLOPE, CURVATURE: overwritten with those at the end of the step
    A full step after which the objective would not rise half as steeply as it fell is taken without
    a look at the objective itself: where that is nearly quadratic, as it is near the end, it has
    fallen by at least a quarter of what was promised. Log screening bends too sharply for that at
    strong coupling; it must go on falling.
    """
    field = of_samples[FIELD]
    slope = of_samples[SLOPE]
    curvature = of_samples[CURVATURE]
    tried = of_samples[TRIED]
    l1 = unknowns[L1]
    _try_full_step(design, of_samples, unknowns, size)
    slopes_of_loss(kind, own, tried, weights, slope, curvature)
    steepest = 0.0 if kind == LOG_SCREENING else -0.5 * promised
    if _slope_along(of_samples, unknowns, l2, n_free, size) <= steepest:
        _take_step(of_samples, unknowns, size)
        return 1.0
    here = _penalised(loss_of(kind, own, field, weights), unknowns[X], l1, l2, n_free, size)
    length = 1.0
    while length > _SHORTEST:
        value = loss_of(kind, own, tried, weights)
        value = _penalised(value, unknowns[THERE], l1, l2, n_free, size)
        # log screening is 0 without couplings, and rounded as if it were 1
        if value <= here + 1e-4 * length * promised + 1e-14 * max(1.0, abs(here)):
            _take_step(of_samples, unknowns, size)
            slopes_of_loss(kind, own, field, weights, slope, curvature)
            return length
        length /= 2
        _try_part(of_samples, unknowns, length, size)
    slopes_of_loss(kind, own, field, weights, slope, curvature)
    return 0.0


@njit(**VECTOR_PART)
def _try_full_step(design, of_samples, unknowns, size):
    """THERE, DIRECTION and TRIED: overwritten with those of the whole way to MOVED."""
    direction = of_samples[DIRECTION]
    for k in range(len(direction)):
        direction[k] = 0.0
    for a in range(size):
        unknowns[THERE, a] = unknowns[MOVED, a]
        change = unknowns[MOVED, a] - unknowns[X, a]
        if change != 0.0:
            for k in range(len(direction)):
                direction[k] += change * design[a, k]
    for k in range(len(direction)):
        of_samples[TRIED, k] = of_samples[FIELD, k] + direction[k]


@njit(**PART)
def _try_part(of_samples, unknowns, length, size):
    """THERE and TRIED: overwritten with those of a part of the way."""
    for a in range(size):
        unknowns[THERE, a] = unknowns[X, a] + length * (unknowns[MOVED, a] - unknowns[X, a])
    for k in range(of_samples.shape[1]):
        of_samples[TRIED, k] = of_samples[FIELD, k] + length * of_samples[DIRECTION, k]


@njit(**PART)
def _take_step(of_samples, unknowns, size):
    for a in range(size):
        unknowns[X, a] = unknowns[THERE, a]
    for k in range(of_samples.shape[1]):
        of_samples[FIELD, k] = of_samples[TRIED, k]


@njit(**VECTOR_PART)
def _slope_along(of_samples, unknowns, l2, n_free, size):
    """The slope of the objective at the end of a full step, along it."""
    along = 0.0
    for k in range(of_samples.shape[1]):
        along += of_samples[SLOPE, k] * of_samples[DIRECTION, k]
    for a in range(n_free, size):
        moved = unknowns[MOVED, a]
        sign = 1.0 if moved > 0 else -1.0 if moved < 0 else 0.0
        along += (2 * l2 * moved + unknowns[L1, a] * sign) * (moved - unknowns[X, a])
    return along


@njit(**PART)
def _penalised(loss, x, l1, l2, n_free, size):
    """The loss and its penalties; the field and effects of covariates, which come first, have
    none.
    """
    for a in range(n_free, size):
        loss += l1[a] * abs(x[a]) + l2 * x[a] * x[a]
    return loss


@njit(**PART)
def _largest(x, size):
    largest = 0.0
    for a in range(size):
        largest = max(largest, abs(x[a]))
    return largest


@njit(**PART)
def _are_below(variances, largest, size):
    """Whether all effects and couplings have variances that a loss with a minimum can have."""
    n_below = 0
    for a in range(1, size):
        n_below += 0 < variances[a] < largest
    return n_below == size - 1


@njit(**PART)
def _note_effects(unknowns, effects, variances):
    """Write down the effects of covariates and, where there were no penalties, their variances."""
    for a in range(len(effects)):
        effects[a] = unknowns[X, 1 + a]
        variances[a] = unknowns[MOVED, 1 + a]


@njit(**PART)
def _note_estimates(x, places, n_free, size, estimates):
    """Write down the couplings that are not 0; gives their number."""
    n_neighbours = 0
    for a in range(n_free, size):
        if abs(x[a]) > _NOTHING:
            estimates[places[SPIN, a]] = x[a]
            n_neighbours += 1
    return n_neighbours


@njit(**PART)
def _is_over(number, loss, n_neighbours, settings, history):
    """Whether smaller penalties are not worth a look.

    history: (4,), the first loss, the share of it explained so far, the least loss with the cost
    of its neighbours, and for how many penalties neighbours alone cost twice as much
    """
    if number == 0:
        history[0] = loss
        history[1] = 0.0
        history[2] = np.inf
        history[3] = 0.0
    if settings.least_gain > 0:
        explained = 1 - loss / history[0]
        gain = explained - history[1]
        if number >= _FEWEST - 1 and (gain < settings.least_gain or explained > _ALL_EXPLAINED):
            return True
        history[1] = explained
    if settings.cost > 0:
        cost = settings.cost * n_neighbours
        history[2] = min(history[2], loss + cost)
        history[3] = history[3] + 1 if cost > 2 * history[2] else 0.0
        return history[3] == _HOPELESS
    return False

"""Slow, plain twins of what the package computes. Imports nothing of it."""

import itertools

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from sklearn.linear_model import LinearRegression, Ridge


def pair_sums(values):
    """Sums over samples of products of two columns, by the definition."""
    n_spins = values.shape[1]
    return np.array(
        [
            [int((values[:, i].astype(int) * values[:, j]).sum()) for j in range(n_spins)]
            for i in range(n_spins)
        ]
    )


def regressions(values, penalty, fit_fields, weights=None):
    """Coefficients and intercepts of each column on all others, by scikit-learn's regressions."""
    n_spins = values.shape[1]
    rows = np.zeros((n_spins, n_spins))
    intercepts = np.zeros(n_spins)
    for i in range(n_spins):
        others = [j for j in range(n_spins) if j != i]
        if penalty:
            model = Ridge(alpha=penalty, fit_intercept=fit_fields, solver="svd")
        else:
            model = LinearRegression(fit_intercept=fit_fields)
        model.fit(values[:, others], values[:, i], sample_weight=weights)
        rows[i, others] = model.coef_
        intercepts[i] = model.intercept_
    return rows, intercepts


def two_stage(values, ridge, prune, fit_fields):
    """The paper's two stages for each column: ridge on all others, least squares on what passes."""
    n_spins = values.shape[1]
    stage_one, _ = regressions(values, ridge * n_spins, fit_fields)
    stage_two = np.zeros_like(stage_one)
    for i in range(n_spins):
        kept = np.flatnonzero(np.abs(stage_one[i]) > prune)
        if len(kept):
            model = LinearRegression(fit_intercept=fit_fields)
            stage_two[i, kept] = model.fit(values[:, kept], values[:, i]).coef_
    return stage_one, stage_two


def probabilities(couplings, fields):
    """All states of a small Ising model and their probabilities, by enumeration."""
    states = np.array(list(itertools.product((-1, 1), repeat=len(fields))))
    energy = 0.5 * np.einsum("si,ij,sj->s", states, couplings, states) + states @ fields
    weight = np.exp(energy - energy.max())
    return states, weight / weight.sum()


def completed_inverse(matrix, unknown):
    """Inverse of the completed matrix, which is zero at the unknown pairs, by Newton's steps."""
    matrix = matrix.copy()
    for _ in range(200):
        inverse = np.linalg.inv(matrix)
        gradient = np.array([inverse[i, j] for i, j in unknown])
        if np.abs(gradient).max() < 1e-15:
            break
        hessian = np.array(
            [
                [inverse[i, k] * inverse[j, m] + inverse[i, m] * inverse[j, k] for k, m in unknown]
                for i, j in unknown
            ]
        )
        step = np.linalg.solve(hessian, gradient)
        for (i, j), change in zip(unknown, step, strict=True):
            matrix[i, j] += change
            matrix[j, i] += change
    return np.linalg.inv(matrix)


def cayley_tree(degree, depth, coupling, rng):
    """Couplings of a regular tree around spin 0, with random signs, and spins' generations."""
    parents = [-1]
    generations = [0]
    last = [0]
    for generation in range(1, depth + 1):
        fresh = []
        for parent in last:
            for _ in range(degree - (generation > 1)):
                fresh.append(len(parents))
                parents.append(parent)
                generations.append(generation)
        last = fresh
    strengths = coupling * rng.choice([-1, 1], len(parents))
    return tree_couplings(parents, strengths), np.array(generations)


def tree_couplings(parents, strengths):
    """Matrix of couplings of a tree: spin i > 0 hangs on parents[i] < i by strengths[i]."""
    couplings = np.zeros((len(parents), len(parents)))
    for i in range(1, len(parents)):
        couplings[i, parents[i]] = couplings[parents[i], i] = strengths[i]
    return couplings


def tree_correlations(parents, strengths):
    """<s_i s_j> on a tree: the product of tanh J along the path, built spin by spin."""
    n = len(parents)
    correlations = np.eye(n)
    for i in range(1, n):
        through_parent = np.tanh(strengths[i]) * correlations[parents[i], :i]
        correlations[i, :i] = through_parent
        correlations[:i, i] = through_parent
    return correlations


def mean_estimates(correlations, effective_ridge):
    """(C + k) J = b for spin 0 on all others, by the definition; J, and 1 - 2 b J + J C J."""
    b = correlations[1:, 0]
    rest = correlations[1:, 1:]
    means = np.linalg.solve(rest + effective_ridge * np.eye(len(b)), b)
    return means, 1 - 2 * b @ means + means @ rest @ means


def least_squares_scatter(couplings, i, j):
    """M times the variance of J_ij, and covariance with J_ji, by least squares on true neighbours.

    By enumeration.
    """
    n = len(couplings)
    states = np.array(list(itertools.product([-1, 1], repeat=n)), dtype=float)
    weights = np.exp(np.einsum("ai,ij,aj->a", states, couplings, states) / 2)
    weights /= weights.sum()

    def influence(a, b):
        near = np.flatnonzero(couplings[a])
        matrix = states[:, near].T @ (weights[:, None] * states[:, near])
        means = np.linalg.solve(matrix, states[:, near].T @ (weights * states[:, a]))
        residual = states[:, a] - states[:, near] @ means
        return residual * (np.linalg.inv(matrix) @ states[:, near].T)[list(near).index(b)]

    first = influence(i, j)
    second = influence(j, i)
    return weights @ first**2, weights @ (first * second)


def node_loss(kind, values, weights, i, field, row):
    """Mean loss of spin i: pseudolikelihood, interaction screening, or the latter's logarithm."""
    margins = values[:, i] * (field + values @ row)
    if kind == "logistic":
        return weights @ np.log1p(np.exp(-2 * margins))
    mean = weights @ np.exp(-margins)
    return np.log(mean) if kind == "log screening" else mean


def penalised(kind, values, weights, l1, l2, joint):
    """Fields and couplings, spin by spin or symmetric, by L-BFGS on positive and negative parts."""
    n = values.shape[1]
    above = [(a, b) for a in range(n) for b in range(a + 1, n)]

    def solve(n_fields, n_couplings, loss):
        def difference(x):
            return x[n_fields : n_fields + n_couplings] - x[n_fields + n_couplings :]

        def objective(x):
            couplings = difference(x)
            sizes = x[n_fields : n_fields + n_couplings] + x[n_fields + n_couplings :]
            return loss(x[:n_fields], couplings) + l1 * sizes.sum() + l2 * (couplings**2).sum()

        bounds = [(None, None)] * n_fields + [(0, None)] * (2 * n_couplings)
        settings = {"maxiter": 10_000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10}
        start = np.zeros(len(bounds))
        x = minimize(objective, start, method="L-BFGS-B", bounds=bounds, options=settings).x
        return x[:n_fields], difference(x)

    fields = np.zeros(n)
    couplings = np.zeros((n, n))
    if joint:

        def matrix(x):
            full = np.zeros((n, n))
            for (a, b), value in zip(above, x, strict=True):
                full[a, b] = full[b, a] = value
            return full

        def total(h, x):
            return (
                sum(node_loss(kind, values, weights, i, h[i], matrix(x)[i]) for i in range(n)) / 2
            )

        fields, x = solve(n, len(above), total)
        return fields, matrix(x)
    for i in range(n):
        others = [j for j in range(n) if j != i]

        def one(h, x, i=i, others=others):
            row = np.zeros(n)
            row[others] = x
            return node_loss(kind, values, weights, i, h[0], row)

        h, couplings[i, others] = solve(1, n - 1, one)
        fields[i] = h[0]
    return fields, couplings


def mean_field_couplings(method, means, covariance):
    """Couplings by the definitions, pair by pair, in long double where digits would be lost."""
    n = len(means)
    inverse = np.linalg.inv(covariance)
    couplings = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            mi, mj, q, c = (
                np.longdouble(x) for x in (means[i], means[j], inverse[i, j], covariance[i, j])
            )
            cells = {
                (a, b): (1 + a * mi + b * mj + a * b * (c + mi * mj)) / 4
                for a in (-1, 1)
                for b in (-1, 1)
            }
            pair = np.log(cells[1, 1] * cells[-1, -1] / (cells[1, -1] * cells[-1, 1])) / 4
            if method == "naive":
                couplings[i, j] = -q
            elif method == "tap":
                roots = np.roots([float(2 * mi * mj), 1.0, float(q)])
                couplings[i, j] = min(roots.real, key=abs)
            elif method == "bethe":
                root = np.sqrt(1 + 4 * (1 - mi**2) * (1 - mj**2) * q**2)
                couplings[i, j] = -np.arctanh(
                    root / (2 * q)
                    - mi * mj
                    - np.sqrt((root - 2 * mi * mj * q) ** 2 - 4 * q**2) / (2 * q)
                )
            elif method == "sessak-monasson":
                couplings[i, j] = pair - q - c / ((1 - mi**2) * (1 - mj**2) - c**2)
            else:
                couplings[i, j] = pair
    return couplings


def likeliest(values, l2=0.0):
    """Fields and couplings of the largest exact likelihood of a few spins, by BFGS."""
    n = values.shape[1]
    states = np.array(list(itertools.product((-1, 1), repeat=n)))
    above = np.triu_indices(n, 1)
    statistics = np.hstack([states, states[:, above[0]] * states[:, above[1]]])
    wanted = np.hstack([values, values[:, above[0]] * values[:, above[1]]]).mean(axis=0)

    def loss(x):
        energy = statistics @ x
        weights = np.exp(energy - energy.max())
        log_z = energy.max() + np.log(weights.sum())
        gradient = statistics.T @ (weights / weights.sum()) - wanted
        gradient[n:] += 2 * l2 * x[n:]
        return log_z - x @ wanted + l2 * (x[n:] ** 2).sum(), gradient

    settings = {"gtol": 1e-9, "maxiter": 10_000}
    x = minimize(loss, np.zeros(len(wanted)), jac=True, method="BFGS", options=settings).x
    couplings = np.zeros((n, n))
    couplings[above] = x[n:]
    return x[:n], couplings + couplings.T


def backward_elimination(values, i, near, cost):
    """Neighbours of column i left; the weakest goes while n times the rise of log RSS < cost."""
    near = list(near)

    def rss(chosen):
        if not chosen:
            return ((values[:, i] - values[:, i].mean()) ** 2).sum()
        fit = LinearRegression().fit(values[:, chosen], values[:, i])
        return ((values[:, i] - fit.predict(values[:, chosen])) ** 2).sum()

    while near:
        without = {j: rss([k for k in near if k != j]) for j in near}
        weakest = min(without, key=without.get)
        if len(values) * np.log(without[weakest] / rss(near)) >= cost:
            break
        near.remove(weakest)
    return near


def word(bits):
    """The number that has these bits, the first the lowest."""
    return sum(int(bit) << place for place, bit in enumerate(bits))


def distance_counts(values, step, n_first):
    """Pairs of every step-th row with all others by the columns in which they differ: of the first
    n_first columns, of the rest, of all.
    """
    n_rows, n_columns = values.shape
    counts = np.zeros((3, n_columns + 1), dtype=int)
    for a, b in itertools.combinations(range(n_rows), 2):
        if a % step == 0 or b % step == 0:
            differ = values[a] != values[b]
            counts[0, differ[:n_first].sum()] += 1
            counts[1, differ[n_first:].sum()] += 1
            counts[2, differ.sum()] += 1
    return counts


def close_pairs(values, largest):
    """Pairs of rows that differ in few columns, and in how many."""
    pairs = itertools.combinations(range(len(values)), 2)
    found = [(a, b, int((values[a] != values[b]).sum())) for a, b in pairs]
    return np.array([pair for pair in found if pair[2] <= largest])


def lagged_distances(values, lag):
    """Columns in which rows differ from those some rows later."""
    return (values[lag:] != values[:-lag]).sum(axis=1)


def grouped_variance(values, weights, groups):
    """Variance of a sum whose groups are independent, by a loop; and the degrees of freedom that
    such a variance has at most.
    """
    labels = sorted(set(groups.tolist()))
    mean = values.sum() / weights.sum()
    total = 0.0
    for label in labels:
        own = groups == label
        total += float(values[own].sum() - mean * weights[own].sum()) ** 2
    return total * len(labels) / (len(labels) - 1), len(labels) - 1


def energies_of_states(couplings, fields):
    """(2^n,): -sum_{i<j} J_ij s_i s_j - sum_i H_i s_i; spin i of a state is +1 where bit i is 1."""
    n_spins = len(fields)
    states = [[1 if k >> i & 1 else -1 for i in range(n_spins)] for k in range(2**n_spins)]
    spins = np.array(states, dtype=float)
    return -np.einsum("ki,ij,kj->k", spins, np.triu(couplings, 1), spins) - spins @ fields


def lowest_neighbour(energies, state):
    """The lowest of a state and its neighbours, of equal ones that of the lowest number."""
    n_spins = len(energies).bit_length() - 1
    near = [state, *(state ^ (1 << i) for i in range(n_spins))]
    return min(near, key=lambda one: (energies[one], one))


def descents(energies):
    """(2^n,): where steepest descent from each state ends."""
    steps = [lowest_neighbour(energies, state) for state in range(len(energies))]
    ends = list(range(len(energies)))
    for state in ends:
        while steps[ends[state]] != ends[state]:
            ends[state] = steps[ends[state]]
    return ends


def plateau(energies, state):
    """States of the same energy that flips lead to through states of that energy."""
    n_spins = len(energies).bit_length() - 1
    found = {state}
    todo = [state]
    while todo:
        here = todo.pop()
        for i in range(n_spins):
            other = here ^ (1 << i)
            if energies[other] == energies[here] and other not in found:
                found.add(other)
                todo.append(other)
    return found


def local_minima(energies):
    """States, lowest first, of plateaus without a lower neighbour: of each its lowest number."""
    n_spins = len(energies).bit_length() - 1
    found = set()
    for state in set(descents(energies)):
        flat = plateau(energies, state)
        near = [one ^ (1 << i) for one in flat for i in range(n_spins)]
        if min(energies[one] for one in near) >= energies[state]:
            found.add(min(flat))
    return sorted(found, key=lambda one: (energies[one], one))


def saddle_energies(energies, minima):
    """The highest energy on the lowest path between two minima: paths in a minimum spanning tree of
    the hypercube, whose edges weigh the higher of their ends.
    """
    n_states = len(energies)
    ends = np.array(
        [(k, k ^ (1 << i)) for i in range(n_states.bit_length() - 1) for k in range(n_states)]
    )
    weights = energies[ends].max(axis=1) - energies.min() + 1  # zeros would be no edges
    places = ends.T.astype(np.int32)  # others old scipy does not take
    graph = csr_array((weights, places), shape=(n_states, n_states))
    tree = minimum_spanning_tree(graph)
    found = np.full((len(minima), len(minima)), np.nan)
    for a, start in enumerate(minima):
        _, before = breadth_first_order(tree, start, directed=False)
        for b, state in enumerate(minima):
            way = [state]
            while way[-1] != start:
                way.append(before[way[-1]])
            if a != b:
                found[a, b] = energies[way].max()
    return found


def greedy_climb(couplings, fields, start, goal):
    """The highest energy, above the start's, of a path that flips what costs least next."""

    def energy(state):
        return -state @ np.triu(couplings, 1) @ state - fields @ state

    state = start.astype(float)
    highest = energy(state)
    while (state != goal).any():
        ways = []
        for i in np.flatnonzero(state != goal):
            flipped = state.copy()
            flipped[i] = goal[i]
            ways.append((round(energy(flipped), 9), i))
        state[min(ways)[1]] *= -1
        highest = max(highest, energy(state))
    return highest - energy(start.astype(float))


def is_separable(spins, spin):
    """Whether some combination of the other spins predicts one without exception.

    A linear program: the largest sum of y = s_i sum_j J_j s_j over samples with all y >= 0, J in a
    box; it is positive where J other than 0 exists.
    """
    from scipy.optimize import linprog

    y = np.delete(spins * spins[:, [spin]], spin, axis=1)
    found = linprog(-y.sum(axis=0), A_ub=-y, b_ub=np.zeros(len(y)), bounds=(-1, 1), method="highs")
    return bool(-found.fun > 1e-6)

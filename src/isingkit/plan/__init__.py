"""How many rows will be needed, before there are any: theory's guess, then simulated studies."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.resampling import over_resamples
from isingkit.exceptions import (
    NotEquilibratedError,
    SettingError,
    UnreachableError,
    require_instance,
    require_number,
)
from isingkit.memory import require_memory
from isingkit.methods import FIT_METHODS, command_name, method_named, suggested_settings
from isingkit.model import IsingModel
from isingkit.plan.first_guess import first_guess
from isingkit.plan.result import Plan, Success, value_at
from isingkit.plan.study import MakeEstimator, Question, Studies, Truth, studies_of, study, truth_of
from isingkit.plan.success_curve import Z_95, SuccessCurve, success_curve
from isingkit.worlds.description import described
from isingkit.worlds.graphs import Seed, generator

_STEP = math.log(2) / 8  # between numbers of rows that are simulated
_FEWEST_ROWS = 10
# bytes, at least, of a network that is drawn
_SPIN = 500
_NEIGHBOUR = 100
_BATCH = 16  # studies
_LARGEST_BATCH = 128
_FEWEST_STUDIES = 48
_REACH = math.log(3)  # studies with so many more or fewer rows say nothing of the answer
_ASIDE = 1.2  # in logits: where studies beside the answer are best to learn the slope from
_FARTHEST = 6  # steps aside
_PATIENCE = 20  # times as many studies as expected
_CLEAR = 3.0  # standard errors that the slope must be from zero, or the rows are anybody's guess
_LEVEL = 0.05  # of AutoIsing, and of the first guess


def plan(
    model: Any = None,
    *,
    n_spins: int | None = None,
    mean_degree: float | None = None,
    degree: int | None = None,
    coupling: Any = None,
    negative: float = 0.0,
    prevalence: Any = 0.5,
    method: Any = "auto",
    level: float | None = None,
    find: float = 0.8,
    most_false: float | None = None,
    probability: float = 0.8,
    at_least: float = 0.0,
    precision: float = 0.1,
    max_rows: int = 100_000,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Plan:
    """How many rows a study needs to find a share of the edges with a given probability.

    The network is one that you have, such as that of a pilot study, or is described: then each
    simulated study has a new one of that kind. Theory guesses, from the Fisher information of the
    couplings; studies are simulated around the guess, and a logistic curve in the logarithm of rows
    says where enough of them succeed. Their number follows from `precision`. The same for any
    number of threads.

    Parameters
    ----------
    model
        The planted network: an IsingModel, a fitted estimator, or the path of a model file or of a
        folder that `isingkit fit` has written. Fields are those at the means of covariates.
    n_spins
        Instead of a model: how many columns.
    mean_degree
        How many neighbours a column has on average; any pair may be an edge.
    degree
        Instead of mean_degree: how many each column has.
    coupling
        How strong couplings are: one number, or two, evenly between them. 0.1 to 0.5 are odds
        ratios of 1.5 to 7.4; weights of the 0/1 coding are four times couplings.
    negative
        Share of the couplings that are negative.
    prevalence
        How often a column is +1 (yes, present): one number, or two, evenly between them.
    method
        "auto", "two-stage", "pseudolikelihood", "elasso" or any other name that `isingkit fit`
        knows; an estimator, such as ELassoIsing(gamma=0.5); or a function that makes one of the
        numbers of columns and rows.
    level
        Of "auto": the expected share of false edges; 0.05 by default.
    find
        Share of the edges that a study must find.
    most_false
        Where given: what a study finds must not be false by a larger share. For methods that do not
        control it.
    probability
        With which a study does so.
    at_least
        Edges with weaker couplings need not be found.
    precision
        Half-width of the 95 percent interval of the probability at the answer, by simulation: 0.1
        takes some 100 studies, 0.05 some 300.
    max_rows
        Give up beyond.
    random_state
        Seed or numpy Generator.
    n_jobs
        Threads to use; None or -1 is all.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import isingkit as ik
    >>> answer = ik.plan(
    ...     n_spins=10, mean_degree=2, coupling=(0.2, 0.5), method="two-stage", random_state=0
    ... )
    >>> 100 < answer.low < answer.n_rows < answer.high < 300
    True
    """
    _check_shares(find, most_false, probability, precision)
    require_number("at_least", at_least, at_least=0)
    require_number("max_rows", max_rows, at_least=2 * _FEWEST_ROWS, whole=True)
    description: dict[str, Any] = {
        "n_spins": n_spins,
        "mean_degree": mean_degree,
        "degree": degree,
        "coupling": coupling,
    }
    make_estimator, method_words = _estimator_maker(method, level)
    if model is not None:
        given = [name for name, value in description.items() if value is not None]
        if given:
            expected = "None where there is a model, which has its own"
            raise SettingError(setting=given[0], value=description[given[0]], expected=expected)
        truth = truth_of(_model_of(model))
        question = Question(truth, make_estimator, at_least)
        words = _words_of(truth, model, at_least)
    else:
        kind = described(negative=negative, prevalence=prevalence, **description)
        if kind.coupling[1] < at_least:
            expected = f"at most {kind.coupling[1]:g}, the strongest coupling"
            raise SettingError(setting="at_least", value=at_least, expected=expected)
        degrees = kind.degree or kind.mean_degree or 0
        needed = (_SPIN + _NEIGHBOUR * degrees) * kind.n_spins
        require_memory(needed, n_spins=kind.n_spins, n_samples=_FEWEST_ROWS)
        question = Question(kind, make_estimator, at_least)
        words = str(kind)
    goal = _Goal(Success(find, most_false), probability, precision, max_rows)
    rng = generator(random_state)
    guess = first_guess(question, find, level or _LEVEL, max_rows, rng.spawn(1)[0])
    with tqdm(total=_expected_studies(goal), unit="study", disable=not progress) as bar:

        def simulate(n_rows: list[int]) -> list[Any]:
            tasks = list(zip(n_rows, rng.spawn(len(n_rows)), strict=True))
            found = over_resamples(study, question, tasks, "study", n_jobs, False)
            bar.total = max(bar.total, bar.n + len(tasks))
            bar.update(len(tasks))
            return found

        search = _Search(goal, simulate)
        search.run(guess)
        bar.total = bar.n
        bar.refresh()
    return _answer(search, guess, words, method_words)


# The question


def _check_shares(
    find: float, most_false: float | None, probability: float, precision: float
) -> None:
    for setting, value in (("find", find), ("probability", probability), ("precision", precision)):
        require_number(setting, value, above=0)
    if find > 1:
        raise SettingError(setting="find", value=find, expected="a share, at most 1")
    if most_false is not None:
        require_number("most_false", most_false, at_least=0)
    if probability >= 1:
        raise SettingError(setting="probability", value=probability, expected="below 1")
    if precision >= 0.5:
        raise SettingError(setting="precision", value=precision, expected="below 0.5")


def _model_of(given: Any) -> IsingModel:
    """Of a model, a fitted estimator, or a file or folder."""
    if isinstance(given, str | Path):
        path = Path(given)
        model = IsingModel.load(path / "model.npz" if path.is_dir() else path)
    else:
        model = getattr(given, "model_", given)
    expected = "an IsingModel, a fitted estimator, or the path of a model or of a fit's folder"
    require_instance("model", model, IsingModel, expected)
    return model


def _words_of(truth: Truth, given: Any, at_least: float) -> str:
    strengths = np.abs(truth.model.couplings.data)
    n_edges = int((strengths >= at_least).sum()) // 2 if at_least else truth.model.n_edges
    if n_edges == 0:
        expected = f"one with edges of at least {at_least:g}" if at_least else "one with edges"
        raise SettingError(setting="model", value=truth.model, expected=expected)
    where = f" of {given}" if isinstance(given, str | Path) else ""
    which = f" with couplings of at least {at_least:g}" if at_least else ""
    return f"the network{where}, {truth.model.n_spins} columns and {n_edges} edges{which}"


def _estimator_maker(method: Any, level: float | None) -> tuple[MakeEstimator, str]:
    """What makes an estimator of the numbers of columns and rows, and what it is called."""
    if level is not None and method != "auto":
        expected = "None, or method 'auto'; an estimator has its own"
        raise SettingError(setting="level", value=level, expected=expected)
    if isinstance(method, IsingEstimator):
        method._check_settings()
        return (lambda n_spins, n_rows: method), repr(method)
    if isinstance(method, str):
        return _named(method, level)
    if not callable(method):
        expected = "the name of a method, an estimator, or a function that makes one"
        raise SettingError(setting="method", value=method, expected=expected)
    made = method(2, 100)
    require_instance("method", made, IsingEstimator, "a function that makes an estimator")
    return method, type(made).__name__


def _named(name: str, level: float | None) -> tuple[MakeEstimator, str]:
    """A method as `isingkit fit` has it, with the settings suggested for so many rows."""
    method = method_named(command_name(name))
    if method is None or method not in FIT_METHODS:
        known = ", ".join(f"'{one.name}'" for one in FIT_METHODS)
        raise SettingError(setting="method", value=name, expected=f"one of {known}")

    def make(n_spins: int, n_rows: int) -> Any:
        estimator = method.build(suggested_settings(n_spins, n_rows))
        return estimator if level is None else estimator.set_params(level=level)

    make(2, 100)._check_settings()
    words = type(make(2, 100)).__name__
    return make, f"{words} at level {level or _LEVEL:g}" if method.name == "auto" else words


# The search


@dataclass(frozen=True, slots=True)
class _Goal:
    success: Success
    probability: float
    precision: float
    max_rows: int


def _expected_studies(goal: _Goal) -> int:
    binomial = goal.probability * (1 - goal.probability) * (Z_95 / goal.precision) ** 2
    return 2 * _BATCH + max(_FEWEST_STUDIES, math.ceil(binomial))


@dataclass(slots=True)
class _Search:
    """Studies so far, and where the next ones are best."""

    goal: _Goal
    simulate: Callable[[list[int]], list[Any]]
    done: list[Any] = field(default_factory=list)
    fewest_suffice: bool = False  # known once it has run

    def run(self, guess: float) -> None:
        """Bracket the answer, then simulate around it until it is precise enough."""
        middle = self._bracketed(_step_of(guess))
        while True:
            curve = self.curve(middle * _STEP)
            if self._fewest_suffice(curve):
                self.fewest_suffice = True
                return
            middle = self._middle_of(curve, middle)
            error = Z_95 * curve.error(middle * _STEP) if curve.rises else 1.0
            is_clear = curve.slope_z >= _CLEAR and len(self.done) >= _FEWEST_STUDIES
            if error <= self.goal.precision and is_clear:
                self._require_allowed(curve)
                return
            if len(self.done) > _PATIENCE * _expected_studies(self.goal):
                raise self._unreachable(self._highest)  # more rows are not seen to help
            near = len(self.studies.near(middle * _STEP, _REACH))
            missing = near * ((error / self.goal.precision) ** 2 - 1)
            n_studies = int(min(max(missing / 2, _BATCH), _LARGEST_BATCH))
            self._simulate_around(middle, curve, n_studies)

    @property
    def studies(self) -> Studies:
        return studies_of(self.done)

    def curve(self, log_rows: float) -> SuccessCurve:
        """Through the studies with about so many rows."""
        near = self.studies.near(log_rows, _REACH)
        return success_curve(np.log(near.n_rows), self.goal.success.of(near))

    def _fewest_suffice(self, curve: SuccessCurve) -> bool:
        """Whether as few rows as are simulated are surely enough."""
        low, _ = curve.band(np.array([math.log(_FEWEST_ROWS)]))
        return len(self.done) >= _FEWEST_STUDIES and bool(low[0] >= self.goal.probability)

    def _require_allowed(self, curve: SuccessCurve) -> None:
        """Refuse an answer beyond the most rows: it was read off the curve, and not simulated."""
        if curve.log_rows(self.goal.probability) > math.log(self.goal.max_rows):
            raise self._unreachable(self._highest)

    def _bracketed(self, start: int) -> int:
        """Between a number of rows with which too few studies succeed, and one with which enough
        do.
        """
        place = self._allowed(start)
        enough = self._succeeds(place)
        stride = 4
        while True:
            before = place
            place = self._allowed(place - stride if enough else place + stride)
            if place == before:
                if enough:
                    return place
                raise self._unreachable(place)
            if self._succeeds(place) != enough:
                return (place + before) // 2
            stride = min(2 * stride, 16)

    def _succeeds(self, place: int) -> bool:
        every = self._run([place] * _BATCH)
        return bool(self.goal.success.of(every).mean() >= self.goal.probability)

    def _middle_of(self, curve: SuccessCurve, before: int) -> int:
        """The step nearest to the answer, as far as the curve says where it is."""
        if not curve.rises:
            return before
        near = curve.log_rows(self.goal.probability) / _STEP
        return self._allowed(round(min(max(near, before - 8), before + 8)))

    def _allowed(self, place: int) -> int:
        """The nearest step that is neither too few rows nor too many."""
        return min(max(place, _step_of(_FEWEST_ROWS)), self._highest)

    @property
    def _highest(self) -> int:
        return math.floor(math.log(self.goal.max_rows) / _STEP)

    def _simulate_around(self, middle: int, curve: SuccessCurve, n_studies: int) -> None:
        """Half of them with as many rows as seem needed, the others with more and with fewer."""
        aside = _ASIDE / curve.slope / _STEP if curve.rises else _FARTHEST
        off = min(max(round(aside), 1), _FARTHEST)
        quarter = max(n_studies // 4, 1)
        self._run([middle - off] * quarter + [middle] * 2 * quarter + [middle + off] * quarter)

    def _run(self, places: list[int]) -> Studies:
        """Studies of so many steps."""
        every = self.simulate([_rows_of(place) for place in places])
        for one in every:
            if isinstance(one, NotEquilibratedError):
                expected = (
                    "a network whose rows can be drawn, but here all columns hang together so "
                    "strongly that the sampler sticks: take weaker couplings, fewer neighbours, or "
                    "more negative couplings"
                )
                raise SettingError(setting="coupling", value="too strong", expected=expected)
        self.done += every
        return studies_of(every)

    def _unreachable(self, place: int) -> UnreachableError:
        n_rows = _rows_of(place)
        self._run([place] * _BATCH)
        last = self.studies.near(math.log(n_rows), _STEP / 2)
        return UnreachableError(
            n_rows=n_rows,
            goal=str(self.goal.success),
            success=float(self.goal.success.of(last).mean()),
            found=float(last.found.mean()),
            false_share=float(last.false.mean()),
        )


def _step_of(n_rows: float) -> int:
    return round(math.log(n_rows) / _STEP)


def _rows_of(step: int) -> int:
    return max(round(math.exp(step * _STEP)), _FEWEST_ROWS)


def _answer(search: _Search, guess: float, network: str, method: str) -> Plan:
    goal = search.goal
    middle = float(np.median([math.log(one.n_rows) for one in search.done[-_BATCH:]]))
    curve = search.curve(middle)
    if search.fewest_suffice:
        log_rows = low = high = math.log(_FEWEST_ROWS)
    else:
        log_rows = max(curve.log_rows(goal.probability), math.log(_FEWEST_ROWS))
        low, high = curve.interval(goal.probability)
    studies = search.studies
    at = np.log(studies.n_rows)
    found, found_error = value_at(log_rows, at, studies.found)
    false_share, false_error = value_at(log_rows, at, studies.false)
    return Plan(
        n_rows=math.ceil(round(math.exp(log_rows), 6)),
        low=math.floor(round(math.exp(low), 6)),
        high=math.ceil(round(math.exp(high), 6)),
        goal=goal.success,
        probability=goal.probability,
        precision=Z_95 * curve.error(log_rows),
        found=found,
        found_error=found_error,
        false_share=false_share,
        false_error=false_error,
        first_guess=round(guess),
        network=network,
        method=method,
        studies=studies,
        success=curve,
    )

# ruff: noqa: E501  # tables of a page are not wrapped
"""Write equations.md: which function holds which equation of the paper, and which tests hold the
function to it; why the others need none; theorems, figures and misprints.

An equation is named in square brackets, by the paper's own label, in the docstring of the function
and of the test. All other labels stand below, each with a reason.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LABEL = re.compile(r"\[(eq:[^\]]+)\]")

# the same formula under another label
SAME = {
    "eq:RSS-def-1-2": "eq:RSS-def-2",
    "eq:J-bar-condition-1": "eq:J-bar-condition",
    "eq:J-mean-linear-equation-lamda0": "eq:J-mean-linear-equation-1",
    "eq:Linear-equation-1-1": "eq:J-mean-linear-equation-1",
    "eq:G1x-1": "eq:G1-x-def-1",
    "eq:G3-x-1": "eq:G3-x",
    "eq:R-sparse-def": "eq:R-def-resuls",
    "eq:R-results": "eq:R-def-resuls",
    "eq:inverse-corre-mat-C-1": "eq:ivnerse-correlation-mat-result",
    "eq:EVD-kesi": "eq:EVD-nita-results",
    "eq:eigen-value-result": "eq:EVD-nita-results",
    "eq:Jbar-condition": "eq:solution-Jbar-lamda=00003D0-1",
}
REPLICA = (
    "a step of the replica calculation; its result is what is computed "
    "(`eq:limit-free-energy-sparse`, `eq:EOS-sparse`)"
)
GAUSSIAN = "an identity for Gaussian integrals, used on paper only"
BLOCKS = "a step of the proof of Theorem 1, whose statement is tested on trees"
ROWS = "a step of the proof of Theorem 2, whose bound is tested on trees"
# nothing to compute, because
NOT_NEEDED = {
    "eq:quenched-average-def": "an average over data, which simulations take over seeds",
    "eq:Hamilton": "the cost that `eq:PL-estimator-L2` minimises, under another name",
    "eq:Gibbs-distribution": "at zero temperature it is the estimate itself",
    "eq:partition Z": "its logarithm is only needed at zero temperature",
    "eq:free energy def": REPLICA,
    "eq:F-replica-def": REPLICA,
    "eq:Zn-replicated partition": REPLICA,
    "eq:W-approximate": "the assumption itself: estimates are a mean near the spin, and noise; "
    "simulations of the figures test what follows from it",
    "eq:h-delta": "a step from the assumption to the free energy",
    "eq:wa-l2norm-approx": "a step from the assumption to the free energy",
    "eq:Zn-sparse-def": REPLICA,
    "eq:marginal-distribution": "on a tree only its correlations enter, products of tanh J",
    "eq:q-def": "equal to Q at zero temperature, but for chi / beta",
    "eq:trivial-delta-func": REPLICA,
    "eq:NS-part-sparse": REPLICA,
    "eq:L-part-df-1": REPLICA,
    "eq:limit-temperature-condition": "chi = G1(kappa), which is computed instead",
    "eq:y-hat-def": "for squared errors the maximum is in closed form, `eq:y-hat-result`",
    "eq:y-hat-result": "averages over it are done by hand: they are in `eq:q and a equation`",
    "eq:NS-part-def-appendix": REPLICA,
    "eq:variablechangeU": "a change of variables to the eigenvectors, on paper only",
    "eq:NS-afterOrthogonize": REPLICA,
    "eq:delta-Foulier": REPLICA,
    "eq:eSx+eU": REPLICA,
    "eq:Sx": REPLICA,
    "eq:U-def": REPLICA,
    "eq:H-S transform": GAUSSIAN,
    "eq:H-S-result": GAUSSIAN,
    "eq:eU-result1": GAUSSIAN,
    "eq:indentity-1": GAUSSIAN,
    "eq:interg-wai": GAUSSIAN,
    "eq:eNS/n-result": REPLICA,
    "eq:eNS/n-result-2": REPLICA + "; its G1 and G2 are functions of spectra (`g1`, `g2`)",
    "eq:fixed-point equation-1": "eliminates the conjugates of Q and q; what remains of it is the "
    "inverse of G1 (`inverse_g1`)",
    "eq:L-def-appendix": REPLICA,
    "eq:cov-h-def": REPLICA,
    "eq:local-field-compactform": REPLICA,
    "eq:logL/n-result": REPLICA,
    "eq:temp-results1": REPLICA,
    "eq:bias-estimate": "commented out in the paper's source; the bias is `eq:bias-def`",
    "eq:Gibbs-Gm-1": "its second derivatives are the Bethe matrix, which is computed directly",
    "eq:Covariance-matrix": BLOCKS,
    "eq:Covariance-matrix-1": BLOCKS,
    "eq:Linear-equation-mat-Leafnode": ROWS,
    "eq:Linear-equation-mat-general-node": ROWS,
    "eq:decay-ratio-general-1": ROWS,
}
THEOREMS = """
| theorem | function | tests |
|---|---|---|
| 1: without ridge, absent couplings have mean zero | `theory.linear.linear_means` | `test_theory.test_theorem_one_holds_on_explicit_trees` |
| 2: with ridge, biases fall by a factor a generation | `theory.ridge.decay_bound` | `test_theory.test_theorem_two_bounds_the_decay_on_any_tree` |
"""
FIGURES = """
| figure | label | experiment |
|---|---|---|
| 1 | `fig:tree-graph-NN` | `experiments.fig1_generations` |
| 2 | `fig:Plots-N200-RSSQbias-lambda0` | `experiments.fig2_error_without_ridge` |
| 3 | `fig:RRvsER_noL2` | `experiments.fig3_recovery_without_ridge` |
| 4 | `fig:Plots-N200-RSSQbias` | `experiments.fig4_error_with_ridge` |
| 5 | `fig:Distr-N200-K400-lamda10` | `experiments.fig5_estimates_by_generation` |
| 6 | `fig:two-stage-recall-precision` | `experiments.fig6_two_stage_regular` |
| 7 | `fig:two-stage-beyond-threshold` | `experiments.fig7_candidates` |
| 8 | `fig:ERtwo-stage-recall-precision` | `experiments.fig8_two_stage_erdos_renyi` |

`isingkit reproduce fig4` measures and draws one: [reproduction](reproduction/README.md).
"""
MISPRINTS = r"""
For those who read the paper beside the code. What the code computes is the corrected form, checked by derivation, by integrals done
numerically, and by simulation. None of it changes a result of the paper.

| where | printed | meant |
|---|---|---|
| `eq:EOS-sparse`, both lines | l(y), and no average over s0 and its neighbours | Phi(y); averaged over P(s0, s), the first line with a factor s0, or it would vanish. The appendix has it right (`eq:q and a equation`) |
| `eq:R-def-resuls`, `eq:R-results` | q G3' / G1' | with q = Q, its limit at zero temperature |
| below `eq:RSS_NN` | delta = theta (D - 1) / (D - theta) | theta (D - 1) / (D - theta²), as in Theorem 2 |
| `eq:Jbar-condition` | tanh J / (1 - tanh J) | tanh J / (1 - tanh² J) |
| `eq:decay-ratio-general-1` | the second term | divided by theta (D - 1); in the induction below it, (theta - theta²) likewise stands for (1 - theta²) / (D - 1) |
| above `eq:decay-ratio-general-1` | Phi, the children of a spin | all its descendants; and the bound is reached at leaves, so that it is ≤ |
| `eq:Precision-Recall` | TP, FP and FN are rates | numbers of couplings |
| log L, main text | a sum over replicas in the exponent | no sum |
| `eq:logL/n-result`, second line | E[sum P A] | sum P E[log A] |
| `eq:temp-results1` | Omega | Psi_d |
| S / n, main text and appendix A | - Tr log C⁻¹ / (2N) | + Tr log C⁻¹ / (2N): a constant, which no equation of state has |
| `eq:eSx+eU`, second line, and the integral of e^U over all replicas | | a factor n is missing |
| caption of figure 5 | K = 400 | K = 0.4 |
| appendix on eigenvalues | K_1 = tanh K / (1 - tanh² K) | not the K_1 of stage one, which is `prune` here |
| (c - 1) tanh² K < 1 | the paramagnetic phase | with random signs; where all signs agree it is (c - 1) tanh K < 1 |
| C without spin 0 | the correlations of the system without s0 | regressors have the correlations of the system with it; the spectrum is the same for large N |

The paper does not say how snapshots were spaced, how J_ij and J_ji become one coupling, which K_2 was taken, or how lambda was chosen; what is
done here is said where it is done.
"""


def labelled(folder: Path) -> dict[str, list[str]]:
    """Label -> names of functions, methods, classes or files whose docstring has it."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")

        def visit(node: ast.AST, name: str) -> None:
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                for label in LABEL.findall(ast.get_docstring(node) or ""):
                    found.setdefault(label, []).append(name)
                for child in node.body:
                    visit(child, f"{name}.{getattr(child, 'name', '')}")

        visit(ast.parse(path.read_text()), module)
    return found


def rows() -> dict[str, str]:
    """Label -> its line of the table."""
    code = labelled(ROOT / "src" / "isingkit")
    tests = labelled(ROOT / "tests")
    lines = {}
    for label in set(code) | set(tests):
        functions = ", ".join(f"`{name}`" for name in code.get(label, []))
        checks = ", ".join(f"`{name}`" for name in tests.get(label, []))
        lines[label] = f"| `{label}` | {functions} | {checks} |"
    for label, other in SAME.items():
        lines[label] = f"| `{label}` | as `{other}` | |"
    for label, why in NOT_NEEDED.items():
        lines[label] = f"| `{label}` | not needed because: {why} | |"
    return lines


def page() -> str:
    """The whole of equations.md."""
    table = rows()
    lines = [
        "# Equations",
        "",
        f"From label to function to test, for all {len(table)} labels of the paper. "
        "Written by `python docs/equations.py` from the docstrings.",
        "",
        "| label in the paper | function | tests |",
        "|---|---|---|",
        *[table[label] for label in sorted(table, key=str.lower)],
        "",
        "## Theorems",
        THEOREMS,
        "## Figures",
        FIGURES,
        "## Misprints of the paper",
        MISPRINTS,
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    (ROOT / "docs" / "equations.md").write_text(page())

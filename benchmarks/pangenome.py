"""Pangenome: genes that come and go along a tree of genomes, with couplings that are known.

A made-up table of the kind that slows a search down: lineages make columns collinear, and a
quarter of the genes repeat another's profile.

    python benchmarks/pangenome.py                # fits it, and prints what that cost and found
    python benchmarks/pangenome.py --genes 2870 --genomes 1260
    python benchmarks/pangenome.py --tree clades --genes 2850 --genomes 1260
    python benchmarks/pangenome.py --write pangenome.csv
"""

import argparse
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import isingkit as ik

LINEAGE_BRANCH = 1.0  # from the root to the founder of a lineage, in changes of a gene
INNER_BRANCH = 0.005  # within a lineage, between two genomes that split: more makes sub-lineages
LAST_BRANCH = 0.4  # to a genome
COUPLING = 0.8  # of planted pairs, for genes that are -1 and +1
RARE, COMMON = 0.1, 0.9  # share of genomes that have a gene, in the long run
FEWEST = 0.01  # share of genomes with the rarer state of a gene


@dataclass(frozen=True, slots=True)
class Pangenome:
    """Genes in genomes, and what was planted."""

    genes: NDArray[np.int8]  # (n_genomes, n_genes) of 0 and 1
    names: list[str]
    lineages: NDArray[np.int64]  # (n_genomes,)
    pairs: NDArray[np.int64]  # (n_couplings, 2): genes that are coupled
    copied: NDArray[np.int64]  # (n_genes,): the gene whose profile this one has; itself if none


def pangenome(
    *,
    n_genomes: int = 1300,
    n_genes: int = 5000,
    n_lineages: int = 20,
    n_couplings: int = 300,
    repeated: float = 0.25,
    random_state: int = 0,
) -> Pangenome:
    """Genomes of a tree: a gene is gained and lost along branches, each time as its field and its
    partner say.
    """
    rng = np.random.default_rng(random_state)
    n_own = n_genes - int(repeated * n_genes)
    partner = np.full(n_own, -1)
    pairs = rng.permutation(n_own)[: 2 * n_couplings].reshape(-1, 2)
    partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    first = np.ones(n_own, dtype=bool)
    first[pairs[:, 1]] = False
    genes = _Genes(partner, first, rng)
    sizes = rng.multinomial(n_genomes - 2 * n_lineages, rng.dirichlet(np.full(n_lineages, 2.0))) + 2
    root = genes.along(np.where(rng.random(n_own) < 0.5, -1, 1), 10.0)
    lineages = np.repeat(np.arange(n_lineages), sizes)
    states = np.concatenate(
        [_lineage(genes, genes.along(root, LINEAGE_BRANCH), size, rng) for size in sizes]
    )
    order = rng.permutation(n_genomes)
    states, lineages = states[order], lineages[order]
    copied = np.concatenate([np.arange(n_own), rng.integers(n_own, size=n_genes - n_own)])
    table = (states[:, copied] > 0).astype(np.int8)
    names = [f"gene{j}" for j in range(n_genes)]
    return Pangenome(table, names, lineages, np.sort(pairs, axis=1), copied)


class _Genes:
    """How genes change along a branch."""

    def __init__(
        self, partner: NDArray[np.int64], first: NDArray[np.bool_], rng: Generator
    ) -> None:
        self.partner, self.first, self.rng = partner, first, rng
        shares = rng.uniform(RARE, COMMON, len(partner))
        self.fields = np.log(shares / (1 - shares)) / 2

    def along(self, state: NDArray[np.int64], length: float) -> NDArray[np.int64]:
        """A genome at the end of a branch: genes that change are drawn anew given their partner;
        of a pair one at a time, in steps so small that both hardly ever change in one.
        """
        state = state.copy()
        n_steps = max(1, round(length / 0.1))
        chance = 1 - np.exp(-length / n_steps)
        for _ in range(n_steps):
            for half in (self.first, ~self.first):
                now = np.where(self.partner >= 0, state[self.partner], 0)
                up = 1 / (1 + np.exp(-2 * (self.fields + COUPLING * now)))
                changes = half & (self.rng.random(len(state)) < chance)
                drawn = np.where(self.rng.random(len(state)) < up, 1, -1)
                state = np.where(changes, drawn, state)
        return state


def _lineage(
    genes: _Genes, founder: NDArray[np.int64], size: int, rng: Generator
) -> NDArray[np.int64]:
    """Genomes of one lineage: any of those there may split, until they are enough."""
    tips = [founder]
    while len(tips) < size:
        parent = tips.pop(int(rng.integers(len(tips))))
        tips += [genes.along(parent, INNER_BRANCH), genes.along(parent, INNER_BRANCH)]
    return np.array([genes.along(tip, LAST_BRANCH) for tip in tips])


def clades(*, n_genomes: int, n_genes: int, random_state: int) -> NDArray[np.int8]:
    """Genes without any coupling, on a tree that splits all the way (Kingman's coalescent): each is
    gained on a branch, lost or gained again on one more or so, and misread in some genomes.
    """
    rng = np.random.default_rng(random_state)
    below, lengths = _coalescent(n_genomes, rng)
    by_length = lengths / lengths.sum()
    table = np.zeros((n_genomes, n_genes), np.int8)
    done = 0
    while done < n_genes:
        gene = below[rng.choice(len(below), p=by_length)].copy()
        for branch in rng.choice(len(below), size=rng.poisson(1.0), p=by_length):
            gene[below[branch]] = rng.random() < 0.5
        gene ^= rng.random(n_genomes) < 0.002 * rng.lognormal(0.0, 1.0)
        if FEWEST <= gene.mean() <= 1 - FEWEST:
            table[:, done] = gene
            done += 1
    return table


def _coalescent(n_tips: int, rng: Generator) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Of each branch the tips below it, and its length."""
    live = [np.arange(n_tips) == k for k in range(n_tips)]
    born = [0.0] * n_tips
    branches, lengths = [], []
    now = 0.0
    while len(live) > 1:
        now += rng.exponential(2 / (len(live) * (len(live) - 1)))
        first, second = sorted(rng.choice(len(live), 2, replace=False))
        joined = live[first] | live[second]
        for which in (second, first):
            branches.append(live.pop(which))
            lengths.append(now - born.pop(which))
        live.append(joined)
        born.append(now)
    return np.array(branches), np.array(lengths)


def found_of(fit: ik.AutoIsing, world: Pangenome) -> tuple[int, int]:
    """Edges that were planted, and others; genes of one profile are the same."""
    edges = fit.edges_
    ends = [[int(name.removeprefix("gene")) for name in edges[end]] for end in ("source", "target")]
    found = {tuple(sorted(pair)) for pair in zip(*(world.copied[end] for end in ends), strict=True)}
    planted = {tuple(pair) for pair in world.pairs}
    return len(found & planted), len(found - planted)


def _fit_clades(n_genomes: int, n_genes: int, seed: int) -> None:
    """What it costs where there is nothing to find, and no few lineages explain what is seen."""
    table = clades(n_genomes=n_genomes, n_genes=n_genes, random_state=seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = ik.AutoIsing().fit(table)
    seconds = time.process_time() - start
    print(f"{seconds:.1f} CPU s, {len(fit.alike_)} columns merged, {fit.n_rounds_} rounds")
    print(f"{len(fit.edges_)} edges, none of which was planted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--genomes", type=int, default=1300)
    parser.add_argument("--genes", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", default="auto", help="causes asked for")
    parser.add_argument("--told", action="store_true", help="pass lineages as a covariate")
    parser.add_argument("--tree", choices=("lineages", "clades"), default="lineages")
    parser.add_argument("--write", type=Path, help="only write the table, as CSV")
    options = parser.parse_args()
    if options.tree == "clades":
        _fit_clades(options.genomes, options.genes, options.seed)
        return
    world = pangenome(
        n_genomes=options.genomes,
        n_genes=options.genes,
        n_couplings=round(300 * options.genes / 5000),
        random_state=options.seed,
    )
    if options.write:
        header = ",".join(world.names)
        np.savetxt(options.write, world.genes, "%d", ",", header=header, comments="")
        return
    hidden = options.hidden if options.hidden == "auto" else int(options.hidden)
    lineages = np.array([f"lineage{k}" for k in world.lineages])[:, None]
    packed = replace(ik.pack(world.genes), names=tuple(world.names))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = {"covariates": lineages} if options.told else {}
        fit = ik.AutoIsing(hidden=hidden).fit(packed, **told)
    seconds = time.process_time() - start
    n_true, n_false = found_of(fit, world)
    print(f"{seconds:.1f} CPU s, {len(fit.alike_)} columns merged, {fit.n_rounds_} rounds")
    print(f"{n_true} of {len(world.pairs)} couplings found, and {n_false} other edges")


if __name__ == "__main__":
    main()

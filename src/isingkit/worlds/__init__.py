"""Worlds whose truth is known: teachers, samples of them, exact sums."""

# of the sampler: how spins are updated, and in which order; the first is the default
UPDATES = ("heat-bath", "metropolis")
ORDERS = ("sequential", "random")

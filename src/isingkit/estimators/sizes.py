"""Sizes of what is stored or done in one go. Which pairs are edges does not depend on them."""

MOST_DENSE = 5000  # spins whose pairs fit into memory at ease; beyond, bits are counted as needed
TILE = 4096  # spins that are unpacked at a time; a multiple of 64
WIDE = 4 * TILE  # spins that approximate sums go through at a time
BAND = 1024  # spins of a band: the unit that is recorded, resumed, or sent to a worker
PORTION = 1024  # spins, or pairs, whose residuals are held at a time
DUAL_PORTION = 512  # spins of one triangular product
RESIDUALS = 1 << 22  # numbers of residuals held at a time
CELLS = 1 << 22  # numbers that a table, or bits, are written out as at a time
CACHED_CELLS = 1 << 17  # the same where they are gone through at once, and should stay in cache
MIRROR_TILE = 128  # rows and columns of a matrix that are mirrored at a time
LOOKUP_BYTES = 4 << 30  # of nibbles; beyond, pairs are counted by popcount, which needs bits only

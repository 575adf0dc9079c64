"""What becomes of tables of others that are damaged: told, read as they were, or as something else.

A tenth is cut short, the others have 1, 4 or 30 bits flipped, drawn at random.
"""

import argparse
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from results import Row, markdown, write_settings, write_table

from isingkit.exceptions import IsingkitError
from isingkit.tables import read_spins

OUTCOMES = ("told", "same", "other", "traceback")
N_BITS = (1, 1, 1, 4, 30)


def tables(folder: Path) -> list[Path]:
    """Small tables of each kind."""
    values = np.random.default_rng(0).choice([-1, 1], (60, 5)).astype(np.int8)
    frame = pd.DataFrame(values, columns=list("abcde"))
    np.save(folder / "rows.npy", values)
    np.save(folder / "columns.npy", np.asfortranarray(values, dtype=np.float64))
    np.savez(folder / "plain.npz", X=values)
    np.savez_compressed(folder / "compressed.npz", X=np.asfortranarray(values))
    frame.to_parquet(folder / "plain.parquet")
    frame.to_parquet(folder / "checked.parquet", write_page_checksum=True)
    frame.to_csv(folder / "plain.csv", index=False)
    frame.to_csv(folder / "compressed.csv.gz", index=False)
    return sorted(folder.iterdir())


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    data = bytearray(whole)
    if rng.random() < 0.1:
        return bytes(data[: rng.integers(len(data))])
    for place in rng.integers(len(data), size=rng.choice(N_BITS)):
        data[place] ^= 1 << int(rng.integers(8))
    return bytes(data)


def outcome(path: Path, good: np.ndarray) -> str:
    try:
        return "same" if np.array_equal(np.asarray(read_spins(path).packed), good) else "other"
    except IsingkitError:
        return "told"
    except Exception as error:
        print(f"{path.name}: {error!r}")
        return "traceback"


def measure(n_copies: int, seed: int) -> list[Row]:
    """A row for each kind of table."""
    rng = np.random.default_rng(seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in tables(Path(folder)):
            whole = path.read_bytes()
            good = np.asarray(read_spins(path).packed)
            counts: Counter[str] = Counter()
            for _ in range(n_copies):
                path.write_bytes(damaged(whole, rng))
                counts[outcome(path, good)] += 1
            rows.append({"table": path.name} | {name: counts[name] for name in OUTCOMES})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=300, help="of each kind of table")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    start = time.process_time()
    rows = measure(options.copies, options.seed)
    write_table(options.output / "damaged_tables.csv", rows)
    seconds = time.process_time() - start
    write_settings(options.output / "damaged_tables.json", vars(options), seconds)
    print(markdown([list(rows[0]), *([str(value) for value in row.values()] for row in rows)]))


if __name__ == "__main__":
    main()

"""Tables, good ones and spoilt ones, in files of any format."""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse
from numpy.random import Generator

import isingkit as ik


def table(rng: Generator, most_rows: int = 300, most_columns: int = 14) -> np.ndarray:
    """Rows of columns that follow each other, at times with an odd one."""
    n_rows, n_columns = int(rng.integers(3, most_rows)), int(rng.integers(2, most_columns))
    values = rng.choice([0, 1], (n_rows, n_columns))
    for j in range(1, n_columns):
        is_copied = rng.random(n_rows) < 0.4
        values[is_copied, j] = values[is_copied, rng.integers(j)]
    odd = rng.random()
    if odd < 0.1:
        values[:, 0] = 1
    elif odd < 0.2:
        values[:, -1] = values[:, 0]
    elif odd < 0.25:
        values[:, 0] = 0
        values[rng.integers(n_rows), 0] = 1
    return values


def write_csv(
    path: Path, values: np.ndarray, mark: str = ",", names: Sequence[str] | None = None
) -> Path:
    names = names or [f"q{j}" for j in range(values.shape[1])]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=mark, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(values.tolist())
    return path


def write(data: Path, kind: str, values: np.ndarray) -> None:
    match kind:
        case "csv" | "tsv" | "csv.gz":
            write_csv(data, values, "\t" if kind == "tsv" else ",")
        case "npy":
            np.save(data, values.astype(np.int8))
        case "npz":
            np.savez_compressed(data, table=values.astype(np.int8))
        case "parquet":
            import pandas

            pandas.DataFrame(values, columns=[f"q{j}" for j in range(values.shape[1])]).to_parquet(
                data
            )
        case "spins":
            ik.pack(ik.as_spins(values, mapping=[(0, 1)] * values.shape[1])).save(data)
        case "sparse.npz":
            is_small = len(values) < 40
            scipy.sparse.save_npz(data, scipy.sparse.csr_array(values), compressed=not is_small)
        case "mtx" | "mtx.gz":
            with gzip.open(data, "wb") if kind == "mtx.gz" else data.open("wb") as file:
                scipy.io.mmwrite(file, scipy.sparse.coo_array(values))
        case "rtab" | "rtab.gz":
            lines = [f"q{j}\t" + "\t".join(map(str, column)) for j, column in enumerate(values.T)]
            text = "\n".join([*lines, ""]).encode()
            data.write_bytes(gzip.compress(text) if kind == "rtab.gz" else text)


def spoil(rng: Generator, data: Path) -> None:
    whole = bytearray(data.read_bytes())
    place = int(rng.integers(len(whole)))
    match int(rng.integers(8)):
        case 0:
            whole = whole[:place]
        case 1:
            whole[place] ^= 1 << int(rng.integers(8))
        case 2:
            whole[place:place] = rng.bytes(int(rng.integers(1, 9)))
        case 3:
            whole = bytearray(bytes(whole).decode("latin-1").encode("utf-16"))
        case 4:
            whole = bytearray(gzip.compress(bytes(whole)))
        case 5:
            whole[place:place] = b',,"\n;\x00nan,-1e999\r'
        case 6:
            whole = whole[place:]
        case 7:
            whole[place : place + 40] = whole[:40]
    data.write_bytes(whole)

"""Checkpoint: finished bands of a screen, each a file that knows what it belongs to."""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit.archives import arrays_in
from isingkit.atomic import replacing
from isingkit.checksums import checksum_of_arrays, checksum_of_facts
from isingkit.exceptions import CheckpointError, DamagedRecordsWarning, warn
from isingkit.result_table import Record

ALIKE = "alike"  # the folder within for searches that allow for rows which are alike
_LABEL = "screen.json"
_RECORDS = "band-*.npz"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder of records of one screen of one table."""

    folder: Path
    owner: str  # checksum of what records belong to: data, settings, version

    def read(self, numbers: range) -> dict[int, dict[str, NDArray[Any]]]:
        """Arrays of bands that are recorded; a warning counts what cannot be used."""
        paths = {number: self._path(number) for number in numbers if self._path(number).exists()}
        found = {number: self._arrays(number, path) for number, path in paths.items()}
        sound = {number: arrays for number, arrays in found.items() if arrays is not None}
        if len(sound) < len(found):
            n_damaged = len(found) - len(sound)
            warn(DamagedRecordsWarning(folder=self.folder, n_damaged=n_damaged))
        return sound

    def write(self, number: int, **arrays: NDArray[Any]) -> None:
        """Record the arrays of a band."""
        named: dict[str, Any] = arrays | {"belongs": self._belongs(number)}
        with replacing(self._path(number)) as temporary, open(temporary, "wb") as file:
            np.savez(file, **named, checksum=checksum_of_arrays(named))

    def _arrays(self, number: int, path: Path) -> dict[str, NDArray[Any]] | None:
        """Those of a record; None where it is damaged, or of something else."""
        try:
            with open(path, "rb") as file:
                arrays = arrays_in(file)
        except Exception:  # damage shows in many ways: zipfile, tokenize, numpy each have their own
            return None
        checksum = str(arrays.pop("checksum", ""))
        is_sound = checksum == checksum_of_arrays(arrays)
        if not is_sound or str(arrays.pop("belongs")) != str(self._belongs(number)):
            return None
        return arrays

    def _belongs(self, number: int) -> np.str_:
        return np.str_(f"{self.owner} {number}")

    def _path(self, number: int) -> Path:
        return self.folder / f"band-{number:05d}.npz"


def checkpoint_in(folder: Path, wanted: Record) -> Checkpoint:
    """The checkpoint of what `wanted` describes; a folder labelled otherwise is refused."""
    folder.mkdir(parents=True, exist_ok=True)
    label = folder / _LABEL
    if not label.exists():
        with replacing(label) as temporary:
            temporary.write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")
    try:
        found = json.loads(label.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if found != wanted:
        raise CheckpointError(folder=folder)
    return Checkpoint(folder, checksum_of_facts(wanted))


def clear_checkpoint(folder: Path) -> None:
    """Delete records, and the folder where it holds nothing else."""
    for place in (*(folder / ALIKE).glob("*"), folder / ALIKE, folder):
        for path in (*place.glob(_RECORDS), place / _LABEL):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or not there
            place.rmdir()

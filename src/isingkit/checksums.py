"""Checksums: what tells a file that is as it was written from one that is not."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def checksum_of_arrays(arrays: Mapping[str, Any]) -> str:
    """SHA-256 of names, kinds, shapes and values of arrays, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        about = [name, array.dtype.str, list(np.shape(arrays[name]))]
        digest.update(json.dumps(about).encode() + b"\n")
        digest.update(array.data)
    return digest.hexdigest()


def checksum_of_facts(facts: Mapping[str, Any]) -> str:
    """SHA-256 of what JSON can hold, whatever the order of its names."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def checksum_of_file(path: Path) -> str:
    """SHA-256 of all bytes of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

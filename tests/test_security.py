"""What comes from others does no harm: no code is run, memory is bounded, markup is text."""

import gzip
import pickle
import resource
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.tables import read_spins

MEBI = 1 << 20


class Harmful:
    """What, unpickled, would say so."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


@pytest.mark.parametrize("kind", ["npy", "npz", "model", "spins"])
def test_nothing_is_unpickled(tmp_path, kind):
    harmful = np.array([Harmful(), Harmful()], dtype=object)
    path = tmp_path / f"x.{'npz' if kind == 'model' else kind}"
    if kind == "npy":
        np.save(path, harmful, allow_pickle=True)
    elif kind == "spins":
        path.write_bytes(pickle.dumps(harmful))
    else:
        np.savez(path, data=harmful, names=harmful, format=harmful)
    read = ik.IsingModel.load if kind == "model" else read_spins
    with pytest.raises(ex.IsingkitError):
        read(path)


PEAK = """
import re, sys
sys.argv = ["isingkit", "check", sys.argv[1]]
from isingkit.cli import main
try:
    main()
finally:
    # not getrusage: a new process inherits the peak of the one that started it
    print("MiB", int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.parametrize("lines", ["without end", "of too many cells"])
def test_a_gzip_bomb_is_refused_before_it_fills_memory(tmp_path, lines):
    """Seen to fail: 1.3 MB that hold a line of 300 MiB took 2 GB, and ten times that ten times as
    much.
    """
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", 1) as file:
        if lines == "of too many cells":
            file.write(b"a,b,c\n")
        for _ in range(300):
            file.write(b"00" * (MEBI // 2) if lines == "without end" else b"0," * (MEBI // 2))
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "its first rows take more than 64 MiB" in done.stderr
    assert int(done.stdout.split()[-1]) < 600


def test_an_archive_that_claims_more_than_memory_is_refused(tmp_path):
    """Before any of it is read; and one that holds more than it claims is damaged."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", b"\x93NUMPY" + bytes(30 * MEBI))
    whole = bytearray(path.read_bytes())
    size = struct.pack("<I", 30 * MEBI + 6)
    for claim in (struct.pack("<I", 2**32 - 2), struct.pack("<I", 100)):
        path.write_bytes(bytes(whole).replace(size, claim))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ex.IsingkitError):
            ik.IsingModel.load(path)
        with pytest.raises(ex.IsingkitError):
            read_spins(path)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert (after - before) // 1024 < 200


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+1", "-1", "<script>alert(1)</script>"])
def test_names_are_written_as_they_are_and_are_no_markup(tmp_path, name):
    """Formulas in names reach edges.csv unchanged, as docs/security.md says: names are keys."""
    model = ik.IsingModel([[0, 0.5], [0.5, 0]], names=[name, "b"])
    model.to_csv(tmp_path / "edges.csv")
    assert (tmp_path / "edges.csv").read_text().splitlines()[1].startswith(f"{name},b,")
    for markup in (model._repr_html_(),):
        assert "<script>" not in markup

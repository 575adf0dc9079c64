import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isingkit as ik
from isingkit import exceptions as ex

LENGTHS = [1, 2, 63, 64, 65, 127, 128, 129, 200]


def random_spins(seed, n_samples, n_spins, missing=False):
    rng = np.random.default_rng(seed)
    values = rng.choice(np.array([-1, 1], np.int8), (n_samples, n_spins))
    if missing:
        values[rng.random(values.shape) < 0.2] = 0
    names = tuple(f"x{j}" for j in range(n_spins))
    return values, ik.pack(ik.Spins(values, names, (((-1, 1),) * n_spins), None, missing))


@pytest.mark.parametrize("few", [0, 1 << 20])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_samples", LENGTHS)
def test_unpacking_gives_back_what_was_packed(n_samples, missing, few, monkeypatch):
    monkeypatch.setattr("isingkit.packing._FEW", few)  # by kernels, by numpy
    values, packed = random_spins(0, n_samples, 7, missing)
    assert packed.shape == values.shape == (packed.n_samples, packed.n_spins)
    assert len(packed) == n_samples
    np.testing.assert_array_equal(np.asarray(packed), values)
    np.testing.assert_array_equal(np.asarray(packed, dtype=float), values)


@given(
    st.integers(0, 2**32),
    st.integers(1, 300),
    st.integers(0, 300),
    st.integers(0, 300),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_slices_are_those_of_the_array_and_concatenate_back(seed, n_samples, start, stop, missing):
    values, packed = random_spins(seed, n_samples, 3, missing)
    np.testing.assert_array_equal(np.asarray(packed[start:stop]), values[start:stop])
    start, stop = sorted((min(start, n_samples), min(stop, n_samples)))
    parts = [packed[:start], packed[start:stop], packed[stop:]]
    whole = ik.PackedSpins.concatenate(parts)
    np.testing.assert_array_equal(whole.words, packed.words)
    np.testing.assert_array_equal(np.asarray(whole), values)


def test_rows_and_columns_are_chosen_as_in_an_array():
    values, packed = random_spins(1, 150, 9)
    for key in (np.array([3, 1, 149]), values[:, 0] > 0, slice(10, 140, 3), slice(None, None, -1)):
        np.testing.assert_array_equal(np.asarray(packed[key]), values[key])
    np.testing.assert_array_equal(np.asarray(packed[5:77, [2, 8]]), values[5:77, [2, 8]])
    assert packed[:, [2, 8]].names == ("x2", "x8")
    np.testing.assert_array_equal(np.asarray(packed[:, 2:4]), values[:, 2:4])
    np.testing.assert_array_equal(np.asarray(packed[7]), values[7:8])


def test_parts_over_other_spins_do_not_concatenate():
    with pytest.raises(ex.ModelMismatchError, match="one has 2 columns and the other 3"):
        ik.PackedSpins.concatenate([random_spins(0, 5, 2)[1], random_spins(0, 5, 3)[1]])
    with pytest.raises(ex.CodingMismatchError, match=r"'x0' was read as \(0, 1\).*\(1, 2\)"):
        ik.PackedSpins.concatenate([ik.pack([[0, 1], [1, 0]]), ik.pack([[1, 2], [2, 1]])])


def test_no_samples_at_all_are_saved_and_counted(tmp_path):
    nothing = random_spins(0, 5, 2)[1][:0]
    assert repr(nothing) == "PackedSpins(0 samples of 2 spins)"
    nothing.save(tmp_path / "data.spins")
    assert ik.PackedSpins.load(tmp_path / "data.spins").shape == (0, 2)
    assert not ik.gram(nothing).sums.any()


def test_files_are_readable_by_others_as_the_user_wants_and_folders_must_exist(tmp_path):
    _, packed = random_spins(2, 130, 5)
    old = os.umask(0o027)
    packed.save(tmp_path / "data.spins")
    os.umask(old)
    assert (tmp_path / "data.spins").stat().st_mode & 0o777 == 0o640
    with pytest.raises(FileNotFoundError, match="nowhere'$"):
        packed.save(tmp_path / "nowhere" / "data.spins")


def test_a_file_that_is_replaced_keeps_its_permissions_and_a_link_to_it(tmp_path):
    path = tmp_path / "data.spins"
    link = tmp_path / "link.spins"
    path.write_bytes(b"before")
    path.chmod(0o600)
    link.symlink_to(path.name)
    ik.pack([[1, -1], [-1, 1]]).save(link)
    assert link.is_symlink()
    assert ik.PackedSpins.load(path).n_samples == 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data.spins", "link.spins"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_a_pipe_is_written_into_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    opened = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    ik.IsingModel([[0, 0.5], [0.5, 0]]).to_csv(pipe)
    assert os.read(opened, 1000).startswith(b"source,target,coupling")
    os.close(opened)
    assert pipe.is_fifo()
    assert [one.name for one in tmp_path.iterdir()] == ["pipe.csv"]


@pytest.mark.skipif(not Path("/dev/stdout").is_symlink(), reason="standard output has no name")
def test_standard_output_is_written_to_by_its_name(tmp_path):
    """Where it is a file, too: bytes go behind what is printed, into the same file. By a link, so
    that a writer who replaces files does no harm to the machine.
    """
    link = tmp_path / "link.csv"
    link.symlink_to("/dev/stdout")
    script = (
        "import isingkit as ik; print('before', flush=True); "
        f"ik.IsingModel([[0, 1], [1, 0]]).to_csv({str(link)!r}); print('after')"
    )
    output = tmp_path / "output.txt"
    with open(output, "ab") as stream:
        subprocess.run([sys.executable, "-c", script], stdout=stream, check=True)
    lines = output.read_text().split()
    assert lines[0] == "before"
    assert lines[1].startswith("source,target")
    assert lines[-1] == "after"
    piped = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert piped.stdout.decode().split() == lines


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("read", [ik.PackedSpins.load, ik.PackedSpins.map])
def test_a_file_gives_back_what_was_saved(tmp_path, read, missing):
    values, packed = random_spins(2, 130, 5, missing)
    packed.save(tmp_path / "data.spins")
    back = read(tmp_path / "data.spins")
    np.testing.assert_array_equal(np.asarray(back), values)
    assert (back.names, back.n_samples, back.mapping) == (
        packed.names,
        packed.n_samples,
        packed.mapping,
    )
    np.testing.assert_array_equal(ik.gram(back).sums, ik.gram(packed).sums)


def test_mapped_spins_stay_on_disk(tmp_path):
    random_spins(2, 130, 5)[1].save(tmp_path / "data.spins")
    assert isinstance(ik.PackedSpins.map(tmp_path / "data.spins").words, np.memmap)


def test_other_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "data.spins"
    path.write_bytes(b"hello")
    with pytest.raises(ex.FileFormatError, match="does not start with ISINGPK2"):
        ik.PackedSpins.map(path)
    random_spins(2, 130, 5)[1].save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    with pytest.raises(ex.FileFormatError, match="bytes of"):
        ik.PackedSpins.map(path)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ex.FileFormatError, match="checksum"):
        ik.PackedSpins.load(path)
    path.write_bytes(whole[:8] + b"\xff" * 8 + whole[16:])
    with pytest.raises(ex.FileFormatError, match="header is longer than the file"):
        ik.PackedSpins.load(path)


def first_version(packed, **changed):
    """The file as the first version of the format had it: without a checksum of the header."""
    data = packed.words.tobytes() + (b"" if packed.present is None else packed.present.tobytes())
    facts = {
        "n_samples": packed.n_samples, "n_spins": packed.n_spins, "names": packed.names,
        "mapping": packed.mapping, "has_missing": packed.present is not None,
        "crc32": zlib.crc32(data),
    }  # fmt: skip
    header = json.dumps(facts | changed).encode()
    header += b" " * (-(16 + len(header)) % 64)
    return b"ISINGPK1" + len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize("missing", [False, True])
def test_a_file_of_the_first_version_is_read(tmp_path, missing):
    values, packed = random_spins(2, 130, 5, missing)
    (tmp_path / "data.spins").write_bytes(first_version(packed))
    for read in (ik.PackedSpins.load, ik.PackedSpins.map):
        np.testing.assert_array_equal(np.asarray(read(tmp_path / "data.spins")), values)


@pytest.mark.parametrize(
    "changed",
    [
        {"n_samples": "130"}, {"n_samples": 130.0}, {"n_samples": -1}, {"n_spins": None},
        {"names": "abcde"[:4]}, {"names": [1, 2, 3, 4, 5]}, {"names": 3}, {"mapping": [[0, 1]]},
        {"mapping": [[[0], 1]] * 5}, {"mapping": 7}, {"has_missing": 1}, {"crc32": "no"},
    ],
)  # fmt: skip
def test_a_header_that_makes_no_sense_is_refused(tmp_path, changed):
    """Seen to fail: wrong types gave tracebacks."""
    (tmp_path / "data.spins").write_bytes(first_version(random_spins(2, 130, 5)[1], **changed))
    with pytest.raises(ex.FileFormatError, match="header cannot be read"):
        ik.PackedSpins.load(tmp_path / "data.spins")


@pytest.mark.parametrize("missing", [False, True])
def test_every_flipped_bit_is_noticed(tmp_path, missing):
    """By `load` and `map`; seen to fail: names, n_samples and, of `map`, all data were not."""
    path = tmp_path / "data.spins"
    random_spins(2, 70, 3, missing)[1].save(path)
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 7):  # each byte, and each place in it
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ex.FileFormatError):
            ik.PackedSpins.load(path)
        with pytest.raises(ex.FileFormatError):
            ik.PackedSpins.map(path)


def test_saving_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    _, packed = random_spins(2, 130, 5)
    packed.save(tmp_path / "data.spins")
    before = (tmp_path / "data.spins").read_bytes()
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        packed[:10].save(tmp_path / "data.spins")
    assert [path.name for path in tmp_path.iterdir()] == ["data.spins"]
    assert (tmp_path / "data.spins").read_bytes() == before


def test_a_file_of_a_newer_version_is_refused_kindly(tmp_path):
    path = tmp_path / "data.spins"
    ik.pack([[0, 1], [1, 0]]).save(path)
    path.write_bytes(b"ISINGPK3" + path.read_bytes()[8:])
    with pytest.raises(
        ex.FileFormatError,
        match="version 3 of the format, which a newer isingkit has written; update isingkit",
    ):
        ik.PackedSpins.load(path)

import json
import subprocess
import sys

import pytest

from isingkit import __version__
from isingkit.cli import main


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return stopped.value.code, *capsys.readouterr()


def test_help_and_version_are_there(capsys):
    for arguments in (["--help"], ["-h"], []):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "demo" in out
    assert run(capsys, "--version")[1].strip() == f"isingkit, version {__version__}"
    assert "--output" in run(capsys, "demo", "--help")[1]


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["demo", "--nonsense"], ["demo", "--seed", "many"]])
def test_a_mistake_exits_2_with_one_line_that_says_what_to_do(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("isingkit: ")
    assert err.count("\n") == 1
    assert "--help" in err


def test_a_folder_that_cannot_be_made_exits_2_with_one_line(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run(capsys, "demo", "-o", str(tmp_path / "file" / "folder"))
    assert code == 2
    assert err.rstrip().split("\n")[-1].startswith("isingkit: ") or "isingkit: " in err


def test_demo_finds_both_networks_and_draws_them(tmp_path):
    """Run as a user would, from another folder: one JSON object on stdout, progress on stderr."""
    command = [sys.executable, "-m", "isingkit", "demo", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    small, large = facts["planted"]
    assert (small["n_spins"], small["n_samples"]) == (200, 180)
    assert min(small["precision"], small["recall"]) > 0.85
    assert min(large["precision"], large["recall"]) > 0.97
    assert facts["digits"]["touching_share"] > 0.8 > 5 * facts["digits"]["touching_by_chance"]
    assert (tmp_path / "isingkit-demo" / "networks.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "isingkit-demo" / "digits-edges.csv").read_text().count("\n") == facts["digits"]["edges_found"] + 1
    assert "drawing" in done.stderr


def test_demo_prints_a_table_for_people(capsys, tmp_path):
    code, out, _ = run(capsys, "demo", "-o", str(tmp_path))
    assert code == 0
    assert "precision    recall" in out
    assert "join touching pixels" in out
    assert str(tmp_path / "networks.png") in out

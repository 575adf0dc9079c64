"""Every code block of README.md and docs/*.md runs and prints what the page says. Guides run in
`make docs`, where a warning is an error.

Blocks of a page run in order, in one folder with a survey.csv in it. A ```text block after one is
what it prints; a number in a comment after an expression is its value. `make` and `pip install` are
looked up instead. `<!-- not run: reason -->` before a block, with a reason listed here, leaves it
out. `python tests/test_docs.py PAGE ...` writes what blocks print into the pages.
"""

import ast
import contextlib
import io
import math
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import isingkit as ik
import isingkit.dask
from isingkit import exceptions as ex
from isingkit.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
REASONS = {
    "takes minutes; tests/test_reproduce.py runs every figure",
    "stays until it is stopped; tests/test_app.py runs it",
    "takes a while; tests/test_cli.py runs it",
}
MAY_WARN = {  # the pages say so
    "choosing_a_method.md": (ex.ReliabilityWarning, ex.OrderedTeacherWarning),
    "how_much_data.md": (ex.ReliabilityWarning,),
    "limits.md": (ex.OrderedTeacherWarning,),
    "structure_without_knobs.md": (ex.ReliabilityWarning,),
}


@dataclass
class Block:
    language: str
    code: str
    line: int  # of its first line of code
    indent: str
    reason: str | None = None  # why it is not run
    expected: str | None = None  # what it prints


def blocks(text: str) -> list[Block]:
    """Blocks of python and sh, each with the ```text block that follows it."""
    found: list[Block] = []
    lines = text.split("\n")
    reason = None
    after = None
    place = 0
    while place < len(lines):
        opened = re.match(r"^( *)(`{3,})([\w-]*)\s*$", lines[place])
        if opened is None:
            if said := re.match(r"^ *<!-- not run: (.*) -->$", lines[place]):
                reason = said[1]
            elif lines[place].strip():
                reason = after = None
            place += 1
            continue
        indent, fence, language = opened.groups()
        end = next(k for k in range(place + 1, len(lines)) if lines[k].strip() == fence)
        code = textwrap.dedent("\n".join(lines[place + 1 : end]))
        if language in ("python", "sh"):
            after = Block(language, code, place + 2, indent, reason)
            found.append(after)
        elif language == "text" and after is not None:
            after.expected = code
            after = None
        else:
            after = None
        reason = None
        place = end + 1
    return found


def run_python(code: str, namespace: dict, where: str, first_line: int) -> str:
    """What it prints; numbers in comments after expressions are held against their values."""
    printed = io.StringIO()
    lines = code.split("\n")
    with contextlib.redirect_stdout(printed):
        for node in ast.parse(code).body:
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), where, "exec"), namespace)
                continue
            inner, is_print = node.value, False
            if (
                isinstance(inner, ast.Call)
                and isinstance(inner.func, ast.Name)
                and inner.func.id == "print"
                and len(inner.args) == 1
            ):
                inner, is_print = inner.args[0], True
            value = eval(compile(ast.Expression(inner), where, "eval"), namespace)
            if is_print:
                print(value)
            comment = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
            assert comment_holds(comment, value), (
                f"{where}, line {first_line + node.lineno - 1}: {comment.strip()} but it is {value}"
            )
    return printed.getvalue()


def comment_holds(comment: str, value: object) -> bool:
    """Whether `# 1.4; words` is the value, and `# precision 0.95` its attribute, to its digits."""
    claims = []
    if first := re.match(r"\s*#\s*(-?\d+(?:\.\d+)?)(?=[\s,;]|$)", comment):
        claims.append((first[1], value))
    claims += [
        (number, getattr(value, name))
        for name, number in re.findall(r"(\w+) (-?\d+\.\d+)", comment)
        if hasattr(value, name)
    ]
    return all(
        isinstance(is_, int | float | np.number) and close(number, f"{is_}")
        for number, is_ in claims
    )


def close(claimed: str, is_: str) -> bool:
    """Numbers that say the same: half a unit of the last digit, and a little for other machines."""
    digits = len(claimed.partition(".")[2])
    value = float(claimed)
    tolerance = 0.51 * 10.0**-digits
    if digits:
        tolerance += 0.02 * abs(value)
    elif abs(value) > 20:
        tolerance = 1.01
    return math.isclose(value, float(is_), abs_tol=tolerance)


def run_sh(code: str, folder: Path) -> str:
    """What commands of isingkit print; `make` and `pip install` are looked up."""
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    printed = ""
    for line in code.split("\n"):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "make":
            assert re.search(rf"^{re.escape(words[1])}:", makefile, re.M), f"no target: {line}"
        elif words[:2] == ["pip", "install"]:
            for extra in re.findall(r"\[([\w,]+)\]", line):
                assert set(extra.split(",")) <= set(project["optional-dependencies"]), (
                    f"no extra: {line}"
                )
        else:
            assert words[0] == "isingkit", f"do not know how to check: {line}"
            printed += run_isingkit(line, folder)
    return printed


def run_isingkit(line: str, folder: Path) -> str:
    """What a command prints: in this process, unless only a shell knows what its line means."""
    if re.search(r"[|&;<>$*?`]", line.partition(" #")[0]):
        return run_in_a_shell(line, folder)
    told, printed = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(told),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")  # the command prints them
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(line, comments=True)[1:])
    assert not ended.value.code, f"{line}\n{told.getvalue()}"
    return printed.getvalue()


def run_in_a_shell(line: str, folder: Path) -> str:
    shim = folder / "bin" / "isingkit"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isingkit "$@"\n')
    shim.chmod(0o755)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    environment = with_this_package() | {"PATH": path}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


def with_this_package() -> dict[str, str]:
    """An environment in which Python finds the package that is tested."""
    paths = [str(Path(ik.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def agrees(expected: str, printed: str) -> bool:
    """The same words and numbers, whatever the space between; ... stands for any lines."""
    left, dots, right = expected.partition("\n...\n")
    said = printed.split()
    if dots:
        return same(left.split(), said[: len(left.split())]) and same(
            right.split(), said[len(said) - len(right.split()) :]
        )
    return same(expected.split(), said)


def same(claimed: list[str], said: list[str]) -> bool:
    """Word by word; numbers as `close` has it."""
    number = re.compile(r"[-+]?\d+(?:\.\d+)?")
    if len(claimed) != len(said):
        return False
    for a, b in zip(claimed, said, strict=True):
        if number.sub("0", a) != number.sub("0", b) and not ("e-" in a and "e-" in b):
            return False
        if "e-" not in a and not all(
            close(x, y) for x, y in zip(number.findall(a), number.findall(b), strict=True)
        ):
            return False
    return True


def run_page(page: Path, folder: Path) -> list[tuple[Block, str]]:
    """Each block that is run, with what it printed."""
    write_survey(folder)
    namespace: dict = {"__name__": "page"}
    outcomes = []
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.reason is not None:
            assert block.reason in REASONS, (
                f"{page.name}: '{block.reason}' is no reason to leave a block out"
            )
            print(f"{page.name}, line {block.line}: not run: {block.reason}")
            continue
        with contextlib.chdir(folder), warnings.catch_warnings():
            warnings.simplefilter("error")
            for category in MAY_WARN.get(page.name, ()):
                warnings.simplefilter("ignore", category)
            if block.language == "python":
                printed = run_python(block.code, namespace, page.name, block.line)
            else:
                printed = run_sh(block.code, folder)
        outcomes.append((block, printed))
    return outcomes


def write_survey(folder: Path) -> None:
    """survey.csv: 400 people, a column that names them, and eight questions."""
    truth = ik.random_regular(n_spins=8, degree=3, coupling=0.4, random_state=5)
    answers = np.where(np.asarray(ik.sample(truth, n_samples=400, random_state=6)) > 0, "yes", "no")
    rows = [
        ["person", *(f"q{k}" for k in range(1, 9))],
        *([f"p{k}", *row] for k, row in enumerate(answers)),
    ]
    (folder / "survey.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")


@pytest.fixture(autouse=True)
def _agg(monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setenv("MPLBACKEND", "agg")
    before = plt.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs_and_prints_what_the_page_says(page, tmp_path):
    for block, printed in run_page(page, tmp_path):
        if block.expected is not None:
            assert agrees(block.expected, printed), (
                f"{page.name}, line {block.line} prints\n{printed}"
            )


def test_every_public_name_and_command_is_in_the_reference():
    names, theory, commands = (
        (DOCS / "reference" / f"{page}.md").read_text()
        for page in ("index", "theory", "command_line")
    )
    for text, public in (
        (names, set(ik.__all__) - {"exceptions", "theory"}),
        (theory, set(ik.theory.__all__)),
    ):
        assert set(re.findall(r"^   (\w+)$", text, re.M)) == public
    on_clusters = (DOCS / "reference" / "dask.md").read_text()
    assert set(re.findall(r"^   (\w+)$", on_clusters, re.M)) == set(isingkit.dask.__all__)
    assert re.findall(r"command-help\} ([\w-]+)", commands) == ["isingkit", *COMMANDS]


def test_links_of_the_readme_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (ROOT / target).exists(), target


def test_the_reader_of_pages_reads_pages(tmp_path):
    """A block in a list, what it prints, and one that is left out."""
    page = tmp_path / "page.md"
    listed = "- first:\n\n  ```python\n  x = 2\n  print(x)\n  ```\n\n  ```text\n  2\n  ```\n"
    page.write_text(f"{listed}\n<!-- not run: {min(REASONS)} -->\n```sh\nisingkit nonsense\n```\n")
    ((block, printed),) = run_page(page, tmp_path)
    assert (block.language, block.code, printed) == ("python", "x = 2\nprint(x)", "2\n")
    assert agrees(block.expected, printed)
    page.write_text("<!-- not run: I do not feel like it -->\n```sh\nisingkit nonsense\n```\n")
    with pytest.raises(AssertionError, match="no reason"):
        run_page(page, tmp_path)


@pytest.mark.parametrize(
    "block",
    [
        "```python\n1 + 1  # 3\n```",
        "```sh\nmake nothing\n```",
        "```sh\nrm -r x\n```",
        "```sh\npip install '.[no]'\n```",
    ],
)
def test_a_page_that_is_wrong_is_caught(block, tmp_path):
    (tmp_path / "page.md").write_text(block)
    with pytest.raises(AssertionError):
        run_page(tmp_path / "page.md", tmp_path)


def test_numbers_of_pages_are_compared_as_numbers():
    assert agrees("rss 0.143 of 582 rows", "rss  0.1431  of 582 rows")
    assert agrees("a\n...\nz 1", "a b c\nz 1")
    for wrong in (
        "rss 0.16 of 582 rows",
        "rss 0.143 of 590 rows",
        "tss 0.143 of 582 rows",
        "rss 0.143 of 582",
    ):
        assert not agrees(wrong, "rss 0.143 of 582 rows")


def rewrite(page: Path, folder: Path) -> None:
    """Put what blocks print into the ```text blocks after them."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for block, printed in reversed(run_page(page, folder)):
        if block.expected is None or "\n...\n" in block.expected:
            continue
        start = block.line - 1 + len(block.code.split("\n"))
        while lines[start].strip() != "```text":
            start += 1
        end = next(k for k in range(start + 1, len(lines)) if lines[k].strip() == "```")
        lines[start + 1 : end] = [
            (block.indent + line).rstrip() for line in printed.rstrip().split("\n")
        ]
    page.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            rewrite(Path(name), Path(temporary))

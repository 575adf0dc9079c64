"""The public API: names and signatures as `public_api.txt` lists them.

Programs elsewhere rely on them. Whoever changes one says so at the end of "Unreleased" in
CHANGELOG.md, and writes the list anew with `python tests/test_public_api.py`, which refuses before.
The first line of the list says how long that part was, so that new lines can be told from old.
"""

import inspect
import json
import re
import sys
import tomllib
from pathlib import Path

import isingkit as ik
import isingkit.dask
from isingkit import exceptions

LISTING = Path(__file__).with_name("public_api.txt")
CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def listing():
    """A line for each name, or method of a class: its arguments with their defaults."""
    lines = []
    for module, prefix in ((ik, ""), (ik.theory, "theory."), (isingkit.dask, "dask.")):
        names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
        for name in names:
            lines += described(f"{prefix}{name}", getattr(module, name))
    for name, error in vars(exceptions).items():
        if inspect.isclass(error) and issubclass(error, Exception | Warning):
            lines.append(f"exceptions.{name}")
    return sorted(set(lines))


def described(name, thing):
    if not inspect.isclass(thing):
        return [f"{name}{arguments(thing)}" if callable(thing) else name]
    lines = [f"{name}{arguments(thing)}"]
    for part, member in inspect.getmembers(thing):
        is_made = part.startswith("set_") and part.endswith("_request")  # by scikit-learn
        if part.startswith("_") or is_made or not is_ours(thing, part):
            continue
        lines.append(f"{name}.{part}{arguments(member) if callable(member) else ''}")
    return lines


def is_ours(kind, part):
    """Whether a class of this package defines it; scikit-learn and numpy change on their own."""
    owner = next(one for one in kind.__mro__ if part in vars(one))
    return owner.__module__.startswith("isingkit")


def arguments(thing):
    parts = inspect.signature(thing).parameters.values()
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parts]
    text = str(inspect.Signature(bare))
    return re.sub(r"<[^<>]*>", "...", text)  # defaults that have no text of their own


def name_of(line):
    """What the changelog should mention: the method, or the name itself."""
    return line.partition("(")[0].rpartition(".")[2]


def unreleased(changelog):
    """Lines of the part "Unreleased"."""
    return changelog.partition("## Unreleased")[2].partition("\n## ")[0].strip().splitlines()


def unmentioned(old, new, said):
    """Names that changed, came or went, of which these lines say nothing."""
    changed = {name_of(line) for line in set(old) ^ set(new)}
    text = "\n".join(said)
    return sorted(name for name in changed if not re.search(rf"\b{name}\b", text))


def said_since(head, changelog):
    """Lines that are new since the listing was written; all, where an end was cut off meanwhile."""
    lines = unreleased(changelog)
    n_before = int(head.split()[-1])
    return lines[n_before if n_before <= len(lines) else 0 :]


def test_public_names_and_signatures_are_those_that_are_listed():
    """Where this fails: mention the change in CHANGELOG.md, then run this file."""
    assert listing() == LISTING.read_text(encoding="utf-8").splitlines()[1:]


def test_a_change_must_be_mentioned_in_the_changelog():
    old = ["fit(X)", "Model.save(self, path)"]
    new = ["fit(X, y)", "Model.save(self, path)", "Model.load(path)"]
    changelog = "# Changes\n\n## Unreleased\n- `fit` is new.\n- `load` is new.\n\n## 1\n- `save`.\n"
    assert unmentioned(old, new, said_since("lines of CHANGELOG.md: 1", changelog)) == ["fit"]
    assert unmentioned(old, new, said_since("lines of CHANGELOG.md: 0", changelog)) == []
    assert unmentioned(old, old, []) == []


def test_files_about_the_package_agree_with_it():
    root = CHANGELOG.parent
    about = json.loads((root / "codemeta.json").read_text(encoding="utf-8"))
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert about["version"] == ik.__version__
    assert about["description"] == project["description"]
    assert about["license"].endswith(project["license"])
    assert about["programmingLanguage"]["version"] == project["requires-python"]
    needed = [re.match(r"[\w-]+", one)[0] for one in project["dependencies"]]
    assert about["softwareRequirements"] == needed
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert about["referencePublication"]["name"] in citation
    assert f"license: {project['license']}" in citation
    assert f"version: {ik.__version__}" in citation.splitlines()
    cited = set(re.findall(r"@(\w+\d{4})", (root / "paper" / "paper.md").read_text("utf-8")))
    listed = re.findall(r"@\w+\{(\w+),", (root / "paper" / "paper.bib").read_text("utf-8"))
    assert cited == set(listed)


if __name__ == "__main__":
    head, *before = LISTING.read_text(encoding="utf-8").splitlines()
    now, changes = listing(), CHANGELOG.read_text(encoding="utf-8")
    missing = unmentioned(before, now, said_since(head, changes))
    if missing:
        sys.exit(f"say at the end of Unreleased in CHANGELOG.md what changed: {', '.join(missing)}")
    head = f"lines of CHANGELOG.md: {len(unreleased(changes))}"
    LISTING.write_text("\n".join([head, *now]) + "\n", encoding="utf-8")

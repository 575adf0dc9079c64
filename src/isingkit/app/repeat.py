"""The same again: lines of the command line and of Python that do what was clicked, and the archive
of a fit with both.
"""

import inspect
import os
import shlex
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from isingkit.app.choices import COVARIATES, DROP, Choices, estimator_of
from isingkit.formats import bare_name
from isingkit.methods import method_named
from isingkit.result_table import Record

COMMAND_FILE = "command_line.txt"
PYTHON_FILE = "in_python.py"


def write_archive(folder: Path, name: str, choices: Choices, facts: Record, path: Path) -> None:
    """A zip of the files of a fit, with the lines that make the same of the file `name`."""
    inside = f"{bare_name(Path(name)) or 'data'}-fit"
    lines = {
        COMMAND_FILE: command_line(name, choices) + "\n",
        PYTHON_FILE: python_lines(name, choices, facts),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{inside}/{file.name}")
        for name_inside, text in lines.items():
            archive.writestr(f"{inside}/{name_inside}", text)


def command_line(name: str, choices: Choices) -> str:
    """What does the same in a terminal."""
    path = f"./{name}" if name.startswith("-") else name
    words = ["isingkit", "fit", path, *choices.arguments()]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def python_lines(name: str, choices: Choices, facts: Record) -> str:
    """What does the same in Python; facts: those of fit.json."""
    method = method_named(choices.method)
    assert method is not None
    estimator = type(estimator_of(method))
    arguments = _call_arguments(_changed_settings(estimator, facts["settings"]))
    kept = {
        "sample_weight": ("table.weights", choices.columns_of("weights")),
        "counts": ("table.counts", choices.columns_of("counts")),
        "groups": ("table.groups", choices.columns_of("row_groups")),
        "covariates": ("table.covariates", choices.columns_of(COVARIATES)),
    }
    also = [f"{key}={value}" for key, (value, names) in kept.items() if names]
    has_tests = choices.method == "auto"
    edges = 'fit.edges_.to_pandas().to_csv("edges.csv", index=False)  # needs pandas'
    lines = [
        "import isingkit as ik",
        "from isingkit.tables import read_spins",
        "",
        "table = read_spins(",
        f"    {name!r},",
        *(f"    {one}," for one in _reading_arguments(choices)),
        ")",
        f"fit = ik.{estimator.__name__}({', '.join(arguments)}).fit(",
        f"    {', '.join(['table.packed', *also])}",
        ")",
        f"print({'fit.edges_' if has_tests else 'fit.model_.edges()'})",
        edges if has_tests else 'fit.model_.to_csv("edges.csv")',
    ]
    return "\n".join(lines) + "\n"


def _reading_arguments(choices: Choices) -> list[str]:
    single = {"weights": "weights", "counts": "counts", "groups": "row_groups"}
    named: dict[str, Any] = {"drop": [*choices.columns_of("id"), *choices.columns_of(DROP)]}
    for argument, role in single.items():
        named[argument] = next(iter(choices.columns_of(role)), None)
    named["covariates"] = choices.columns_of(COVARIATES)
    named["binarize"] = choices.binarize
    named["missing_codes"] = list(choices.missing_codes)
    named["ticked"] = [name for name in choices.ticked if name not in choices.roles]
    named["missing"] = None if choices.missing == "error" else choices.missing
    return _call_arguments({key: value for key, value in named.items() if value not in (None, [])})


def _changed_settings(estimator: Callable[..., Any], settings: Record) -> Record:
    """Those that are not as by default; of numbers that JSON cannot hold, the numbers."""
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(estimator).parameters.items()
    }
    values = {name: _number(value) for name, value in settings.items() if name in defaults}
    return {
        name: value
        for name, value in values.items()
        if name != "binarize" and value != defaults[name]
    }


def _number(value: Any) -> Any:
    return float(value) if value in ("inf", "-inf", "nan") else value


def _call_arguments(values: Mapping[str, Any]) -> list[str]:
    texts = {
        name: f"float('{value}')" if value in (float("inf"), float("-inf")) else repr(value)
        for name, value in values.items()
    }
    return [f"{name}={text}" for name, text in texts.items()]

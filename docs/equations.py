"""Write equations.md: which function holds which equation of the paper, and which tests hold the
function to it.

An equation is named in square brackets, by the paper's own label, in the docstring of the function
and of the test.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LABEL = re.compile(r"\[(eq:[^\]]+)\]")


def labelled(folder: Path) -> dict[str, list[str]]:
    """Label -> names of functions, methods, classes or files whose docstring has it."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")

        def visit(node: ast.AST, name: str) -> None:
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                for label in LABEL.findall(ast.get_docstring(node) or ""):
                    found.setdefault(label, []).append(name)
                for child in node.body:
                    visit(child, f"{name}.{getattr(child, 'name', '')}")

        visit(ast.parse(path.read_text()), module)
    return found


def page() -> str:
    """The whole of equations.md."""
    code = labelled(ROOT / "src" / "isingkit")
    tests = labelled(ROOT / "tests")
    lines = [
        "# Equations",
        "",
        "From label to function to test. "
        "Written by `python docs/equations.py` from the docstrings.",
        "",
        "| label in the paper | function | tests |",
        "|---|---|---|",
    ]
    for label in sorted(set(code) | set(tests), key=str.lower):
        functions = ", ".join(f"`{name}`" for name in code.get(label, []))
        checks = ", ".join(f"`{name}`" for name in tests.get(label, []))
        lines.append(f"| `{label}` | {functions} | {checks} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    (ROOT / "docs" / "equations.md").write_text(page())

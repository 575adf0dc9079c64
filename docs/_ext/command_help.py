"""The directive `command-help`: what `isingkit COMMAND --help` prints, asked at build time."""

from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import Directive

from isingkit.cli import root

WIDTH = 90  # of a page


def help_of(name: str) -> str:
    """The help of one command, or with the name "isingkit" of the whole."""
    with click.Context(
        root, info_name="isingkit", terminal_width=WIDTH, max_content_width=WIDTH
    ) as whole:
        if name == "isingkit":
            return root.get_help(whole)
        command = root.get_command(whole, name)
        if command is None:
            raise ValueError(f"there is no command '{name}'")
        with click.Context(
            command, info_name=name, parent=whole, terminal_width=WIDTH, max_content_width=WIDTH
        ) as context:
            return command.get_help(context)


class CommandHelp(Directive):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        text = help_of(self.arguments[0])
        return [nodes.literal_block(text, text, language="text")]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}

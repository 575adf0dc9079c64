"""Mistakes in what was typed."""

import click


def usage_error(message: str) -> click.UsageError:
    """A mistake in options or arguments of the command that runs; one line says what to do."""
    return click.UsageError(message, click.get_current_context())

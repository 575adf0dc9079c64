"""isingkit completion"""

import click

from isingkit.cli.usage import usage_error

HOW = {
    "bash": 'add to ~/.bashrc:  eval "$(isingkit completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(isingkit completion zsh)"',
    "fish": "run once:  isingkit completion fish > ~/.config/fish/completions/isingkit.fish",
}


@click.command("completion", epilog="  ".join(f"{shell}: {how}." for shell, how in HOW.items()))
@click.argument("shell", type=click.Choice(list(HOW)))
def command(shell: str) -> None:
    """Print what makes a shell complete commands, options, methods and files when Tab is
    pressed.
    """
    from click.shell_completion import get_completion_class

    from isingkit.cli import root

    completer = get_completion_class(shell)
    if completer is None:  # click has all three
        raise usage_error(f"no completion for {shell}")
    click.echo(completer(root, {}, "isingkit", "_ISINGKIT_COMPLETE").source())
    click.echo(f"# {HOW[shell]}")

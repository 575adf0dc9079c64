"""isingkit app"""

import errno
import json

import click


@click.command("app")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Where the page is; by default wherever there is room.",
)
@click.option(
    "--largest-file",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    metavar="MEGABYTES",
    help="Larger files are refused.",
)
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
def command(port: int, largest_file: int, no_browser: bool, as_json: bool) -> None:
    """Do all this in a page: drop a file, click what its columns are, look at the network.

    The page is on this machine, for you alone; nothing leaves it. Ctrl-C stops the app and deletes
    the files it was given. Needs pip install "isingkit[app]".
    """
    try:
        from isingkit.app.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise click.ClickException(
            "isingkit app needs a server library: pip install 'isingkit[app]'."
        ) from None

    def announce(address: str) -> None:
        if as_json:
            click.echo(json.dumps({"address": address}))
        else:
            click.echo(f"isingkit app is at {address}")
            click.echo("Open that in a browser of this machine, also in several tabs.")
            click.echo("Ctrl-C stops it, and deletes the files it was given.")

    try:
        serve(
            port=port,
            largest=largest_file * 1_000_000,
            open_browser=not no_browser,
            announce=announce,
        )
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        message = f"port {port} is taken: name another with --port, or leave it out."
        raise click.ClickException(message) from None

"""The `memory-authority` command, for operators.

It ends with 0 if it was done, 1 if what is asked for is not there or the database refused, and 2 if it
is used wrongly. Errors go to stderr and show no content.
"""

from importlib.metadata import version
from typing import Annotated

import typer

from ._common import DEFAULT_URL, PLAIN, Url
from .memory import memory
from .sessions import run, sessions

app = typer.Typer(name="memory-authority", **PLAIN)
app.add_typer(sessions, name="sessions")
app.add_typer(memory, name="memory")


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"memory-authority {version('memory-authority')}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version.")
]


@app.callback()
def _about(*, version: _Version = False) -> None:
    """Operate the conversation history and the curated memory of agents.

    Exit codes: 0 done, 1 not there or refused, 2 wrong usage.
    """


@app.command()
def migrate(*, url: Url = DEFAULT_URL) -> None:
    """Make the tables of sessions, or bring older ones to this release's version. Nothing is dropped."""
    run(url, lambda store: store.migrate(), create=True)
    typer.echo("The tables are up to date.")


def main() -> None:
    """Run the command."""
    app()

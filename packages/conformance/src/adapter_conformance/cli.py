"""The `fidelity` command.

It ends with 0 if all claims hold, 1 if one is false or a harness is broken, 2 if it is used
wrongly, 3 if nothing could be run, or not what was required, and 130 if it was interrupted.
"""

import os
from importlib.metadata import version
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from .commands import check, compare, copy, ddl, diff, differential, preview_file, proof, require, run

# Plain help and one-line errors: the same in a terminal, a log and a pipe.
app = typer.Typer(
    name="fidelity",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(compare)
app.command()(run)
app.command("preview")(preview_file)
app.command()(check)
app.command()(copy)
app.command()(require)
app.command()(diff)
app.command()(differential)
app.command()(ddl)
app.command()(proof)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"adapter-conformance {version('adapter-conformance')}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the kit's version.")
]


@app.callback()
def _about(*, version: _Version = False) -> None:
    """Prove what memory adapters declare.

    Exit codes: 0 all claims hold, 1 a claim is false or a harness is broken, 2 wrong usage,
    3 nothing could be run, or not what was required, 130 interrupted.
    """


def main() -> None:
    """Run the command."""
    with TemporaryDirectory(prefix="fidelity-") as scratch:
        # hypothesis keeps notes, which it would put into the user's working directory
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch)
        app()

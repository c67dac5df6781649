"""The `fidelity` command.

It ends with 0 if all claims hold, 1 if one is false or a harness is broken, 2 if it is used
wrongly, and 3 if nothing could be run, or not what was required.
"""

import os
from tempfile import TemporaryDirectory

import typer

from .commands import check, compare, ddl, preview_file, run

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
app.command()(ddl)


@app.callback()
def _about() -> None:
    """Prove what memory adapters declare.

    Exit codes: 0 all claims hold, 1 a claim is false or a harness is broken, 2 wrong usage,
    3 nothing could be run, or not what was required.
    """


def main() -> None:
    """Run the command."""
    with TemporaryDirectory(prefix="fidelity-") as scratch:
        # hypothesis keeps notes, which it would put into the user's working directory
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch)
        app()

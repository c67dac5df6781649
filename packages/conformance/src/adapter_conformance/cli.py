"""The `fidelity` command.

It ends with 0 if all claims hold, 1 if one is false or a harness is broken, 2 if it is used
wrongly, and 3 if nothing could be run.
"""

import typer

from .commands import compare, run

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


@app.callback()
def _about() -> None:
    """Prove what memory adapters declare.

    Exit codes: 0 all claims hold, 1 a claim is false or a harness is broken, 2 wrong usage,
    3 nothing could be run.
    """


def main() -> None:
    """Run the command."""
    app()

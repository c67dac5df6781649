"""`fidelity proof`: the kit proves that it would notice what can be wrong with an adapter."""

import json
from collections.abc import Iterator
from typing import Annotated, Literal

import typer

from adapter_conformance.broken import Proof
from adapter_conformance.progress import LateProgress
from adapter_conformance.proof import LEAST, AdapterProof, Proved, proof_document, prove_targets
from adapter_conformance.render import Sheet, console_for, markdown_table, print_sheets, shortened
from adapter_conformance.session import Exit, Fault, Target, find_targets

from ._common import Names, Seed, usage_error

_OUTCOMES = {"not_applicable": "not applicable", "not_staged": "not staged"}


def proof(
    names: Names = None,
    *,
    seed: Seed = 0,
    style: Annotated[
        Literal["table", "markdown", "json"], typer.Option("--format", help="How to print it.")
    ] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Break each adapter in many ways, and show that the kit notices every one.

    Each adapter's fake is put behind every broken store of the catalogue, and its manifest is turned
    field by field. Exactly the named case must fail, for the named reason.
    """
    targets, faults = _fakes(names)
    with LateProgress(None) as progress:

        def begin(target: Target, mutant: str) -> None:
            progress.step(f"{target.label} {mutant}")

        proved = prove_targets(targets, seed=seed, progress=begin)
    proved.faults[:0] = faults
    for fault in proved.faults:
        typer.echo(f"Error: {fault}", err=True)
    if as_json or style == "json":
        typer.echo(json.dumps(proof_document(proved), indent=2))
    elif style == "markdown":
        typer.echo("\n\n".join(map(markdown_table, _sheets(proved))))
    else:
        print_sheets(console_for(), _sheets(proved))
    for one in proved.adapters:
        for shortfall in one.shortfalls():
            typer.echo(f"{one.adapter}: {shortened(shortfall)}", err=True)
    raise typer.Exit(proved.exit)


def _fakes(names: list[str] | None) -> tuple[list[Target], list[Fault]]:
    try:
        targets, faults = find_targets(names or (), ["fake"])
    except LookupError as error:
        usage_error(str(error))
    if not targets and not faults:
        wanted = ", ".join(names) if names else "any adapter"
        typer.echo(f"Nothing to prove: no fake harness of {wanted}.", err=True)
        raise typer.Exit(Exit.UNREACHABLE)
    return targets, faults


def _sheets(proved: Proved) -> Iterator[Sheet]:
    for one in proved.adapters:
        headers = ("Mutant", "Breaks", "Case", "Outcome", "Reason")
        rows = [_row(proof) for proof in one.proofs]
        yield Sheet(f"{one.adapter}: {one.total}", headers, rows, folding=(0, 1, 4))
    if proved.adapters:
        headers = ("Adapter", "Score", "Broken stores", "Wrong manifests", "Proof")
        yield Sheet("Mutation score", headers, [_summary(one) for one in proved.adapters], folding=(2, 3, 4))


def _row(proof: Proof) -> tuple[str, ...]:
    outcome = _OUTCOMES.get(proof.outcome, proof.outcome)
    return (proof.broken.name, proof.broken.verb, proof.broken.case, outcome, shortened(proof.reason))


def _summary(one: AdapterProof) -> tuple[str, ...]:
    score = one.total
    share = f"{score.killed / score.all:.0%}" if score.all else "-"
    verdict = "holds" if not one.shortfalls() else f"does not hold (at least {LEAST}, all killed, are needed)"
    return (
        one.adapter,
        f"{share} ({score.killed}/{score.all})",
        str(one.broken),
        str(one.manifests),
        verdict,
    )

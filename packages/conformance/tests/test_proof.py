import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from adapter_conformance import proof as proofs
from adapter_conformance.broken import BROKEN, MutationScore, Proof, prove_manifest
from adapter_conformance.cli import app
from adapter_conformance.proof import LEAST, AdapterProof, Proved, proof_document, prove_adapter
from adapter_conformance.session import Exit, Fault, find_targets
from adapter_template.harness import DROPPING, TemplateHarness

BROKEN_STORE = """
from adapter_template.harness import TemplateHarness

class Harness(TemplateHarness):
    adapter = "clumsy"

HARNESSES = (Harness,)
"""


def _score(*outcomes: str) -> MutationScore:
    return MutationScore("made", tuple(Proof(BROKEN[0], outcome) for outcome in outcomes))


def _proof(*outcomes: str, unbroken=(), manifests=("killed",)) -> AdapterProof:
    return AdapterProof("made", "made 1.0", unbroken, _score(*outcomes), _score(*manifests))


# The verdict


def test_forty_kills_and_no_survivor_are_a_proof() -> None:
    proof = _proof(*["killed"] * LEAST)
    assert proof.shortfalls() == []
    assert str(proof.total) == "41/41"
    assert Proved([proof]).exit is Exit.HOLDS


def test_thirty_nine_kills_are_none() -> None:
    proof = _proof(*["killed"] * (LEAST - 1))
    assert proof.shortfalls() == ["39 broken stores are killed, fewer than 40"]
    assert Proved([proof]).exit is Exit.FALSE


@pytest.mark.parametrize("missing", ["not_applicable", "not_staged"])
def test_what_could_not_be_shown_is_no_kill(missing) -> None:
    proof = _proof(*["killed"] * (LEAST - 1), missing)
    assert proof.total.killed == proof.total.all == LEAST
    assert proof.shortfalls() == ["39 broken stores are killed, fewer than 40"]


def test_one_survivor_is_named() -> None:
    proof = _proof(*["killed"] * LEAST, "survived")
    assert proof.shortfalls() == [f"{BROKEN[0].name} survives"]
    assert Proved([proof]).exit is Exit.FALSE


def test_a_wrong_manifest_that_survives_is_no_proof() -> None:
    assert _proof(*["killed"] * LEAST, manifests=["survived"]).shortfalls() == [f"{BROKEN[0].name} survives"]


def test_nothing_that_ran_is_no_proof() -> None:
    assert Proved().exit is Exit.UNREACHABLE
    assert Proved([], [Fault("made", "fake", "broke")]).exit is Exit.FALSE


# Over an adapter


async def test_a_part_of_the_catalogue_is_proved_over_the_template() -> None:
    begun: list[str] = []
    found = await prove_adapter(
        TemplateHarness, "template", catalogue=BROKEN[:2], version="template 1.0", progress=begun.append
    )
    assert found.unbroken == ()
    assert begun == ["manifest-made-anew", "manifest-invalid"]
    assert found.broken.killed == 2
    assert found.shortfalls(least=2) == []
    assert found.shortfalls() == ["2 broken stores are killed, fewer than 40"]


async def test_an_adapter_that_fails_without_a_fault_proves_nothing() -> None:
    found = await prove_adapter(TemplateHarness, "another", catalogue=BROKEN[:1])
    assert [one.id for one in found.unbroken] == ["C01"]
    assert "C01 fails without a fault" in found.shortfalls(least=1)[0]


async def test_every_field_of_a_manifest_is_turned_and_named() -> None:
    (kind,) = DROPPING
    found = await prove_manifest(kind, "template-dropping")
    assert {proof.outcome for proof in found.proofs} == {"killed"}
    for proof in found.proofs:
        field = proof.broken.name.partition("=")[0]
        assert f"{field}: declared " in proof.reason
        assert proof.broken.verb == "manifest"
    assert {proof.broken.name.partition("=")[0] for proof in found.proofs} == {
        *("adapter", "native_item_fields", "dropped_item_fields", "supported_filters", "search_consistency"),
        *("retrieve_fidelity", "search_fidelity", "search_returns_tags", "preserves_metadata"),
    }


# The document and the command


@pytest.fixture
def fidelity(monkeypatch):
    """Run the command over the first two broken stores, of which two are enough."""
    monkeypatch.setattr(proofs, "BROKEN", BROKEN[:2])
    monkeypatch.setattr(
        prove_adapter, "__kwdefaults__", prove_adapter.__kwdefaults__ | {"catalogue": BROKEN[:2]}
    )
    monkeypatch.setattr(AdapterProof.shortfalls, "__defaults__", (2,))

    def run(*arguments):
        return CliRunner().invoke(app, ["proof", *arguments])

    return run


def test_the_document_has_a_row_for_each_mutant_with_case_and_reason(fidelity) -> None:
    result = fidelity("template-lossy", "--json")
    assert result.exit_code == 0, result.output
    (adapter,) = json.loads(result.stdout)["adapters"]
    assert adapter["adapter"] == "template-lossy"
    assert adapter["killed"] == adapter["all"] == len(adapter["mutants"])
    assert adapter["holds"] is True
    assert adapter["mutants"][0] == {
        "name": "manifest-made-anew",
        "verb": "manifest",
        "fault": "each access makes another manifest object",
        "case": "C01",
        "outcome": "killed",
        "reason": "the manifest is another object after a call",
        "noticed_by": [{"case": "C01", "reason": "the manifest is another object after a call"}],
    }


def test_the_table_has_a_row_for_each_mutant_and_a_score_for_each_adapter(fidelity) -> None:
    result = fidelity("template-lossy")
    assert result.exit_code == 0, result.output
    assert "manifest-invalid" in result.stdout
    assert "retrieve_fidelity=full" in result.stdout
    assert "100% (22/22)" in result.stdout
    assert "holds" in result.stdout


def test_a_survivor_ends_the_command_with_1_and_is_named(fidelity, monkeypatch) -> None:
    wrong = (BROKEN[0], replace(BROKEN[1], name="wrong", reason="another reason"))
    monkeypatch.setattr(prove_adapter, "__kwdefaults__", prove_adapter.__kwdefaults__ | {"catalogue": wrong})
    result = fidelity("template-lossy", "--format", "markdown")
    assert result.exit_code == 1
    assert "template-lossy: wrong survives" in result.stderr
    assert "| wrong | manifest | C01 | survived |" in result.stdout


def test_an_adapter_with_another_name_than_its_manifest_is_no_proof(fidelity, install) -> None:
    install("clumsy", BROKEN_STORE)
    result = fidelity("clumsy", "--json")
    assert result.exit_code == 1
    assert "clumsy: C01 fails without a fault" in result.stderr


def test_a_harness_that_breaks_is_told_and_stops_no_other(fidelity, install) -> None:
    install(
        "broken", "class H:\n    def __init__(self):\n        raise OSError('sesame')\nHARNESSES = (H,)\n"
    )
    result = fidelity("broken", "template-lossy", "--json")
    assert result.exit_code == 1
    assert "broken fake: OSError" in result.stderr
    assert "sesame" not in result.output
    assert [one["adapter"] for one in json.loads(result.stdout)["adapters"]] == ["template-lossy"]


def test_an_unknown_name_is_wrong_usage(fidelity) -> None:
    result = fidelity("nobody")
    assert result.exit_code == 2
    assert "no harness for 'nobody'" in result.stderr


def test_an_adapter_without_a_fake_proves_nothing(fidelity, install) -> None:
    install("remote", "class H:\n    environment = 'embedded'\nHARNESSES = (H,)\n")
    result = fidelity("remote")
    assert result.exit_code == 3
    assert "no fake harness of remote" in result.stderr


def test_errors_are_in_the_document() -> None:
    document = proof_document(Proved([], [Fault("made", "fake", "broke")]))
    assert document["errors"] == [{"adapter": "made", "environment": "fake", "reason": "broke"}]


def test_every_installed_adapter_has_a_fake_to_be_proved_over() -> None:
    every, _ = find_targets()
    fakes, _ = find_targets(environments=["fake"])
    assert {target.adapter for target in every} == {target.adapter for target in fakes}

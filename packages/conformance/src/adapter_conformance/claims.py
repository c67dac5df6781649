"""A claim has two bodies: for each manifest field, which case judges it, and what each value means.

The table says what must be seen when the field says one thing and what when it says the other.
The toggle matrix (C17) turns each field against the behaviour: the case named here must then fail
and name the field.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from pydantic import ValidationError

from adapter_core import Fidelity, MemoryAdapterManifest, SearchConsistency

from ._run import UNDECLARED


@dataclass(frozen=True)
class Claim:
    """What a manifest field claims.

    Attributes:
        case: The id of the case that judges it.
        bodies: What must be seen, by the declared value; at least two.
    """

    case: str
    bodies: Mapping[str, str]

    def __post_init__(self) -> None:
        """Refuse a claim of which only one side is judged."""
        if len(self.bodies) < 2:
            raise ValueError("a claim needs a body for what it says and one for the contrary")


CLAIMS: Mapping[str, Claim] = {
    "adapter": Claim(
        "C01",
        {
            "the entry point's name": "the adapter is found by this name",
            "another name": "fails: it is the name of another adapter",
        },
    ),
    "native_item_fields": Claim(
        "C06",
        {
            "has the field": "two items with different values come back different",
            "lacks the field": "every item comes back with the declared default",
        },
    ),
    "dropped_item_fields": Claim(
        "C06",
        {
            "has the field": "every item comes back with the declared default",
            "lacks the field": "two items with different values come back different",
        },
    ),
    "supported_filters": Claim(
        "C10",
        {
            "has the key": "the key is accepted, and C11 proves that it selects",
            "lacks the key": "UnsupportedMemoryQuery names the key, and nothing is sent",
        },
    ),
    "search_consistency": Claim(
        "C14",
        {
            "immediate": "found as soon as store returns, with no help",
            "eventual": "missed on the fake until the index is exposed; retrieval is current",
        },
    ),
    "retrieve_fidelity": Claim(
        "C03",
        {
            "full": "no field changes in value or type",
            "native_fields": "only dropped fields change, to their default",
            "lossy": "a native field changes, as the projection declares",
        },
    ),
    "search_fidelity": Claim(
        "C07",
        {
            "full": "no field of a hit changes in value or type",
            "native_fields": "only dropped fields change, and tags that hits do not carry",
            "lossy": "a native field changes, as the projection declares",
        },
    ),
    "search_returns_tags": Claim(
        "C12",
        {
            "true": "hits carry the item's tags",
            "false": "hits carry no tags, and the loss is named",
        },
    ),
    "preserves_metadata": Claim(
        "C13",
        {
            "true": "metadata comes back exactly, from retrieval and from search",
            "false": "metadata comes back as the projection declares",
        },
    ),
}


@dataclass(frozen=True)
class Toggle:
    """A manifest that claims another value for one field.

    Attributes:
        field: The field that was turned.
        value: What it claims now.
        manifest: The smallest coherent change that contains it; None where the validator
            refuses every such change, which is the field's proof.
        refusal: What the validator says to the change by itself, if there is no manifest.
    """

    field: str
    value: str
    manifest: MemoryAdapterManifest | None
    refusal: str = ""


def toggles(manifest: MemoryAdapterManifest) -> Iterator[Toggle]:
    """Turn every field of a manifest, one after the other, to each other value it may have."""
    yield _toggle(manifest, "adapter", f"{manifest.adapter}-of-another")
    for name in ("native_item_fields", "dropped_item_fields"):
        for native, dropped in _classifications():
            value = native if name == "native_item_fields" else dropped
            if value != getattr(manifest, name):
                yield _toggle(manifest, name, value)
    yield _toggle(manifest, "supported_filters", manifest.supported_filters | {UNDECLARED})
    for key in sorted(manifest.supported_filters):
        yield _toggle(manifest, "supported_filters", manifest.supported_filters - {key})
    for name, values in _CHOICES.items():
        for value in values:
            if value != getattr(manifest, name):
                yield _toggle(manifest, name, value)


_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "search_consistency": get_args(SearchConsistency),
    "retrieve_fidelity": get_args(Fidelity),
    "search_fidelity": get_args(Fidelity),
    "search_returns_tags": (True, False),
    "preserves_metadata": (True, False),
}


def _classifications() -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    every = {"id", "created_at", "metadata", "content", "tags"}
    for dropped in (set[str](), {"created_at"}, {"metadata"}, {"created_at", "metadata"}):
        yield frozenset(every - dropped), frozenset(dropped)


def _toggle(manifest: MemoryAdapterManifest, field: str, value: Any) -> Toggle:
    """Find the coherent manifest with this value that differs in the fewest other fields."""
    given = manifest.model_dump()
    best: tuple[int, MemoryAdapterManifest] | None = None
    refusal = ""
    for candidate in _variants(given, field, value):
        try:
            found = MemoryAdapterManifest.model_validate(candidate)
        except ValidationError as error:
            refusal = refusal or str(error.errors(include_input=False, include_url=False)[0]["msg"])
            continue
        distance = sum(candidate[name] != given[name] for name in given)
        if best is None or distance < best[0]:
            best = (distance, found)
    shown = "{" + ", ".join(sorted(value)) + "}" if isinstance(value, frozenset) else str(value)  # pyright: ignore[reportUnknownArgumentType]
    return Toggle(field, shown, best[1]) if best else Toggle(field, shown, None, refusal)


def _variants(given: dict[str, Any], field: str, value: Any) -> Iterator[dict[str, Any]]:
    names = [name for name in _CHOICES if name not in ("search_consistency", field)]
    classes = [(given["native_item_fields"], given["dropped_item_fields"]), *_classifications()]
    for native, dropped in classes:
        base = {**given, "native_item_fields": native, "dropped_item_fields": dropped, field: value}
        for values in product(*(_CHOICES[name] for name in names)):
            yield {**base, **dict(zip(names, values, strict=True))}

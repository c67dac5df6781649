"""The constructors of all adapters read alike, to people and to type checkers."""

import inspect
import typing
from importlib.metadata import entry_points
from typing import Any

import pytest

from adapter_core import DEFAULT_ITEM_TYPE, StoreOptions

STORES = [
    pytest.param(entry.load(), id=entry.name)
    for entry in sorted(entry_points(group="adapter_core.stores"), key=lambda entry: entry.name)
]


def options(signature: inspect.Signature) -> set[str]:
    """The keywords that a signature takes, also those that it has from a TypedDict."""
    found: set[str] = set()
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            found.add(parameter.name)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (listed,) = typing.get_args(parameter.annotation)
            found |= typing.get_type_hints(listed).keys()
    return found


@pytest.mark.parametrize("store", STORES)
def test_the_shared_options_have_one_meaning_and_one_default(store: Any) -> None:
    parameters = inspect.signature(store).parameters
    assert {*StoreOptions.__annotations__, "item_type"} <= options(inspect.signature(store))
    defaults = {name: parameters[name].default for name in ("namespace", "filters", "item_type", "coalesce")}
    assert defaults == {
        "namespace": "default",
        "filters": (),
        "item_type": DEFAULT_ITEM_TYPE,
        "coalesce": True,
    }


@pytest.mark.parametrize("store", STORES)
def test_a_type_checker_sees_every_option_with_and_without_an_item_type(store: Any) -> None:
    every = options(inspect.signature(store))
    seen = [options(inspect.signature(one)) for one in typing.get_overloads(store.__init__)]
    assert seen == [every - {"item_type"}, every]

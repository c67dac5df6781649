"""`fidelity ddl`: what an administrator runs where the store's role may create nothing."""

from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from adapter_conformance.session import safely_told
from adapter_core import MemoryAdapterError

from ._common import Options, parsed_options, usage_error

STORES = "adapter_core.stores"


def ddl(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An adapter with tables, such as postgres.")],
    *,
    option: Options = None,
) -> None:
    """Print the DDL of an adapter's tables, for an administrator."""
    options = parsed_options(option)
    write: Any = getattr(_store_class(name), "ddl", None)
    if write is None:
        usage_error(f"{name} has no tables for an administrator to make")
    try:
        text: str = write(**options)
    except (MemoryAdapterError, TypeError) as error:
        usage_error(safely_told(error))
    typer.echo(text)


def _store_class(name: str) -> Any:
    found = {entry.name: entry for entry in entry_points(group=STORES)}
    if name in found:
        try:
            return found[name].load()
        except ImportError as error:
            usage_error(f"the adapter {name} cannot be imported: {safely_told(error)}")
    known = ", ".join(sorted(found)) or "none"
    return usage_error(f"no adapter {name!r} is installed (installed: {known})")

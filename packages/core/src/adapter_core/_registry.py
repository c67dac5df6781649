"""`open_store`: find the adapter for a URL among those that are installed."""

import re
from importlib.metadata import entry_points
from typing import Any

from ._errors import MemoryAdapterError
from ._store import AdapterStore

STORES = "adapter_core.stores"
"""Entry point group: the name is the URL scheme, the value a class with `from_url`."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def open_store(url: str, **options: Any) -> AdapterStore[Any]:
    """Make the store that a URL names. Like a constructor, it does no I/O.

    Args:
        url: Such as `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite:///:memory:`.
        options: Options of the adapter's constructor.

    Raises:
        MemoryAdapterError: No installed adapter has this scheme, or the URL is malformed. The
            message does not show the URL, which may hold a password.
    """
    scheme, separator, _ = url.partition(":")
    if not separator or not _SCHEME.fullmatch(scheme):
        raise MemoryAdapterError("a store URL begins with a scheme and a colon")
    found = entry_points(group=STORES)
    for entry in found:
        if entry.name == scheme.lower():
            try:
                adapter = entry.load()
            except ImportError as error:
                raise MemoryAdapterError(f"the adapter for {scheme}: cannot be imported") from error
            store: AdapterStore[Any] = adapter.from_url(url, **options)
            return store
    known = ", ".join(sorted({entry.name for entry in found})) or "none"
    raise MemoryAdapterError(f"no adapter for {scheme}: is installed (installed: {known})")

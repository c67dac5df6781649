"""What is installed beside an adapter, and what came with it."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, version

_NAME = re.compile(r"[\w.-]+")
_OURS = "adapter-core"


def installed_drivers(dist: Distribution | None) -> tuple[str, ...]:
    """Give the client libraries that a distribution requires, as `asyncpg 0.31.0`.

    What it needs only for an extra is left out, and so is a library that is not installed.
    """
    found: list[str] = []
    for line in (dist.requires if dist else None) or ():
        requirement, _, marker = line.partition(";")
        name = _NAME.match(requirement)
        if name is None or name[0] == _OURS or "extra" in marker:
            continue
        try:
            found.append(f"{name[0]} {version(name[0])}")
        except PackageNotFoundError:
            continue
    return tuple(found)

"""A case of the inventory."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ._run import Run


@dataclass(frozen=True)
class Case:
    """One case: an id that is stable, a short name, and the body that no adapter can override."""

    id: str
    name: str
    title: str
    body: Callable[[Run], Awaitable[None]]

    @property
    def label(self) -> str:
        """The id and the name, as `C08-limit`."""
        return f"{self.id}-{self.name}"

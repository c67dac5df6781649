"""Embedders: text as vectors, by a function of the caller's."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adapter_core import MemoryAdapterError

Vectors = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Embedder:
    """What makes vectors of texts, and what a namespace remembers of it.

    Attributes:
        embed: Gives one vector for each text. A plain function runs in a thread, so that it does
            not hold up the event loop; it may be called again before it has returned.
        name: Of the model and its version. A namespace that was indexed by another name is refused.
        dimension: How many numbers a vector has.

    Raises:
        MemoryAdapterError: A value is not legal.
    """

    embed: Callable[[Sequence[str]], Vectors | Awaitable[Vectors]]
    name: str
    dimension: int

    def __post_init__(self) -> None:
        """Check the values."""
        if not callable(self.embed):
            raise MemoryAdapterError("embed must be callable")
        if type(self.name) is not str or not self.name:
            raise MemoryAdapterError("the name of an embedder must be a str that is not empty")
        if type(self.dimension) is not int or not 1 <= self.dimension <= 65_536:  # as Qdrant has it
            raise MemoryAdapterError("the dimension of an embedder must be an int of 1 to 65536")

    async def vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed some texts.

        Raises:
            MemoryAdapterError: The embedder failed, or gave what is no vector of its dimension. The
                message shows no text.
        """
        try:
            found: Any = await self._called(texts)
        except MemoryAdapterError:
            raise
        except Exception as error:
            # its message tends to hold the text
            raise MemoryAdapterError(f"the embedder failed ({type(error).__name__})") from error
        return self._checked(found, len(texts))

    async def _called(self, texts: Sequence[str]) -> Any:
        embed: Any = self.embed
        method = getattr(embed, "__call__", None)  # noqa: B004 - an object may have an async one
        if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(method):
            return await embed(texts)
        found: Any = await asyncio.to_thread(embed, texts)
        return await found if inspect.isawaitable(found) else found

    def _checked(self, found: Any, count: int) -> list[list[float]]:
        try:
            vectors = [[float(number) for number in vector] for vector in found]
        except (TypeError, ValueError) as error:
            reason = type(error).__name__
        else:
            if len(vectors) != count:
                raise MemoryAdapterError(f"the embedder gave {len(vectors)} vectors for {count} texts")
            for vector in vectors:
                if len(vector) != self.dimension:
                    raise MemoryAdapterError(
                        f"the embedder gave a vector of {len(vector)} numbers; its dimension is "
                        f"{self.dimension}"
                    )
                if not all(map(math.isfinite, vector)):
                    raise MemoryAdapterError("the embedder gave a number that is not finite")
                if not any(vector):
                    raise MemoryAdapterError("the embedder gave a vector of zeros, which has no direction")
            return vectors
        raise MemoryAdapterError(f"the embedder gave no vectors ({reason})")

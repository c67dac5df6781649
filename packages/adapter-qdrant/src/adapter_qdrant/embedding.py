"""Embedders: text as vectors, by a function of the caller's."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from adapter_core import MemoryAdapterError

Vectors = Sequence[Sequence[float]]

_SHORTEST, _LONGEST = 1e-15, 1e15  # the squares are well within what 32 bits hold, 1e-38 to 3e38


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
            vectors = _numbers(await self._called(texts))
        except MemoryAdapterError:
            raise
        except (TypeError, OverflowError, ValueError) as error:
            reason = f"the embedder gave no vectors ({type(error).__name__})"
        except Exception as error:  # of a generator, which does its work only now
            raise MemoryAdapterError(f"the embedder failed ({type(error).__name__})") from error
        else:
            self._check(vectors, len(texts))
            return list(map(_in_range, vectors))
        raise MemoryAdapterError(reason)

    async def _called(self, texts: Sequence[str]) -> Any:
        embed: Any = self.embed
        method = getattr(embed, "__call__", None)  # noqa: B004 - an object may have an async one
        try:
            if inspect.iscoroutinefunction(embed) or inspect.iscoroutinefunction(method):
                return await embed(texts)
            found: Any = await asyncio.to_thread(_guarded, embed, texts)
            return await found if inspect.isawaitable(found) else found
        except MemoryAdapterError:
            raise
        except Exception as error:
            # its message tends to hold the text
            raise MemoryAdapterError(f"the embedder failed ({type(error).__name__})") from error

    def _check(self, vectors: Sequence[Sequence[float]], count: int) -> None:
        if len(vectors) != count:
            raise MemoryAdapterError(f"the embedder gave {len(vectors)} vectors for {count} texts")
        for vector in vectors:
            if len(vector) != self.dimension:
                raise MemoryAdapterError(
                    f"the embedder gave a vector of {len(vector)} numbers; its dimension is {self.dimension}"
                )
            if not all(map(math.isfinite, vector)):
                raise MemoryAdapterError("the embedder gave a number that is not finite")
            if not any(vector):
                raise MemoryAdapterError("the embedder gave a vector of zeros, which has no direction")


def _guarded(embed: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> Any:
    """Call it, where a StopIteration would never reach the one who waits for the thread."""
    try:
        return embed(texts)
    except StopIteration as error:
        raise RuntimeError("StopIteration") from error


def _numbers(found: Any) -> list[list[float]]:
    """Read vectors of any kind of number.

    Raises:
        TypeError: There is something else in them, such as a text that looks like a number.
        OverflowError: An int is larger than any float.
    """
    return [[number if type(number) is float else _number(number) for number in _row(one)] for one in found]


def _row(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | str):
        raise TypeError("a text is no vector")
    return value


def _number(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError("a text is no number")
    return float(value)


def _in_range(vector: list[float]) -> list[float]:
    """Keep the direction of a vector whose length Qdrant, which counts with 32 bits, cannot work out."""
    length = math.hypot(*vector)
    if _SHORTEST < length < _LONGEST:
        return vector
    largest = max(map(abs, vector))
    return [number / largest for number in vector]

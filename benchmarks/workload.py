"""What is stored and what is asked: the same in every run, for every contender."""

import random
from collections.abc import Iterator
from itertools import accumulate
from uuid import UUID

from adapter_core import MemoryItem, MemoryQuery

from .words import BIRDS, KINDS, SOURCES, TOPICS, WORDS

TEXT_LENGTH = 200
FILTERS = ("customer", "priority", "source", "confirmed", "confidence")
"""The metadata keys of each memory; queries may filter by all of them."""

FEW = 50
"""How many memories a search by tag and customer matches, however many there are."""
RARE = 20
"""How many memories have one rare word."""
LIMIT = 20

_PRIORITIES = 4
_START, _STEP = 1_700_000_000.0, 60.0
_WEIGHTS = [*accumulate(1 / (rank + 1) for rank in range(len(WORDS)))]
# Words of this frequency stand in about a quarter of the texts.
_COMMON = slice(16, 24)


class Workload:
    """Memories and queries for one size of data.

    A memory depends on its number, the size and the seed alone. Numbers from the size on are memories
    that are not there yet.

    Args:
        size: How many memories are there when the measuring begins.
        seed: Another one gives other data of the same shape.
    """

    def __init__(self, size: int, seed: int = 1) -> None:
        self.size = size
        self._seed = seed
        self._customers = max(2, size // (FEW * len(KINDS)))
        self._projects = max(2, size // RARE)

    def memory(self, number: int) -> MemoryItem:
        """Make the memory of a number."""
        rng = self._random("memory", number)
        return MemoryItem(
            id=self.id(number),
            created_at=_START + _STEP * number + rng.random(),
            content=self._text(rng),
            tags=[rng.choice(KINDS), *rng.sample(TOPICS, 2)],
            metadata={
                "customer": self._customer(rng),
                "priority": rng.randint(1, _PRIORITIES),
                "source": rng.choice(SOURCES),
                "confirmed": rng.random() < 0.5,
                "confidence": round(rng.random(), 3),
            },
        )

    def memories(self, begin: int, count: int) -> Iterator[MemoryItem]:
        """Make the memories of consecutive numbers."""
        return map(self.memory, range(begin, begin + count))

    def id(self, number: int) -> UUID:
        """Give the id of the memory of a number."""
        return UUID(int=self._random("id", number).getrandbits(128), version=4)

    def known_ids(self, turn: int, count: int) -> list[UUID]:
        """Choose ids that are there; other ones in each turn."""
        rng = self._random("known", turn)
        return [self.id(rng.randrange(self.size)) for _ in range(count)]

    # Queries: other ones in each turn

    def few(self, turn: int, count: int) -> list[MemoryQuery]:
        """Ask by tag and filter for what about 50 memories have, whatever the size."""
        rng = self._random("few", turn)
        return [
            MemoryQuery(tags=[rng.choice(KINDS)], filters={"customer": self._customer(rng)}, limit=LIMIT)
            for _ in range(count)
        ]

    def newest(self, turn: int, count: int) -> list[MemoryQuery]:
        """Ask by tag and filter for what a part of all memories have: the newest 20 of them."""
        rng = self._random("newest", turn)
        return [
            MemoryQuery(
                tags=[rng.choice(KINDS)], filters={"priority": rng.randint(1, _PRIORITIES)}, limit=LIMIT
            )
            for _ in range(count)
        ]

    def rare(self, turn: int, count: int) -> list[MemoryQuery]:
        """Ask for a word that about 20 memories have, whatever the size."""
        rng = self._random("rare", turn)
        return [MemoryQuery(text=self._project(rng), limit=LIMIT) for _ in range(count)]

    def common(self, turn: int, count: int) -> list[MemoryQuery]:
        """Ask for a word that about a quarter of all memories have: the best 20 of them."""
        rng = self._random("common", turn)
        return [MemoryQuery(text=rng.choice(WORDS[_COMMON]), limit=LIMIT) for _ in range(count)]

    def _text(self, rng: random.Random) -> str:
        words: list[str] = rng.choices(WORDS, cum_weights=_WEIGHTS, k=TEXT_LENGTH // 4)
        words[rng.randrange(8)] = self._project(rng)
        sentences: list[str] = []
        length = 0
        while length < TEXT_LENGTH - 25:
            count = rng.randint(6, 12)
            sentence, words = " ".join(words[:count]).capitalize() + ".", words[count:]
            sentences.append(sentence)
            length += len(sentence) + 1
        return " ".join(sentences)

    def _customer(self, rng: random.Random) -> str:
        return f"customer-{rng.randrange(self._customers)}"

    def _project(self, rng: random.Random) -> str:
        number = rng.randrange(self._projects)
        return f"{BIRDS[number % len(BIRDS)]}{number}"

    def _random(self, purpose: str, number: int) -> random.Random:
        return random.Random(f"{self._seed} {self.size} {purpose} {number}")

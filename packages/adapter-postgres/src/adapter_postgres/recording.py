"""A transport that logs what is sent through it, for tests."""

from collections.abc import Sequence
from typing import Any, TypeVar

from adapter_core.testing import OPERATION_KINDS, TransportCall

from .transport import Row, Session, Statement, Transport, Work

T = TypeVar("T")


class RecordingTransport:
    """Hands every call on to another transport, and logs it.

    Args:
        inner: The transport that does the work.
        calls: Where the calls are appended as they end.
    """

    def __init__(self, inner: Transport, calls: list[TransportCall]) -> None:
        self._inner = inner
        self._calls = calls

    async def open(self, setup: Work[None]) -> None:
        try:
            await self._inner.open(setup)
        finally:
            self._log("open", ())

    async def run(self, statement: Statement, *arguments: Any) -> Sequence[Row]:
        try:
            return await self._inner.run(statement, *arguments)
        finally:
            self._log(statement.name, arguments)

    async def transact(self, operation: str, work: Work[T]) -> T:
        sent: list[Any] = []
        try:
            return await self._inner.transact(operation, lambda session: work(_Told(session, sent)))
        finally:
            self._log(operation, sent)

    async def close(self) -> None:
        await self._inner.close()

    def _log(self, operation: str, arguments: Sequence[Any]) -> None:
        payload = "\n".join(map(str, arguments))
        self._calls.append(TransportCall(operation, OPERATION_KINDS.get(operation, "other"), payload))


class _Told:
    """A session that tells what is sent over it."""

    def __init__(self, inner: Session, sent: list[Any]) -> None:
        self._inner = inner
        self._sent = sent

    async def run(self, statement: Statement, *arguments: Any) -> Sequence[Row]:
        self._sent += arguments
        return await self._inner.run(statement, *arguments)

    async def transact(self, operation: str, work: Work[T]) -> T:
        return await self._inner.transact(operation, lambda session: work(_Told(session, self._sent)))

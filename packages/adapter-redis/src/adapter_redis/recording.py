"""A transport that logs what is sent through it, for tests."""

from collections.abc import Sequence
from typing import Any

from adapter_core.testing import OPERATION_KINDS, TransportCall

from .transport import Call, Transport, Work


class RecordingTransport:
    """Hands every call on to another transport, and logs it.

    Args:
        inner: The transport that does the work.
        calls: Where the calls are appended as they end.
    """

    def __init__(self, inner: Transport, calls: list[TransportCall]) -> None:
        self._inner = inner
        self._calls = calls

    async def open(self, setup: Work) -> None:
        try:
            await self._inner.open(setup)
        finally:
            self._log("open", ())

    async def send(self, *calls: Call) -> Sequence[Any]:
        try:
            return await self._inner.send(*calls)
        finally:
            self._log(calls[0].name, [argument for call in calls for argument in call.arguments])

    async def close(self) -> None:
        await self._inner.close()

    def _log(self, operation: str, arguments: Sequence[bytes]) -> None:
        payload = b"\n".join(arguments).decode("utf-8", "replace")
        self._calls.append(TransportCall(operation, OPERATION_KINDS.get(operation, "other"), payload))

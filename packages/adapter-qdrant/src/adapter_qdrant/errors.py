"""Errors of the client, without what they may show; loaded with `client` alone.

A server quotes what it was sent, and a body that cannot be read holds items. So an error keeps what
it is and loses its words. By gRPC each code stands for the answers by REST that mean the same.
"""

from importlib import import_module
from typing import Any

import httpx
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from adapter_core import MemoryAdapterUnavailable

grpcio: Any = import_module("grpc")
"""The library of that name, which has no types; its errors are part of the client's interface."""

_Code: Any = grpcio.StatusCode
_RpcError: Any = grpcio.aio.AioRpcError
_ChannelError: Any = grpcio.aio.BaseError

_NOTHING_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
# answers after which nothing was done
_REFUSED = frozenset({401, 403, 404, 429})
_REFUSED_CODES = frozenset(
    {
        _Code.UNAUTHENTICATED,
        _Code.PERMISSION_DENIED,
        _Code.NOT_FOUND,
        _Code.RESOURCE_EXHAUSTED,
        _Code.UNIMPLEMENTED,  # no Qdrant, or one that is too old
    }
)
# answers that the request itself is the reason of
_BAD_CODES = frozenset({_Code.INVALID_ARGUMENT, _Code.ALREADY_EXISTS, _Code.OUT_OF_RANGE})
# a collection that exists is a conflict, or in some releases a bad request
_CONFLICTS = frozenset({400, 409, _Code.INVALID_ARGUMENT, _Code.ALREADY_EXISTS})

FAILURES: tuple[type[Exception], ...] = (
    UnexpectedResponse,
    QdrantException,  # an answer 429 that says when to come back
    ResponseHandlingException,
    _RpcError,
    _ChannelError,
    ValueError,
    AssertionError,  # the client asserts that an answer has a result
    AttributeError,  # by gRPC an answer that cannot be read is given to the client as None
)
"""What a call of the client fails with."""


class CollectionGone(MemoryAdapterUnavailable):
    """There is no such collection."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


def safe(error: Exception) -> Exception:
    """Give an error of a server, or of the client before one, without what it may quote."""
    if isinstance(error, UnexpectedResponse):
        quiet = UnexpectedResponse(error.status_code, error.reason_phrase, b"", httpx.Headers())
        if error.status_code not in _REFUSED:
            return quiet
        return _nothing_done(quiet, str(error.status_code), gone=error.status_code == 404)
    if isinstance(error, _RpcError):
        return _safe_code(error)
    if isinstance(error, QdrantException):
        _let_go(error)
        overloaded = MemoryAdapterUnavailable("the server is overloaded; nothing was done")
        return _caused(overloaded, QdrantException(type(error).__name__))
    source = error.source if isinstance(error, ResponseHandlingException) else error
    if isinstance(source, _NOTHING_SENT):
        name = type(source).__name__
        reason = f"no connection to the backend ({name}); nothing was sent"
        return _caused(MemoryAdapterUnavailable(reason), error)
    if isinstance(source, httpx.HTTPError | httpx.StreamError | OSError | _ChannelError):
        return error
    # a body that cannot be read, which its error quotes
    return ResponseHandlingException(ValueError(f"the answer cannot be read ({type(source).__name__})"))


def _code(error: Any) -> Any:
    """Give the code of an answer by gRPC; None: it is none."""
    return error.code() if isinstance(error, _RpcError) else None


def _safe_code(error: Exception) -> Exception:
    _let_go(error)
    code = _code(error)
    quiet: Exception = _RpcError(code, grpcio.aio.Metadata(), grpcio.aio.Metadata())
    if code not in _REFUSED_CODES:
        return quiet
    return _nothing_done(quiet, code.name, gone=code is _Code.NOT_FOUND)


def _let_go(error: Exception) -> None:
    """Part an error from the call that failed.

    By gRPC each holds the other, and together they would keep the connection open after `close`, until
    the interpreter looks for garbage.
    """
    for one in (error, error.__cause__):
        if one is not None:
            one.__traceback__ = None


def _nothing_done(quiet: Exception, answer: str, *, gone: bool) -> Exception:
    kind = CollectionGone if gone else MemoryAdapterUnavailable
    return _caused(kind(f"the server answered {answer}; nothing was done"), quiet)


def local(error: Exception) -> Exception:
    """Give an error of the client's own engine, which raises a ValueError for whatever is wrong."""
    if isinstance(error, ValueError) and "not found" in str(error):
        return CollectionGone("the collection is gone; nothing was done")
    return error


def _caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def is_conflict(error: Exception) -> bool:
    """Whether a server answered that what is to be made may be there already."""
    status = error.status_code if isinstance(error, UnexpectedResponse) else _code(error)
    return status in _CONFLICTS


def is_broken(error: Exception) -> bool:
    """Whether an error of the client means that the server was not asked or did not answer.

    By gRPC a server says with most of its codes that it failed, which leaves it open what was done.
    """
    if isinstance(error, _RpcError):
        return _code(error) not in _BAD_CODES
    return isinstance(error, ResponseHandlingException | QdrantException | httpx.HTTPError | _ChannelError)

"""Delegates: a store that passes everything on, but for what is replaced."""

from operator import attrgetter
from typing import Any

_LIFECYCLE = ("__aenter__", "__aexit__")


def delegate(store: Any, /, **replaced: Any) -> Any:
    """Wrap a store. It has the methods and properties of the inner one, and no more.

    The names are those of a class, not answered by `__getattr__`, so that the runtime-checkable
    protocols see through it.

    Args:
        store: The store to pass calls on to.
        replaced: Methods and properties (taking the inner store), or values of properties.
    """
    body: dict[str, Any] = {}
    for name in dir(store):  # of the instance: a store may set its manifest in the constructor
        if name != "inner" and (not name.startswith("_") or name in _LIFECYCLE):
            body[name] = property(attrgetter(f"inner.{name}"))
    for name, value in replaced.items():
        if isinstance(value, property):
            body[name] = _computed(value)
        elif callable(value):
            body[name] = _method(value)
        else:
            body[name] = _constant(value)
    made: Any = type(f"Delegate[{type(store).__name__}]", (), body)()
    made.inner = store
    return made


def _constant(value: Any) -> property:
    return property(lambda _: value)


def _computed(value: property) -> property:
    return property(lambda self: value.__get__(self.inner))


def _method(function: Any) -> Any:
    def bound(self: Any, *args: Any, **options: Any) -> Any:
        return function(self.inner, *args, **options)

    return bound

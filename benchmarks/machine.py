"""Where a run took place: versions, load, and how long the disk takes."""

import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DISTRIBUTIONS = (
    "adapter-core",
    "adapter-sqlite",
    "pydantic",
    "aiosqlite",
    "langgraph-checkpoint-sqlite",
    "lionagi",
)

_FLUSHES = 50


def versions() -> dict[str, str]:
    """Give the versions of Python and of the distributions that are installed."""
    return {"Python": platform.python_version()} | installed(DISTRIBUTIONS)


def installed(names: Iterable[str]) -> dict[str, str]:
    """Give the versions of those distributions that are installed."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def load() -> str:
    """Say how busy the machine is: processors, and the mean number of busy ones of the last minutes."""
    cores = f"{os.cpu_count()} processors, {platform.machine()}, {sys.platform}"
    if not hasattr(os, "getloadavg"):
        return cores
    return f"{cores}, load " + " ".join(f"{mean:.2f}" for mean in os.getloadavg())


def flush_seconds(folder: Path) -> float:
    """Time how long the disk takes to keep one small write for good."""
    times: list[float] = []
    with (folder / "flush").open("wb") as file:
        for _ in range(_FLUSHES):
            file.write(bytes(4096))
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times)

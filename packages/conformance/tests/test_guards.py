"""Take one guard out of core or of an adapter: a named case of the kit must fail, for a named reason.

Each guard is taken out of a copy of its package, which a process of its own imports. What the kit
does not notice there is a hole in the kit.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

BOUND = 120

RUN = """
import asyncio, importlib, json, sys
package, adapter, case_id = sys.argv[1:]
from adapter_conformance import ALL_CASES, harness_entries, run_case

(entry,) = (one for one in harness_entries() if one.name == adapter)
(kind,) = (one for one in entry.load() if one.environment == "fake")

async def run():
    harness = kind()
    try:
        (case,) = (one for one in ALL_CASES if one.id == case_id)
        return await run_case(case, harness, adapter, "fake")
    finally:
        await harness.close()

result = asyncio.run(run())
where = importlib.import_module(package).__file__
print(json.dumps({"status": result.status, "reason": result.reason, "where": where}))
"""


class Guard(NamedTuple):
    """A guard by its exact source, what stands there without it, and who must notice."""

    name: str
    module: str
    source: str
    without: str
    case: str
    reason: str
    adapter: str = "template"


GUARDS = [
    # What a search may ask
    Guard(
        "filter key",
        "adapter_core._records",
        "if type(key) is not str or key not in supported:",
        "if False:",
        "C10",
        "supported_filters: declared",
    ),
    Guard(
        "all rejected keys",
        "adapter_core._errors",
        "self.rejected_keys = tuple(sorted(set(rejected_keys)))",
        "self.rejected_keys = tuple(sorted(set(rejected_keys)))[:1]",
        "C10",
        "two unknown keys beside a known one: rejected",
    ),
    Guard(
        "order of rejected keys",
        "adapter_core._errors",
        "self.rejected_keys = tuple(sorted(set(rejected_keys)))",
        "self.rejected_keys = tuple(rejected_keys)",
        "C10",
        "two unknown keys beside a known one: rejected",
    ),
    Guard(
        "filter value",
        "adapter_core._records",
        "if all(is_scalar(one) and _finite(one) for one in values):",
        "if all(is_scalar(one) for one in values):",
        "C10",
        "a float for",
    ),
    Guard(
        "time bound",
        "adapter_core._records",
        "if type(value) not in (int, float) or not _finite(value):",
        "if type(value) not in (int, float):",
        "C10",
        "a float for created_after: accepted",
    ),
    Guard(
        "text of a query",
        "adapter_core._records",
        "if text is not None and not isinstance(text, str):",
        "if False:",
        "C10",
        "raised AttributeError",
    ),
    Guard(
        "tags of a query",
        "adapter_core._records",
        "if isinstance(tags, list | tuple | set | frozenset):",
        "if True:",
        "C10",
        "a host's query with a str for tags: accepted",
    ),
    Guard(
        "each tag of a query",
        "adapter_core._records",
        "if all(isinstance(tag, str) for tag in given):",
        "if True:",
        "C10",
        "raised TypeError",
    ),
    Guard(
        "filters of a query",
        "adapter_core._records",
        "if filters is not None and not isinstance(filters, Mapping):",
        "if False:",
        "C10",
        "raised AttributeError",
    ),
    Guard(
        "limit",
        "adapter_core._records",
        "if type(limit) is not int or limit < 0:",
        "if type(limit) is not int:",
        "C08",
        "limit=-1: accepted",
    ),
    Guard(
        "type of limit",
        "adapter_core._records",
        "if type(limit) is not int or limit < 0:",
        "if isinstance(limit, int) and limit < 0:",
        "C08",
        "limit=True: accepted",
    ),
    Guard(
        "limit of 0",
        "adapter_core._store",
        "if checked.criteria.limit == 0:",
        "if False:",
        "C08",
        "a limit that gives nothing reached the transport",
    ),
    # What a search finds
    Guard(
        "nothing can match",
        "adapter_core._records",
        "possible and after <= before and all(facets)",
        "possible and after <= before",
        "C11",
        "raised MemoryAdapterError from OperationalError",
        adapter="sqlite",
    ),
    Guard(
        "text without terms",
        "adapter_core._records",
        "possible = possible and bool(wanted)",
        "pass",
        "X14",
        "the text '!!!' finds",
    ),
    Guard(
        "an empty search asks the backend",
        "adapter_core._store",
        'await self._call("search", lambda: self._driver.find(_ANYTHING))',
        "pass",
        "C15",
        "search for nothing possible in mid-life gives a result",
    ),
    Guard(
        "bool is no number",
        "adapter_core._tokens",
        'return "_t" if value else "_u"',
        'return "_i1" if value else "_i0"',
        "C11",
        "= True does not find exactly the items",
    ),
    Guard(
        "case of a token",
        "adapter_core._tokens",
        "return text.translate(_ESCAPED)",
        "return text.lower().translate(_ESCAPED)",
        "C12",
        "tags=['alpha-x'] finds",
    ),
    Guard(
        "tag tokens",
        "adapter_core._records",
        "tuple(dict.fromkeys(map(tag_token, item.tags))),",
        "(),",
        "C12",
        "tags=['alpha-x'] finds 0 items, not 2",
    ),
    Guard(
        "stored time in the index",
        "adapter_core._store",
        "return Record(fields.id, expected.created_at,",
        "return Record(fields.id, fields.created_at,",
        "C11",
        "are not inclusive bounds",
        adapter="template-dropping",
    ),
    # What a write may be
    Guard(
        "type of a value",
        "adapter_core._codec",
        'reason = f"{_kind(value)} is not a JSON type, and nothing is coerced"',
        "return",
        "C06",
        "accepted, although it cannot come back equal",
    ),
    Guard(
        "finite value",
        "adapter_core._codec",
        "        if math.isfinite(value):\n            return\n",
        "        return\n",
        "C06",
        "raised ValueError",
    ),
    Guard(
        "joined surrogates",
        "adapter_core._codec",
        "if _JOINABLE.search(text):",
        "if False:",
        "C06",
        "adjacent surrogates in content: accepted",
    ),
    Guard(
        "dict keys",
        "adapter_core._codec",
        "        if type(key) is not str:\n            raise",
        "        if False:\n            raise",
        "C06",
        "raised AttributeError",
    ),
    Guard(
        "depth",
        "adapter_core._codec",
        "if left <= 0:",
        "if False:",
        "C06",
        "too deep in content: accepted",
    ),
    Guard(
        "further fields",
        "adapter_core._codec",
        "    if further:\n",
        "    if False:\n",
        "C06",
        "a further field: accepted",
    ),
    Guard(
        "equality of the host's item",
        "adapter_core._store",
        "            if same_fields(built, expected):\n                return\n",
        "            return\n",
        "C06",
        "an item class that is changing: accepted",
    ),
    Guard(
        "refusal by the host's item",
        "adapter_core._store",
        "            reason = str(refusal)\n",
        "            return\n",
        "C06",
        "an item class that is refusing: accepted",
    ),
    Guard(
        "a batch is checked first",
        "adapter_core._extended",
        'raise UnrepresentableItem(f"items[{position}].{error.path}", error.reason) from None',
        "continue",
        "X10",
        "store_many takes an item that cannot come back equal",
    ),
    # What an answer says
    Guard(
        "identity of an acknowledgement",
        "adapter_core._store",
        "if set(acknowledged) != set(latest):",
        "if False:",
        "C16",
        "an acknowledgement without identity gives an identifier",
    ),
    Guard(
        "outages in core",
        "adapter_core._store",
        "if not self._driver.is_unavailable(error):",
        "if True:",
        "C15",
        "raises MemoryAdapterError",
    ),
    Guard(
        "refusals in core",
        "adapter_core._store",
        "if not self._driver.is_unavailable(error):",
        "if False:",
        "C16",
        "a refused write raises MemoryAdapterUnavailable",
    ),
    Guard(
        "cause of an outage",
        "adapter_core._store",
        """            self._ready = True
        try:
            return await operation()
        except MemoryAdapterError:
            raise
        except Exception as error:
            raise self._as_ours(verb, error, write=write) from error\n""",
        """            self._ready = True
        try:
            return await operation()
        except MemoryAdapterError:
            raise
        except Exception as error:
            raise self._as_ours(verb, error, write=write) from None\n""",
        "C15",
        "hides the native error",
    ),
    Guard(
        "decoding",
        "adapter_core._store",
        '        except ValueError as error:\n            raise MemoryAdapterError(f"the stored record of {item_id} is malformed")',
        '        except ZeroDivisionError as error:\n            raise MemoryAdapterError(f"the stored record of {item_id} is malformed")',
        "X12",
        "raised ValueError",
    ),
    Guard(
        "frozen manifest",
        "adapter_core._manifest",
        'model_config = ConfigDict(frozen=True, extra="forbid")',
        'model_config = ConfigDict(extra="forbid")',
        "C01",
        "the manifest can be changed",
    ),
    # Many calls, and the store's life
    Guard(
        "a batch is split after a refusal alone",
        "adapter_core._coalescer",
        "if len(calls) > 1 and not isinstance(error, MemoryAdapterUnavailable):",
        "if len(calls) > 1:",
        "C15",
        "4 writes at once send",
    ),
    Guard(
        "a refused batch is split",
        "adapter_core._coalescer",
        "if len(calls) > 1 and not isinstance(error, MemoryAdapterUnavailable):",
        "if False:",
        "C05",
        "a write fails because of another of the same moment",
    ),
    Guard(
        "closed store",
        "adapter_core._store",
        "        if self._closed:\n            raise MemoryAdapterUnavailable",
        "        if False:\n            raise MemoryAdapterUnavailable",
        "X07",
        "works after close",
    ),
    Guard(
        "one event loop",
        "adapter_core._store",
        "elif self._loop is not loop:",
        "elif False:",
        "X07",
        "another event loop",
    ),
    Guard(
        "the item is read before the first await",
        "adapter_core._store",
        "        record = self._record(item)\n        self._begin()\n",
        "        await asyncio.sleep(0)\n        record = self._record(item)\n        self._begin()\n",
        "X04",
        "changing an item after store changes what is stored",
    ),
    Guard(
        "another way of indexing",
        "adapter_core._store",
        "if ours.get(key) != theirs.get(key)",
        "if False",
        "X02",
        "the refusal does not name the difference",
        adapter="sqlite",
    ),
    Guard(
        "names of namespaces",
        "adapter_core._tokens",
        'return _bounded("n" + _escape(namespace))',
        'return _bounded("n" + _escape(namespace.strip()))',
        "X05",
        "an item of another namespace is",
    ),
    # Adapters
    Guard(
        "outages of the template",
        "adapter_template.store",
        "return isinstance(error, OSError)",
        "return False",
        "C15",
        "raises MemoryAdapterError",
    ),
    Guard(
        "marker of a read, template",
        "adapter_template.store",
        "for key, row in rows.items() if row.kind == KIND}",
        "for key, row in rows.items()}",
        "C05",
        "raised MemoryAdapterError",
    ),
    Guard(
        "tags that hits do not carry",
        "adapter_template.gaps",
        "return encode_document(decode_document(document)._replace(tags=[]))",
        "return document",
        "C12",
        "search_returns_tags: declared false, observed true",
        adapter="template-tagless",
    ),
    Guard(
        "declared tags of hits",
        "adapter_template.gaps",
        "return item._replace(tags=[])",
        "return item",
        "C12",
        "search changes tags of the probe",
        adapter="template-tagless",
    ),
    Guard(
        "outages of SQLite",
        "adapter_sqlite.driver",
        'return getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNAVAILABLE',
        "return False",
        "C15",
        "raises MemoryAdapterError",
        adapter="sqlite",
    ),
    Guard(
        "marker of a read, SQLite",
        "adapter_sqlite.statements",
        "LEFT JOIN memory_items i ON i.ns = n.ns AND i.id = ? AND i.marker = ?",
        "LEFT JOIN memory_items i ON i.ns = n.ns AND i.id = ? AND ? <> ''",
        "C05",
        "raised MemoryAdapterError",
        adapter="sqlite",
    ),
    Guard(
        "marker of a write, SQLite",
        "adapter_sqlite.driver",
        "if old is not None and not old.ours:",
        "if False:",
        "C05",
        "store overwrites a foreign record",
        adapter="sqlite",
    ),
    Guard(
        "wall of a read, SQLite",
        "adapter_sqlite.statements",
        "LEFT JOIN memory_items i ON i.ns = n.ns AND i.id = ? AND i.marker = ?",
        "LEFT JOIN memory_items i ON i.id = ? AND i.marker = ?",
        "X05",
        "an item of another namespace is retrieved",
        adapter="sqlite",
    ),
    Guard(
        "wall of a search, SQLite",
        "adapter_sqlite.search",
        """    asked = [" OR ".join(f'"{ns}{token}"' for token in group) for group in groups]
    if not asked:
        return f'"{ns}{tokens.EVERY}"'
""",
        """    asked = [" OR ".join(f'"{n}{token}"' for token in group for n in range(9)) for group in groups]
    if not asked:
        return " OR ".join(f'"{n}{tokens.EVERY}"' for n in range(9))
""",
        "X05",
        "an item of another namespace is found",
        adapter="sqlite",
    ),
    Guard(
        "old tokens, SQLite",
        "adapter_sqlite.driver",
        "changes = [] if old is None else _forgotten(ns, old)",
        "changes: list[_Change] = []",
        "X03",
        "a replaced item is found by what it was",
        adapter="sqlite",
    ),
    Guard(
        "expected revision, SQLite",
        "adapter_sqlite.driver",
        "if old is None or not old.ours or old.revision != expected:",
        "if old is None or not old.ours:",
        "X10",
        "a stale revision is accepted",
        adapter="sqlite",
    ),
    Guard(
        "signature of a live store, SQLite",
        "adapter_sqlite.driver",
        "if signed != self._signed:\n            raise",
        "if False:\n            raise",
        "X11",
        "raises MemoryAdapterError when degraded",
        adapter="sqlite",
    ),
    Guard(
        "outages of Postgres",
        "adapter_postgres.driver",
        "if isinstance(error, OSError | MemoryError):",
        "if False:",
        "C15",
        "raises MemoryAdapterError",
        adapter="postgres",
    ),
    Guard(
        "marker of a write, Postgres",
        "adapter_postgres.driver",
        'raise MemoryAdapterError("a record under this identity is not this adapter\'s") from error',
        "return [record.id for record in records]",
        "C05",
        "store overwrites a foreign record",
        adapter="postgres",
    ),
    Guard(
        "skipped rows, Postgres",
        "adapter_postgres.driver",
        "return []  # a row was skipped, and the server undid the whole",
        "return [record.id for record in records]",
        "C16",
        "an acknowledgement without identity gives an identifier",
        adapter="postgres",
    ),
    Guard(
        "signature of a live store, Postgres",
        "adapter_postgres.driver",
        "        if rows[0][0] != self._signed:\n            raise _indexed_otherwise()",
        "        if False:\n            raise _indexed_otherwise()",
        "X11",
        "search goes on although a capability went away",
        adapter="postgres",
    ),
]


def _without(guard: Guard, folder: Path) -> None:
    """Copy the guard's package, and take the guard out of the copy."""
    package = guard.module.partition(".")[0]
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"{package} is not installed")
    shutil.copytree(Path(found.origin).parent, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / (guard.module.replace(".", "/") + ".py")
    text = file.read_text("utf-8")
    assert text.count(guard.source) == 1, f"the guard is not there, or twice: {guard.source}"
    file.write_text(text.replace(guard.source, guard.without), "utf-8")


def _run(guard: Guard, folder: Path) -> dict[str, str]:
    package = guard.module.partition(".")[0]
    done = subprocess.run(
        [sys.executable, "-c", RUN, package, guard.adapter, guard.case],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, str] = json.loads(done.stdout)
    assert Path(result["where"]).is_relative_to(folder)
    return result


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_without_a_guard_the_named_case_fails(guard: Guard, tmp_path: Path) -> None:
    _without(guard, tmp_path)
    result = _run(guard, tmp_path)
    assert (guard.case, result["status"]) == (guard.case, "failed"), result
    assert guard.reason in result["reason"]


def test_a_copy_with_its_guards_passes(tmp_path: Path) -> None:
    guard = GUARDS[0]
    _without(guard._replace(without=guard.source), tmp_path)
    assert _run(guard, tmp_path)["status"] == "passed"


def test_each_guard_has_a_name_of_its_own() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS) >= 50

"""Searches: what is asked of the full-text index, and in which order its answers are read."""

import heapq
import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from adapter_core import Criteria

from . import tokens

Group = tuple[str, ...]

MATCHED = 64
"""How many groups the index is asked for; an item that it finds is checked for further ones."""
ALTERNATIVES = 1000
"""How many tokens of one any-of group the index is asked for; larger groups are checked likewise."""
ONE_BY_ONE = 16
"""The levels of so many terms are read one by one."""
FEW = 128
"""The matches of a term are all looked at if they are fewer."""

_LARGEST = 2**62

# f: the index; i: the item. The index gives its rows by descending place.
WALK = """
SELECT i.id, i.document, i.created_at, i.place FROM memory_index f
CROSS JOIN memory_items i ON i.place = f.rowid AND i.marker = :marker
AND i.created_at BETWEEN :after AND :before{conditions}
WHERE f.memory_index MATCH :match AND f.rowid BETWEEN :first AND :last
ORDER BY f.rowid DESC
"""
# only of the hits that are given is the document read
SCORED = """
SELECT h.id, h.document, u.score / 100.0 FROM (
    SELECT i.place AS place, {score} AS score, i.created_at AS created_at, i.id AS id
    FROM {matches} f
    CROSS JOIN memory_items i ON i.place = f.place AND i.marker = :marker
    AND i.created_at BETWEEN :after AND :before{conditions}
    ORDER BY score DESC, created_at DESC, id LIMIT :limit
) u
JOIN memory_items h ON h.place = u.place
ORDER BY u.score DESC, u.created_at DESC, u.id
"""
_MATCHES = """(
    SELECT rowid AS place FROM memory_index
    WHERE memory_index MATCH :match AND rowid BETWEEN :first AND :last
)"""
_PLACES = "(SELECT value AS place FROM json_each(:places))"
SOME = "SELECT rowid FROM memory_index WHERE memory_index MATCH ? LIMIT ?"
# how many items of the namespace have a term at each level, the best one first
LEVELS = "SELECT term, doc FROM memory_levels WHERE term >= ? AND term < ?"
_PAGE = """
SELECT i.id, i.document, NULL FROM memory_items i
WHERE i.ns = :ns AND i.id > :start AND i.marker = :marker
AND i.created_at BETWEEN :after AND :before{conditions}
ORDER BY i.id LIMIT :limit
"""
_HAS = "instr(i.tokens, :{name}) > 0"
_ANY = (
    "EXISTS (SELECT 1 FROM json_each(i.tokens) own WHERE own.key IN (SELECT value FROM json_each(:{name})))"
)
_ALL = """(
    SELECT count(*) FROM json_each(i.tokens) own WHERE own.key IN (SELECT value FROM json_each(:all))
) = :all_size"""
# the tokens are the JSON of numbers below 1,000 by token: the cast ends at what is no digit
_LEVEL = "CAST(substr(i.tokens, instr(i.tokens, :{name}) + length(:{name}), 3) AS INTEGER)"
_SUM = """(
    SELECT sum(own.value) FROM json_each(i.tokens) own
    WHERE own.key IN (SELECT value FROM json_each(:terms))
)"""


def find(connection: sqlite3.Connection, ns: int, marker: str, criteria: Criteria) -> list[Any]:
    """Search within the caller's transaction; rows of `id, document, score`."""
    groups = [*criteria.facets, *((term,) for term in criteria.terms)]
    if criteria.tags:
        groups.append(criteria.tags)
    groups.sort(key=len)  # what is too large, or one too many, comes last
    asked = [group for group in groups[:MATCHED] if len(group) <= ALTERNATIVES]
    rest = groups[len(asked) :]
    parameters = _bounds(marker, criteria)
    parameters["match"] = match(ns, asked)
    conditions = _conditions(rest, parameters)
    if not criteria.terms:
        return newest(connection, parameters, criteria.limit, conditions)
    if len(groups) == 1 and criteria.created_after == -math.inf and criteria.created_before == math.inf:
        return by_one_term(connection, ns, criteria.terms[0], parameters)
    return _scored(connection, criteria.terms, parameters, conditions)


def page(
    connection: sqlite3.Connection, ns: int, marker: str, criteria: Criteria, start: bytes, size: int
) -> list[Any]:
    """Give the items behind an id, by ascending id; rows of `id, document, score`."""
    groups = [*criteria.facets, criteria.tags] if criteria.tags else criteria.facets
    parameters = _bounds(marker, criteria) | {"ns": ns, "start": start, "limit": min(size, _LARGEST)}
    sql = _PAGE.format(conditions=_conditions(groups, parameters))
    return connection.execute(sql, parameters).fetchall()


def match(ns: int, groups: Iterable[Group]) -> str:
    """Ask for the items of a namespace that have a token of each group.

    Tokens have letters, digits and `_` alone, so that a quoted one is never syntax.
    """
    asked = [" OR ".join(f'"{ns}{token}"' for token in group) for group in groups]
    if not asked:
        return f'"{ns}{tokens.EVERY}"'
    return asked[0] if len(asked) == 1 else " AND ".join(f"({group})" for group in asked)


def newest(
    connection: sqlite3.Connection, parameters: Mapping[str, Any], limit: int, conditions: str = ""
) -> list[Any]:
    """Give the newest matches, and read hardly more than these."""
    rows = connection.execute(WALK.format(conditions=conditions), parameters)
    hits = heapq.nsmallest(min(limit, _LARGEST), _moments(rows, limit), key=_by_age)
    return [(key, document, None) for key, document, _, _ in hits]


def by_one_term(
    connection: sqlite3.Connection, ns: int, term: str, parameters: Mapping[str, Any]
) -> list[Any]:
    """Give the best matches of a term; of a common one, level by level, and none below the last hit."""
    limit: int = parameters["limit"]
    places = [place for (place,) in connection.execute(SOME, (parameters["match"], FEW))]
    if len(places) < FEW:
        return _scored(connection, (term,), {**parameters, "places": json.dumps(places)}, matches=_PLACES)
    levels: list[str] = []
    before = count = 0
    low, high = tokens.level_range(term)
    for level, items in connection.execute(LEVELS, (f"{ns}{low}", f"{ns}{high}")):
        levels.append(level)
        before, count = count, count + items
        if count >= limit:
            break
    else:
        return _scored(connection, (term,), parameters)
    *better, last = levels
    hits: list[Any] = []
    if better:
        matched = {"match": " OR ".join(f'"{level}"' for level in better)}
        hits = _scored(connection, (term,), {**parameters, **matched})
    score = tokens.score(last)
    matched = {"match": f'"{last}"'}
    rows = newest(connection, {**parameters, **matched}, limit - before)
    hits += [(key, document, score) for key, document, _ in rows]
    # rows that are no longer ours were counted too: look at every match then
    return hits if len(hits) == limit else _scored(connection, (term,), parameters)


def _scored(
    connection: sqlite3.Connection,
    terms: Sequence[str],
    parameters: Mapping[str, Any],
    conditions: str = "",
    matches: str = _MATCHES,
) -> list[Any]:
    """Give the best matches; every one is looked at, since any of them may be the best."""
    values = dict(parameters)
    if len(terms) <= ONE_BY_ONE:
        values |= {f"term{n}": f'"{term}":' for n, term in enumerate(terms)}
        score = " + ".join(_LEVEL.format(name=f"term{n}") for n in range(len(terms)))
    else:
        values["terms"] = json.dumps(terms)
        score = _SUM
    sql = SCORED.format(score=score, matches=matches, conditions=conditions)
    return connection.execute(sql, values).fetchall()


def _moments(rows: Iterator[Any], limit: int) -> Iterator[Any]:
    """Give rows by descending place until there are enough and the last one's moment is over."""
    moment = None
    for count, row in enumerate(rows, 1):
        if count > limit and row[3] >> tokens.SEATS != moment:
            return
        moment = row[3] >> tokens.SEATS
        yield row


def _by_age(row: Any) -> tuple[float, bytes]:
    return -row[2], row[0]


def _bounds(marker: str, criteria: Criteria) -> dict[str, Any]:
    return {
        "marker": marker,
        "after": criteria.created_after,
        "before": criteria.created_before,
        "first": tokens.first_place(criteria.created_after),
        "last": tokens.last_place(criteria.created_before),
        "limit": min(criteria.limit, _LARGEST),
    }


def _conditions(groups: Sequence[Group], parameters: dict[str, Any]) -> str:
    """Ask of an item itself that it has a token of each group."""
    single = [group[0] for group in groups if len(group) == 1]
    conditions: list[str] = []
    if len(single) > ONE_BY_ONE:
        parameters |= {"all": json.dumps(single), "all_size": len(single)}
        conditions.append(_ALL)
        single = []
    for position, token in enumerate(single):
        parameters[f"need{position}"] = f'"{token}":'
        conditions.append(_HAS.format(name=f"need{position}"))
    for position, group in enumerate(group for group in groups if len(group) != 1):
        parameters[f"any{position}"] = json.dumps(group)
        conditions.append(_ANY.format(name=f"any{position}"))
    return f" AND {_all_of(conditions)}" if conditions else ""


def _all_of(conditions: Sequence[str]) -> str:
    """Join conditions evenly: SQLite takes no expression that is nested deeper than 1,000."""
    if len(conditions) <= ONE_BY_ONE:
        return " AND ".join(conditions)
    middle = len(conditions) // 2
    return f"({_all_of(conditions[:middle])}) AND ({_all_of(conditions[middle:])})"

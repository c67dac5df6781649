"""Searches as SQL: which group of tokens is walked, and what is asked of each step."""

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from adapter_core import Criteria, term_weights

Group = tuple[str, ...]

MERGED = 64
"""An any-of group of up to so many tokens is merged in index order and looked up token by token."""
ONE_BY_ONE = 16
"""So many of the rarest required tokens are looked up one by one, and the rest counted."""

# How far tokens are counted to find the rarest group. A search by text reads every match, so
# there it pays to look further than where the first few hits end it.
PROBES = (256,)
_TEXT_PROBES = (256, 1024, 4096, 16384, 65536)

_LARGEST = 2**62

PROBE = """
SELECT a.value, (
    SELECT json_array(count(*), min(created_at), max(created_at)) FROM (
        SELECT x.created_at FROM memory_tokens x
        WHERE x.ns = :ns AND x.token = a.value AND x.created_at BETWEEN :after AND :before
        ORDER BY x.created_at DESC LIMIT :cap
    )
) FROM json_each(:tokens) a
"""
_NEWEST = """
SELECT id, document, NULL FROM memory_items INDEXED BY memory_items_newest
WHERE ns = :ns AND created_at BETWEEN :after AND :before AND marker = :marker
ORDER BY created_at DESC, id LIMIT :limit
"""
_PAGE = """
SELECT i.id, i.document, NULL FROM memory_items i
WHERE i.ns = :ns AND i.id > :start AND i.marker = :marker
AND i.created_at BETWEEN :after AND :before{conditions}
ORDER BY i.id LIMIT :limit
"""
# t: the tokens that are walked; i: the item
_WALK = """
SELECT t.id AS id, i.document AS document, NULL AS score, t.created_at AS created_at
FROM memory_tokens t
CROSS JOIN memory_items i ON i.item = t.item AND i.id = t.id AND i.marker = :marker
WHERE {walked}{conditions}
"""
_IN_ORDER = "ORDER BY created_at DESC, id LIMIT :limit"
# only the hits that are given are looked up; a foreign one has no document then
_SORTED = """
SELECT u.id, i.document, u.score FROM (
    SELECT t.id AS id, t.item AS item, t.created_at AS created_at, {score} AS score
    FROM {candidates} t{joins}
    WHERE {walked}{conditions}
    ORDER BY score DESC, created_at DESC, id LIMIT :limit
) u
LEFT JOIN memory_items i ON i.item = u.item AND i.id = u.id AND i.marker = :marker
ORDER BY u.score DESC, u.created_at DESC, u.id
"""
_WALKED = "t.ns = :ns AND t.token = :{name} AND t.created_at BETWEEN :after AND :before"
_UNITED = """(
    SELECT DISTINCT created_at, id, item FROM memory_tokens
    WHERE ns = :ns AND token IN (SELECT value FROM json_each(:walk))
    AND created_at BETWEEN :after AND :before
)"""
_SAME_ITEM = "{x}.ns = :ns AND {x}.created_at = {row}.created_at AND {x}.id = {row}.id"
_EXISTS = "EXISTS (SELECT 1 FROM memory_tokens x WHERE {same_item} AND x.token {match})"
# the other way round for a large group: each token of the item is looked up among those asked for
_OVERLAP = """EXISTS (
    SELECT 1 FROM memory_items y, json_each('["' || replace(y.tokens, ' ', '","') || '"]') own
    WHERE y.item = {row}.item AND own.value {match}
)"""
_ALL = "(SELECT count(*) FROM memory_tokens x WHERE {same_item} AND x.token {match}) = :{size}"
_SUM = "(SELECT sum(x.weight) FROM memory_tokens x WHERE {same_item} AND x.token {match})"
_JOIN = " CROSS JOIN memory_tokens {x} ON {same_item} AND {x}.token = :{x}"
_AMONG = "IN (SELECT value FROM json_each(:{name}))"


class Statement(NamedTuple):
    """One SELECT of `id, document, score`, and its parameters."""

    sql: str
    parameters: Mapping[str, Any]


def token_weights(tokens: Iterable[str], terms: Mapping[str, int]) -> dict[str, float]:
    """Give each token of an item the part that it has in a score: terms alone have one."""
    return {**dict.fromkeys(tokens, 0.0), **term_weights(terms)}


def find(connection: sqlite3.Connection, ns: int, marker: str, criteria: Criteria) -> list[Any]:
    """Search within the caller's transaction; rows of `id, document, score`."""
    bounds = _bounds(ns, marker, criteria)
    groups = [*criteria.facets, *((term,) for term in criteria.terms)]
    if criteria.tags:
        groups.append(criteria.tags)
    if not groups:
        return connection.execute(_NEWEST, bounds).fetchall()
    if len(groups) > 1:
        counts = _count(connection, bounds, groups, _TEXT_PROBES if criteria.terms else PROBES)
        groups.sort(key=lambda group: _estimate(counts, group))
        if not _estimate(counts, groups[0]):
            return []
    return _run(connection, plan(groups, criteria.terms, bounds))


def page(ns: int, marker: str, criteria: Criteria, start: bytes, size: int) -> Statement:
    """Ask for the items behind an id, by ascending id."""
    parameters = _bounds(ns, marker, criteria) | {"start": start, "limit": min(size, _LARGEST)}
    return Statement(_PAGE.format(conditions=_conditions(criteria.facets, "i", parameters)), parameters)


def plan(groups: Sequence[Group], terms: Sequence[str], bounds: Mapping[str, Any]) -> Statement:
    """Write the search that walks the first group and checks the others at each step.

    Args:
        groups: Groups of tokens, the rarest first; of each group an item needs one.
        terms: Those that make the score; none: hits come in index order.
        bounds: The parameters of every search.
    """
    if terms or len(groups[0]) > MERGED:
        return _sorted(groups, terms, dict(bounds))
    # UNION over arms that are in index order each: SQLite merges them and drops duplicates
    parameters = dict(bounds)
    conditions = _conditions(groups[1:], "t", parameters)
    arms: list[str] = []
    for position, token in enumerate(groups[0]):
        parameters[f"walk{position}"] = token
        walked = _WALKED.format(name=f"walk{position}")
        arms.append(_WALK.format(walked=walked, conditions=conditions))
    return Statement("UNION".join(arms) + _IN_ORDER, parameters)


def _sorted(groups: Sequence[Group], terms: Sequence[str], parameters: dict[str, Any]) -> Statement:
    """Write a search that needs every match before it can tell the first hits."""
    walked, others = groups[0], groups[1:]
    weights: dict[str, str] = {}
    if len(walked) == 1:
        candidates, condition = "memory_tokens", _WALKED.format(name="walk")
        parameters["walk"] = walked[0]
        weights[walked[0]] = "t.weight"
    else:
        candidates, condition = _UNITED, "true"
        parameters["walk"] = json.dumps(walked)
    asked = set(terms)
    joins = ""
    for group in [group for group in others if group[0] in asked][:ONE_BY_ONE]:
        x = f"term{len(weights)}"
        joins += _JOIN.format(x=x, same_item=_SAME_ITEM.format(x=x, row="t"))
        weights[group[0]] = f"{x}.weight"
        parameters[x] = group[0]
    conditions = _conditions([g for g in others if g[0] not in weights], "t", parameters)
    # added up in one order, whichever term is the rarest
    score = [weights[term] for term in sorted(terms) if term in weights]
    if rest := [term for term in terms if term not in weights]:
        parameters["terms"] = json.dumps(rest)
        same_item = _SAME_ITEM.format(x="x", row="t")
        score.append(_SUM.format(same_item=same_item, match=_AMONG.format(name="terms")))
    sql = _SORTED.format(
        score=" + ".join(score) or "NULL",
        candidates=candidates,
        joins=joins,
        walked=condition,
        conditions=conditions,
    )
    return Statement(sql, parameters)


def _run(connection: sqlite3.Connection, statement: Statement) -> list[Any]:
    parameters = dict(statement.parameters)
    limit: int = parameters["limit"]
    while True:
        rows = connection.execute(statement.sql, parameters).fetchall()
        hits = [row[:3] for row in rows if row[1] is not None]
        if len(hits) == len(rows) or len(hits) >= limit or len(rows) < parameters["limit"]:
            return hits[:limit]
        # rows that are no longer ours took the place of hits: ask for more
        parameters["limit"] = min(2 * parameters["limit"], _LARGEST)


def _bounds(ns: int, marker: str, criteria: Criteria) -> dict[str, Any]:
    return {
        "ns": ns,
        "marker": marker,
        "after": criteria.created_after,
        "before": criteria.created_before,
        "limit": min(criteria.limit, _LARGEST),
    }


def _count(
    connection: sqlite3.Connection,
    bounds: Mapping[str, Any],
    groups: Sequence[Group],
    caps: Sequence[int],
) -> dict[str, float]:
    """Count each token's items, only as far as it takes to tell the rarest group."""
    tokens = json.dumps(list(chain.from_iterable(groups)))
    counts: dict[str, float] = {}
    for cap in caps:
        rows = connection.execute(PROBE, {**bounds, "tokens": tokens, "cap": cap})
        found = {token: json.loads(reached) for token, reached in rows}
        counts = projected(found, cap)
        if min(_estimate(counts, group) for group in groups) < cap:
            break
    return counts


def projected(found: Mapping[str, Sequence[Any]], cap: int) -> dict[str, float]:
    """Give the counts; of tokens with more items than were counted, what they may come to.

    The older the last item that was counted, the rarer the token: over the longest span that any
    token reached back, it would have had so many.
    """
    spans = {token: newest - oldest for token, (count, oldest, newest) in found.items() if count >= cap}
    longest = max(spans.values(), default=0.0)
    counts: dict[str, float] = {token: count for token, (count, _, _) in found.items()}
    if 0 < longest < math.inf:
        counts |= {token: cap * longest / max(span, longest / 1e6) for token, span in spans.items()}
    return counts


def _estimate(counts: Mapping[str, float], group: Group) -> float:
    return sum(counts[token] for token in group)


def _conditions(groups: Sequence[Group], row: str, parameters: dict[str, Any]) -> str:
    """Ask that the item of a row has a token of each group; the rarest is asked for first."""
    same_item = _SAME_ITEM.format(x="x", row=row)
    single = [group[0] for group in groups if len(group) == 1]
    conditions: list[str] = []
    for position, token in enumerate(single[:ONE_BY_ONE]):
        parameters[f"need{position}"] = token
        conditions.append(_EXISTS.format(same_item=same_item, match=f"= :need{position}"))
    for position, group in enumerate(group for group in groups if len(group) != 1):
        name = f"any{position}"
        parameters[name] = json.dumps(group)
        test = _EXISTS if len(group) <= MERGED else _OVERLAP
        match = _AMONG.format(name=name)
        conditions.append(test.format(same_item=same_item, row=row, match=match))
    if rest := single[ONE_BY_ONE:]:
        parameters |= {"rest": json.dumps(rest), "rest_size": len(rest)}
        match = _AMONG.format(name="rest")
        conditions.append(_ALL.format(same_item=same_item, match=match, size="rest_size"))
    return f" AND {_all_of(conditions)}" if conditions else ""


def _all_of(conditions: Sequence[str]) -> str:
    """Join conditions evenly: SQLite takes no expression that is nested deeper than 1,000."""
    if len(conditions) <= ONE_BY_ONE:
        return " AND ".join(conditions)
    middle = len(conditions) // 2
    return f"({_all_of(conditions[:middle])}) AND ({_all_of(conditions[middle:])})"

"""The SQL of the driver: one statement for each operation, whatever its arguments.

Every statement of the driver begins with a row of the namespace, so that a namespace that is gone
is never taken for an empty one, and says how the namespace is indexed. A write happens only if it
is indexed as the writer indexes and the server keeps what it acknowledges.
"""

from collections.abc import Sequence
from functools import lru_cache

from adapter_core import Durability

from .schema import Names
from .transport import Shape, Statement

SCORED_ONE_BY_ONE = 8
"""The weights of up to so many asked terms are added without a loop."""
MANY = 64
"""More tokens than this are compared by their hashes: a comparison of arrays takes each with each."""

_DURABLE = {
    "power": "current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') = 'on'",
    "crash": "current_setting('synchronous_commit') <> 'off'",
    # for this transaction alone: the connection may be shared
    "volatile": "set_config('synchronous_commit', 'off', true) = 'off'",
}

# else a write that waited for a lock would not see that the namespace is gone, or indexed anew
_SEES_COMMITTED = "current_setting('transaction_isolation') = 'read committed'"

_GET = """
SELECT i.id, i.document, i.revision FROM {namespaces} n
CROSS JOIN unnest($2::uuid[]) AS wanted (id)
LEFT JOIN {items} i ON i.ns = n.name AND i.id = wanted.id AND i.marker = '{marker}'
WHERE n.name = $1
"""
_GET_ONE = """
SELECT i.id, i.document, i.revision FROM {namespaces} n
LEFT JOIN {items} i ON i.ns = n.name AND i.id = $2 AND i.marker = '{marker}'
WHERE n.name = $1
"""
_REMEMBERED = "SELECT indexed_as FROM {namespaces} WHERE name = $1"
_OR_INSTEAD = """ON CONFLICT (ns, id) DO UPDATE SET
    created_at = excluded.created_at,
    revision = nextval('{revision}'),
    marker = CASE WHEN i.marker = excluded.marker THEN i.marker END,
    indexed_as = excluded.indexed_as,
    weights = excluded.weights,
    tokens = excluded.tokens,
    document = excluded.document
"""
# a foreign row makes `marker` null, which the table refuses; a row that a trigger skips, or writes under
# another identity, makes the count differ, which divides by zero: either way the server undoes the whole
# statement
_PUT = """
WITH n AS (
    SELECT indexed_as = $2 AS current, {durable} AS durable FROM {namespaces} WHERE name = $1
), w AS (
    INSERT INTO {items} AS i
        (ns, id, created_at, revision, marker, indexed_as, weights, tokens, document)
    SELECT $1, r.id, r.created_at, nextval('{revision}'), '{marker}', $2,
        string_to_array(r.weights, ' ')::real[], string_to_array(r.tokens, ' '), r.document
    FROM n, unnest($3::uuid[], $4::float8[], $5::text[], $6::text[], $7::text[])
        AS r (id, created_at, weights, tokens, document)
    WHERE n.current AND n.durable
{or_instead} RETURNING i.ns, i.id
)
SELECT n.current, n.durable, w.ids,
    CASE WHEN n.current AND n.durable THEN 1 / (w.written = cardinality($3::uuid[]))::int END
FROM n, (
    SELECT count(*) AS written, array_agg(w.id) AS ids
    FROM w JOIN unnest($3::uuid[]) AS r (id) ON w.id = r.id AND w.ns = $1
) w
"""
# the same for one item, as most writes are, in less of the server's time: what was not written
# gives no row, and then the statement above says why
_PUT_ONE = """
INSERT INTO {items} AS i
    (ns, id, created_at, revision, marker, indexed_as, weights, tokens, document)
SELECT $1, $3::uuid, $4::float8, nextval('{revision}'), '{marker}', $2,
    string_to_array($5::text, ' ')::real[], string_to_array($6::text, ' '), $7::text
FROM {namespaces} WHERE name = $1 AND indexed_as = $2 AND {durable}
{or_instead} RETURNING i.id, 1 / (i.ns = $1 AND i.id = $3)::int
"""
_REPLACE = """
WITH n AS (
    SELECT indexed_as = $2 AS current, {durable} AS durable FROM {namespaces} WHERE name = $1
), w AS (
    UPDATE {items} i SET
        created_at = $4,
        revision = nextval('{revision}'),
        indexed_as = $2,
        weights = string_to_array($5, ' ')::real[],
        tokens = string_to_array($6, ' '),
        document = $7
    FROM n
    WHERE n.current AND n.durable
    AND i.ns = $1 AND i.id = $3 AND i.marker = '{marker}' AND i.revision = $8
    RETURNING i.revision
)
SELECT n.current, n.durable, (SELECT revision FROM w) FROM n
"""
# what is there is locked, and so a difference is not another writer's doing
_DELETE = """
WITH n AS (
    SELECT true AS current, {durable} AS durable FROM {namespaces} WHERE name = $1
), doomed AS MATERIALIZED (
    SELECT i.id FROM {items} i, n
    WHERE n.durable AND i.ns = $1 AND i.id = $2 AND i.marker = '{marker}' FOR UPDATE OF i
), w AS (
    DELETE FROM {items} i USING doomed d WHERE i.ns = $1 AND i.id = d.id RETURNING i.id
)
SELECT n.current, n.durable, (SELECT count(*) FROM w), (SELECT count(*) FROM doomed) FROM n
"""
# locked in the order in which batches are written, so that the two cannot wait for each other
_CLEAR = """
WITH n AS (
    SELECT true AS current, {durable} AS durable FROM {namespaces} WHERE name = $1
), doomed AS MATERIALIZED (
    SELECT i.id FROM {items} i, n WHERE n.durable AND i.ns = $1 AND i.marker = '{marker}'
    ORDER BY i.id FOR UPDATE OF i
), w AS (
    DELETE FROM {items} i USING doomed d WHERE i.ns = $1 AND i.id = d.id RETURNING i.id
)
SELECT n.current, n.durable, w.gone, 1 / (w.gone = (SELECT count(*) FROM doomed))::int
FROM n, (SELECT count(*) AS gone FROM w) w
"""
_OUTDATED = """
SELECT i.id, i.document, i.revision FROM {namespaces} n
LEFT JOIN LATERAL (
    SELECT * FROM {items}
    WHERE ns = $1 AND marker = '{marker}' AND indexed_as <> $2 AND (id > $3 OR $4 AND id = $3)
    ORDER BY id LIMIT $5
) i ON true
WHERE n.name = $1 ORDER BY i.id
"""
_REINDEX = """
WITH n AS (
    SELECT true AS current, {durable} AS durable FROM {namespaces} WHERE name = $1
), locked AS MATERIALIZED (
    SELECT i.id FROM n, {items} i JOIN unnest($3::uuid[], $4::bigint[]) AS r (id, revision)
        ON i.id = r.id AND i.revision = r.revision
    WHERE n.durable AND i.ns = $1 AND i.marker = '{marker}'
    ORDER BY i.id FOR UPDATE OF i
), w AS (
    UPDATE {items} i SET
        indexed_as = $2,
        weights = string_to_array(r.weights, ' ')::real[],
        tokens = string_to_array(r.tokens, ' ')
    FROM locked l,
        unnest($3::uuid[], $5::text[], $6::text[]) AS r (id, weights, tokens)
    WHERE i.ns = $1 AND i.id = l.id AND i.id = r.id
    RETURNING i.id
)
SELECT n.current, n.durable, w.done, 1 / (w.done = (SELECT count(*) FROM locked))::int
FROM n, (SELECT count(*) AS done FROM w) w
"""
# without statistics Postgres takes every token for a rare one
_UNKNOWN = "SELECT c.reltuples < 0 FROM {relation} AND c.relname = $2"
_ANALYZE = "ANALYZE (SKIP_LOCKED) {items}"
# writers that are under way end first, and later ones see what was adopted
_LOCK = "LOCK TABLE {items} IN SHARE MODE"
_ADOPT = """
UPDATE {namespaces} SET indexed_as = $2 WHERE name = $1 AND NOT EXISTS (
    SELECT FROM {items} i WHERE i.ns = $1 AND i.marker = '{marker}' AND i.indexed_as <> $2
) RETURNING true
"""
# no writer is under way, and none begins before the end; a lock that two cannot share, since whoever
# has it deletes under it
_LOCK_ALONE = "LOCK TABLE {items} IN SHARE ROW EXCLUSIVE MODE"
_FORGET = """
DELETE FROM {namespaces} WHERE name = $1 AND NOT EXISTS (SELECT FROM {items} i WHERE i.ns = $1)
RETURNING true
"""

_CONDITIONS = "i.ns = $1 AND i.marker = '{{marker}}' AND i.created_at BETWEEN $3 AND $4{tokens}"
# $5 is always true. A plan for every value would count a long series for it, which costs more than
# any search but too little for JIT; so Postgres plans with the values at hand, each time. How rare
# the tokens are decides between the two indexes
_PLANNED = " AND CASE WHEN $5 THEN true ELSE (SELECT count(*) >= 0 FROM generate_series(1, 4000000)) END"
# To compare the tokens of a row costs some hundred times what Postgres thinks, so that in a small table
# it would rather walk past rows than use the index of tokens. What never runs, since the first part is
# always true, adds the cost of two functions of 100 each
_COMPARED = " AND (i.marker = '{marker}' OR i.marker @@ '1' OR i.marker @@ '2')"
_FIND = """
SELECT n.indexed_as, h.id, h.document, h.score FROM {{namespaces}} n
LEFT JOIN (
    SELECT i.id, i.document, i.created_at, {score} AS score FROM {{items}} i
    WHERE {conditions}
    ORDER BY {order} LIMIT $2
) h ON true
WHERE n.name = $1 ORDER BY {outer}
"""
_NEWEST = "{x}.created_at DESC, {x}.id"
_BEST = "h.score DESC, h.created_at DESC, h.id"
_BEST_OF = "score DESC, i.created_at DESC, i.id"
_WEIGHT = "i.weights[array_position(i.tokens, {term})]::float8"
_SUM = """(
        SELECT sum({weight} ORDER BY asked.nr)
        FROM unnest(${parameter}::text[]) WITH ORDINALITY AS asked (term, nr)
    )"""
_SUM_BY_HASH = """(
        SELECT sum(t.weight::float8 ORDER BY asked.nr)
        FROM unnest(${parameter}::text[]) WITH ORDINALITY AS asked (term, nr)
        JOIN unnest(i.tokens, i.weights) AS t (token, weight) ON t.token = asked.term
    )"""
_ALL_OF = " AND i.tokens @> ${nr}::text[]"
_ANY_OF = " AND i.tokens && ${nr}::text[]"
# the first tokens can still be looked up in the index
_ALL_OF_MANY = """ AND i.tokens @> (${nr}::text[])[:{many}] AND (
        SELECT count(*) FROM unnest(i.tokens) AS t (token) WHERE t.token = ANY(${nr}::text[])
    ) = cardinality(${nr}::text[])"""
_ANY_OF_MANY = """ AND EXISTS (
        SELECT FROM unnest(i.tokens) AS t (token) WHERE t.token = ANY(${nr}::text[])
    )"""
_PAGE = """
SELECT n.indexed_as, h.id, h.document, NULL FROM {{namespaces}} n
LEFT JOIN (
    SELECT i.id, i.document FROM {{items}} i
    WHERE {conditions} AND i.id >= ${after} AND (i.id > ${after} OR ${first}) ORDER BY i.id LIMIT $2
) h ON true
WHERE n.name = $1 ORDER BY h.id
"""
_FIRST = 6  # the number of the first parameter with tokens
_KEPT = 256  # searches of so many shapes are not written anew
_WRITES = frozenset({"put", "replace", "delete", "clear", "reindex"})

Many = frozenset[int]
"""Which lists of tokens of a search are long: the required ones are number 0 if there are any."""
NONE: Many = frozenset()


class Statements:
    """The statements of one store.

    Args:
        names: What its tables are called.
        durability: What an acknowledged write must survive.
    """

    def __init__(self, names: Names, durability: Durability) -> None:
        self._names = names
        self._durable = f"({_DURABLE[durability]} AND {_SEES_COMMITTED})"
        self.get = self._made("get", _GET)
        self.get_one = self._made("get", _GET_ONE)
        self.get_revision = self._made("get_revision", _GET_ONE)
        self.remembered = self._made("remembered", _REMEMBERED)
        self.put = self._made("put", _PUT)
        self.put_one = self._made("put", _PUT_ONE)
        self.unknown = self._made("unknown", _UNKNOWN)
        self.analyze = self._made("analyze", _ANALYZE)
        self.replace = self._made("replace", _REPLACE)
        self.delete = self._made("delete", _DELETE)
        self.clear = self._made("clear", _CLEAR)
        self.outdated = self._made("outdated", _OUTDATED)
        self.reindex = self._made("reindex", _REINDEX)
        self.lock = self._made("lock_items", _LOCK)
        self.lock_alone = self._made("lock_items", _LOCK_ALONE)
        self.adopt = self._made("adopt", _ADOPT)
        self.forget = self._made("forget", _FORGET)
        self.find = lru_cache(_KEPT)(self._find)
        self.page = lru_cache(_KEPT)(self._page)

    def _made(self, name: str, sql: str, shape: Shape = (False, 0, 0)) -> Statement:
        return Statement(
            name,
            self._names.fill(sql.replace("{or_instead}", _OR_INSTEAD).replace("{durable}", self._durable)),
            shape,
            name in _WRITES,
        )

    def _find(self, *, required: bool, groups: int, terms: int, many: Many = NONE) -> Statement:
        """Write a search.

        Args:
            required: Whether there are tokens that all must be there.
            groups: How many groups of tokens there are of which one must be there.
            terms: How many terms make the score.
            many: Which of the lists of tokens, the required ones being the first, are long.
        """
        conditions, following = _conditions(required, groups, many)
        outer = _BEST if terms else _NEWEST.format(x="h")
        order = _BEST_OF if terms else _NEWEST.format(x="i")
        score = _score(terms, following) if terms else "NULL::float8"
        sql = _FIND.format(score=score, conditions=conditions, order=order, outer=outer)
        return self._made("find", sql, (required, groups, terms))

    def _page(self, *, required: bool, groups: int, many: Many = NONE) -> Statement:
        conditions, following = _conditions(required, groups, many)
        sql = _PAGE.format(conditions=conditions, after=following, first=following + 1)
        return self._made("page", sql, (required, groups, 0))


def long_ones(lists: Sequence[Sequence[str]]) -> Many:
    """Say which lists of tokens are long."""
    return frozenset(n for n, tokens in enumerate(lists) if len(tokens) > MANY)


def _conditions(required: bool, groups: int, many: Many) -> tuple[str, int]:
    """Write the conditions, and the number of the first parameter behind theirs."""
    tokens = _PLANNED
    if required or groups:
        tokens += _COMPARED
    for n in range(required + groups):
        few, long = (_ALL_OF, _ALL_OF_MANY) if required and not n else (_ANY_OF, _ANY_OF_MANY)
        tokens += (long if n in many else few).format(nr=_FIRST + n, many=MANY)
    return _CONDITIONS.format(tokens=tokens), _FIRST + required + groups


def _score(terms: int, parameter: int) -> str:
    """Add up the weights of the asked terms, always in the order in which they are asked."""
    if terms > MANY:
        return _SUM_BY_HASH.format(parameter=parameter)
    if terms > SCORED_ONE_BY_ONE:
        return _SUM.format(weight=_WEIGHT.format(term="asked.term"), parameter=parameter)
    return " + ".join(_WEIGHT.format(term=f"(${parameter}::text[])[{n}]") for n in range(1, terms + 1))

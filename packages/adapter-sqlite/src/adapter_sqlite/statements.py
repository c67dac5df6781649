"""The SQL of the driver, but for searches, which `search` writes."""

SLOTS = 32
"""How many ids one statement reads: as many as calls are likely to come in one tick."""

NAMESPACE = "SELECT ns, indexed_as FROM memory_namespaces WHERE name = ?"
COUNT_UP = "UPDATE memory_namespaces SET revision = revision + ? WHERE ns = ? RETURNING revision"
ADOPT = "UPDATE memory_namespaces SET indexed_as = ? WHERE ns = ?"
# one statement, so that a namespace that is gone is not taken for an unknown id
GET = """
SELECT i.document, i.revision FROM memory_namespaces n
LEFT JOIN memory_items i ON i.ns = n.ns AND i.id = ? AND i.marker = ?
WHERE n.name = ?
"""
# one statement for many ids: the slots that are not needed are NULL, which equals nothing
GET_MANY = """
SELECT i.id, i.document FROM memory_namespaces n
LEFT JOIN memory_items i ON i.ns = n.ns AND i.marker = ? AND i.id IN ({})
WHERE n.name = ?
""".format(", ".join("?" * SLOTS))
OLD = """
SELECT item, marker, revision, created_at, tokens FROM memory_items WHERE ns = ? AND id = ?
"""
INSERT = """
INSERT INTO memory_items (ns, id, created_at, revision, marker, indexed_as, document, tokens)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING item
"""
UPDATE = """
UPDATE memory_items SET created_at = ?, revision = ?, indexed_as = ?, document = ?, tokens = ?
WHERE item = ? RETURNING item
"""
DELETE = "DELETE FROM memory_items WHERE item = ? RETURNING item"
CLEAR = "DELETE FROM memory_items WHERE ns = ? AND marker = ?"
CLEAR_TOKENS = "DELETE FROM memory_tokens WHERE ns = ?"
FORGET = """
DELETE FROM memory_namespaces
WHERE ns = ? AND NOT EXISTS (SELECT 1 FROM memory_items WHERE ns = memory_namespaces.ns)
"""
INDEX = """
INSERT OR REPLACE INTO memory_tokens (ns, token, created_at, id, item, weight)
VALUES (?, ?, ?, ?, ?, ?)
"""
UNINDEX = """
DELETE FROM memory_tokens WHERE ns = ? AND token = ? AND created_at = ? AND id = ?
"""
OUTDATED = """
SELECT item, id, document, revision FROM memory_items
WHERE ns = ? AND marker = ? AND indexed_as <> ? AND item > ? ORDER BY item LIMIT ?
"""

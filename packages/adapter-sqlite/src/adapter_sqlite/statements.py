"""The SQL of the driver, but for searches, which `search` writes."""

SLOTS = 32
"""How many ids one statement reads: as many as calls are likely to come in one tick."""

NAMESPACE = "SELECT ns, indexed_as FROM memory_namespaces WHERE name = ?"
COUNT_UP = """
UPDATE memory_namespaces SET revision = revision + ? WHERE name = ? RETURNING ns, indexed_as, revision
"""
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
SELECT place, marker, revision, created_at, tokens FROM memory_items WHERE ns = ? AND id = ?
"""
TAKEN = "SELECT max(place) FROM memory_items WHERE place BETWEEN ? AND ?"
INSERT = """
INSERT INTO memory_items (place, ns, id, created_at, revision, marker, indexed_as, tokens, document)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING place
"""
UPDATE = """
UPDATE memory_items
SET place = ?, created_at = ?, revision = ?, indexed_as = ?, tokens = ?, document = ?
WHERE place = ? RETURNING place
"""
DELETE = "DELETE FROM memory_items WHERE place = ? RETURNING place"
INDEXED = "SELECT place, tokens FROM memory_items WHERE ns = ? AND marker = ?"
CLEAR = "DELETE FROM memory_items WHERE ns = ? AND marker = ?"
LEFT = "SELECT EXISTS (SELECT 1 FROM memory_items WHERE ns = ? AND marker = ?)"
FORGET = """
DELETE FROM memory_namespaces
WHERE ns = ? AND NOT EXISTS (SELECT 1 FROM memory_items WHERE ns = memory_namespaces.ns)
"""
INDEX = "INSERT INTO memory_index (rowid, tokens) VALUES (?, ?)"
# the index keeps no text: it is told again what it is to forget
UNINDEX = "INSERT INTO memory_index (memory_index, rowid, tokens) VALUES ('delete', ?, ?)"
UNINDEX_ALL = "INSERT INTO memory_index (memory_index) VALUES ('delete-all')"
OTHERS = "SELECT EXISTS (SELECT 1 FROM memory_items WHERE ns <> ? OR marker <> ?)"
OUTDATED = """
SELECT place, id, document, revision FROM memory_items
WHERE ns = ? AND marker = ? AND indexed_as <> ? AND place > ? ORDER BY place LIMIT ?
"""

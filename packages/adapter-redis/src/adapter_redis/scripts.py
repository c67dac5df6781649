"""The scripts that every index shares. Each runs on the server as a whole and alone.

The first key is the namespace's own, a hash: `adapter` (our mark), `signature` (how the namespace is
indexed), `items` (how many there are) and `revision` (the number of the last write). The other keys
begin with its name:

- `:item:ID` the hash of an item;
- `:ids` every id, in order;
- `:expiry` when the items that do not stay for ever go.

An index adds keys of its own, and gives each script its functions: see `index.py`.

A script answers with JSON or plain text. An answer that begins with `!` says why nothing was done.

Of the arguments of every script the first is the store's signature, the second what to watch: `e` that
nothing is evicted, `a` that the append-only file is on; the third is `1` when it is time to look.
Numbers that must stay exact are never made Lua numbers and back.
"""

from .library import HEAD, HIDDEN, LIBRARY
from .transport import Script

CLEARED_AT_ONCE = 500
"""How many items one script of `clear` deletes."""
SCANNED_AT_ONCE = 5_000
"""How many items one script looks at for a page."""
ANSWER_BYTES = 8_000_000
"""How much one script answers before it leaves the rest to the next."""
ANSWER_ITEMS = 1_000
"""How many items one script answers with before it leaves the rest to the next."""

_READY = """
local space = call('HMGET', BASE, 'adapter', 'signature')
if space[1] == MARK then return space[2] end
if call('EXISTS', BASE) == 1 then return '!foreign' end
-- numbers begin with the time, so that none comes again after the namespace was lost
local time = call('TIME')
local first = string.format('%.0f', time[1] * 1000000 + time[2])
local left = call('ZCARD', IDS)
local signature = SIGNED
-- the namespace's own key was lost: how its items are indexed is not known
if left > 0 then signature = '{}' end
call('HSET', BASE, 'adapter', MARK, 'signature', signature, 'items', left, 'revision', first)
return signature
"""

_REMEMBERED = """
local space = call('HMGET', BASE, 'adapter', 'signature')
if space[1] ~= MARK then return '!gone' end
return space[2]
"""

_GET = """
if call('HGET', BASE, 'adapter') ~= MARK then return '!gone' end
local found, missing = {}, false
for i = 4, #ARGV do
  found[i - 3] = document(ITEMS .. ARGV[i]) or false
  missing = missing or not found[i - 3]
end
if missing or DUE then
  local why = unfit()
  if why then return why end
end
return cjson.encode(found)
"""

# ARGV: 4 milliseconds that the items stay, or nothing; then for each item its id, order, text for the
# index, how many arguments follow, and those: names and values of its fields.
_PUT = """
local why = refusal(true)
if why then return why end
local starts, ids, at = {}, {}, 5
while at <= #ARGV do
  if kind(ITEMS .. ARGV[at]) == 'foreign' then return '!foreign' end
  starts[#starts + 1] = at
  ids[#ids + 1] = ARGV[at]
  at = at + 4 + tonumber(ARGV[at + 3])
end
may_write(ARGV[4])
local revision = numbered(#starts)
purge()
for i, start in ipairs(starts) do index_put(ids[i], ARGV[start + 1], ARGV[start + 2]) end
index_finish()
for i, start in ipairs(starts) do
  local last = start + 3 + tonumber(ARGV[start + 3])
  write(ids[i], string.format('%.0f', revision + i), ARGV[4], start + 4, last)
end
return table.concat(ids, ' ')
"""

# ARGV: 4 the ids, parted by spaces. Answers nothing, or why they cannot all be written.
_CHECK = """
local why = refusal(true)
if why then return why end
for _, id in ipairs(words(ARGV[4])) do
  if kind(ITEMS .. id) == 'foreign' then return '!foreign' end
end
return ''
"""

# ARGV: 4 milliseconds or nothing, 5 the expected revision, then as in put. Answers the new revision,
# or nothing.
_REPLACE = """
local why = refusal(true)
if why then return why end
local id, key = ARGV[6], ITEMS .. ARGV[6]
if kind(key) ~= 'ours' or call('HGET', key, 'revision') ~= ARGV[5] then return '' end
may_write(ARGV[4])
local number = string.format('%.0f', numbered(1) + 1)
purge()
index_put(id, ARGV[7], ARGV[8])
index_finish()
write(id, number, ARGV[4], 10, 9 + tonumber(ARGV[9]))
return number
"""

# ARGV: 4 the id. Answers 1 or 0.
_DELETE = """
local why = refusal(false)
if why then return why end
local id, key = ARGV[4], ITEMS .. ARGV[4]
local there = kind(key)
if there == 'foreign' then return '0' end
may_remove()
if there then call('DEL', key) end
forget(id)
return there and '1' or '0'
"""

# ARGV: 4 the id behind which to begin, or nothing; 5 the last revision that goes, or nothing for the
# newest. Answers how many items went, the last id that was looked at, and the revision.
_CLEAR = f"""
local why = refusal(false)
if why then return why end
may_remove()
local last = ARGV[5]
if last == '' then last = call('HGET', BASE, 'revision') end
local from = ARGV[4] == '' and '-' or '(' .. ARGV[4]
local ids = call('ZRANGEBYLEX', IDS, from, '+', 'LIMIT', 0, {CLEARED_AT_ONCE})
local gone = 0
for _, id in ipairs(ids) do
  local key = ITEMS .. id
  local there = kind(key)
  if there ~= 'ours' then
    forget(id)
  elseif tonumber(call('HGET', key, 'revision')) <= tonumber(last) then
    call('DEL', key)
    forget(id)
    gone = gone + 1
  end
end
return gone .. ' ' .. (ids[{CLEARED_AT_ONCE}] or '-') .. ' ' .. last
"""

# Answers 1 when the namespace is gone, 0 when somebody has stored something meanwhile.
_FORGET = """
if call('HGET', BASE, 'adapter') ~= MARK then return '!gone' end
if call('ZCARD', IDS) > 0 then return '0' end
call('DEL', BASE, EXPIRY)
return '1'
"""

# ARGV: 4 the id behind which to begin, or nothing; 5 how many items; 6 and 7 the least and the greatest
# created_at, or nothing; then groups of facets, parted by spaces. Answers the id to go on behind, or
# nothing at the end, and the items: id and hash.
_PAGE = f"""
local why = refusal(true)
if why then return why end
purge()
local least, greatest = tonumber(ARGV[6]), tonumber(ARGV[7])
local groups = {{}}
for i = 8, #ARGV do
  groups[i - 7] = {{}}
  for _, facet in ipairs(words(ARGV[i])) do groups[i - 7][facet] = true end
end

local function meets(flat)
  local time, facets
  for i = 1, #flat, 2 do
    if flat[i] == 'created_at' then time = tonumber(flat[i + 1]) end
    if flat[i] == 'facets' then facets = words(flat[i + 1]) end
  end
  if least and not (time and time >= least) then return false end
  if greatest and not (time and time <= greatest) then return false end
  for _, group in ipairs(groups) do
    local met = false
    for _, facet in ipairs(facets or {{}}) do met = met or group[facet] end
    if not met then return false end
  end
  return true
end

local size = tonumber(ARGV[5])
local page, cursor, looked, bytes = {{}}, ARGV[4], 0, 0
while #page < size and looked < {SCANNED_AT_ONCE} and bytes < {ANSWER_BYTES} do
  local from = cursor == '' and '-' or '(' .. cursor
  local wanted = math.max(1, math.min(size - #page, 500))
  local ids = call('ZRANGEBYLEX', IDS, from, '+', 'LIMIT', 0, string.format('%.0f', wanted))
  for _, id in ipairs(ids) do
    local flat, more = document(ITEMS .. id)
    cursor = id
    looked = looked + 1
    if flat and meets(flat) then
      page[#page + 1] = {{id, flat}}
      bytes = bytes + more
    end
    if bytes >= {ANSWER_BYTES} then break end
  end
  if #ids < wanted and (#ids == 0 or cursor == ids[#ids]) then
    cursor = ''
    break
  end
end
if cursor == '' then
  why = unfit()
  if why then return why end
end
return cjson.encode({{cursor, page}})
"""

# ARGV: 4 the id behind which to begin, or nothing; 5 how many. Answers the number of the last write, the
# id to go on behind or nothing at the end, and the items that are indexed in another way or not at all;
# takes out of the index what is gone.
_OUTDATED = f"""
if call('HGET', BASE, 'adapter') ~= MARK then return '!gone' end
local size = tonumber(ARGV[5])
local found, cursor, bytes = {{}}, ARGV[4], 0
local from = cursor == '' and '-' or '(' .. cursor
may_remove()
if cursor == '' then
  local space = call('HMGET', BASE, 'signature', 'items')
  if space[1] == SIGNED and not whole(space[2]) then index_mend() end
end
local ids = call('ZRANGEBYLEX', IDS, from, '+', 'LIMIT', 0, {SCANNED_AT_ONCE})
for _, id in ipairs(ids) do
  cursor = id
  if kind(ITEMS .. id) ~= 'ours' then
    forget(id) -- it is gone, and no index can have it
  elseif call('HGET', ITEMS .. id, 'indexed') ~= SIGNED or not index_has(id) then
    local flat, more = document(ITEMS .. id)
    found[#found + 1] = {{id, flat}}
    bytes = bytes + more
    if #found >= size or bytes >= {ANSWER_BYTES} then break end
  end
end
if #ids < {SCANNED_AT_ONCE} and cursor == (ids[#ids] or cursor) then cursor = '' end
return cjson.encode({{call('HGET', BASE, 'revision'), cursor, found}})
"""

# ARGV: for each item its id, the revision that it must have, order, text for the index, how many
# arguments follow, and those: what only the index reads of its hash.
_REINDEX = f"""
if call('HGET', BASE, 'adapter') ~= MARK then return '!gone' end
may_write('')
local at, done = 4, 0
while at <= #ARGV do
  local id, key, count = ARGV[at], ITEMS .. ARGV[at], tonumber(ARGV[at + 4])
  if kind(key) == 'ours' and call('HGET', key, 'revision') == ARGV[at + 1] then
    call('HSET', key, 'indexed', SIGNED)
    for _, name in ipairs(call('HKEYS', key)) do
      if name:sub(1, {len(HIDDEN)}) == '{HIDDEN}' then call('HDEL', key, name) end
    end
    index_remove(id)
    index_put(id, ARGV[at + 2], ARGV[at + 3])
    if count > 0 then set_fields(key, at + 5, at + 4 + count) end
    done = done + 1
  end
  at = at + 5 + count
end
index_finish()
return tostring(done)
"""

# ARGV: 4 the number of the last write when a look at all items began, which found none that is indexed
# in another way; nothing if there was no such look. Answers 1 or 0.
_ADOPT = """
local space = call('HGETALL', BASE)
local field = {}
for i = 1, #space, 2 do field[space[i]] = space[i + 1] end
if field.adapter ~= MARK then return '!gone' end
if field.signature == SIGNED and whole(field.items) then return '1' end
if ARGV[4] == '' or not whole(field.items) then return '0' end
for name, number in pairs(field) do
  local other = name:sub(1, 6) == 'wrote:' and name:sub(7) ~= SIGNED
  if other and tonumber(number) > tonumber(ARGV[4]) then return '0' end
end
call('HSET', BASE, 'signature', SIGNED)
return '1'
"""


class Scripts:
    """The shared scripts with the functions of one index.

    Args:
        functions: Lua that defines the local functions of `index.py`. It may use `BASE` (the namespace's
            key), `IDS`, `call` and `words`.
    """

    def __init__(self, functions: str) -> None:
        self._prelude = HEAD + functions + LIBRARY
        self.ready = self.make("ready", _READY)
        self.remembered = self.make("remembered", _REMEMBERED)
        self.get = self.make("get", _GET)
        self.get_revision = self.make("get_revision", _GET)
        self.put = self.make("put", _PUT)
        self.check = self.make("check", _CHECK)
        self.replace = self.make("replace", _REPLACE)
        self.delete = self.make("delete", _DELETE)
        self.clear = self.make("clear", _CLEAR)
        self.forget = self.make("forget", _FORGET)
        self.page = self.make("page", _PAGE)
        self.outdated = self.make("outdated", _OUTDATED)
        self.reindex = self.make("reindex", _REINDEX)
        self.adopt = self.make("adopt", _ADOPT)

    def make(self, name: str, body: str) -> Script:
        """Make a script that begins with the shared functions and those of the index."""
        return Script.of(name, self._prelude + body)

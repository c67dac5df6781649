"""The Lua of the index of the search engine.

The engine's index has the name of the namespace's own key and `:ft1`; it reads the hidden fields of the
items' hashes. The field `building` of the namespace's key says that it is still reading them.
"""

from typing import Final

from . import keyspace
from .library import HIDDEN
from .scripts import ANSWER_BYTES, ANSWER_ITEMS

NAME = ":ft1"
"""What follows the namespace's key in the name of the engine's index. The number is the layout's."""

ORDER, TOKENS, TERMS = HIDDEN + "o", HIDDEN + "t", HIDDEN + "w"
"""The fields that the engine reads: minus `created_at` and the id, tags and facets, terms."""

BOUNDED: Final = "@created_at:[$from $to]"
"""The engine's condition on the time; the bounds are parameters."""


FUNCTIONS = (
    keyspace.FUNCTIONS
    + """
-- the sets are another index here, which may be in the making
index_put = function() end
index_intact = function() return true end
index_has = function() return true end
index_mend = function() end
"""
)

FIND = f"""
local why = refusal(true)
if why then return why end
if call('HGET', BASE, 'building') then return '!building' end
purge()

local INDEX, QUERY, SCORED = BASE .. '{NAME}', ARGV[5], ARGV[8] == '1'
local LIMIT, FROM, TO, WINDOW = tonumber(ARGV[4]), ARGV[6], ARGV[7], tonumber(ARGV[9])
local CANDIDATES = words(ARGV[10])
local SKIP = #ITEMS + 1

-- what the engine says, or why it says nothing
local function engine(command)
  for _, word in ipairs({{'PARAMS', '4', 'from', FROM, 'to', TO, 'DIALECT', '2', 'TIMEOUT', '0'}}) do
    command[#command + 1] = word
  end
  local reply = pcall(unpack(command))
  if not reply.err then return reply end
  if reply.err:lower():find('no such index') or reply.err:lower():find('unknown index') then
    return nil, '!unindexed'
  end
  if reply.err:find('exceeds maximum') then return nil, '!window' end
  error(reply.err, 0)
end

local function search(first, count)
  local command = {{'FT.SEARCH', INDEX, QUERY, 'NOCONTENT', 'LIMIT', first, count}}
  if SCORED then
    command[#command + 1] = 'WITHSCORES'
    command[#command + 1] = 'SCORER'
    command[#command + 1] = 'BM25STD'
  else
    command[#command + 1] = 'SORTBY'
    command[#command + 1] = 'o'
    command[#command + 1] = 'ASC'
  end
  if #CANDIDATES > 0 then
    command[#command + 1] = 'INKEYS'
    command[#command + 1] = #CANDIDATES
    for _, id in ipairs(CANDIDATES) do command[#command + 1] = ITEMS .. id end
  end
  return engine(command)
end

-- conditions beyond those that the engine is asked
local REST = {{}}
for i = 11, #ARGV do REST[#REST + 1] = words(ARGV[i]) end

local function meets(id)
  if #REST == 0 then return true end
  local has = {{}}
  for _, text in ipairs(call('HMGET', ITEMS .. id, '{TOKENS}', '{TERMS}')) do
    for word in (text or ''):gmatch('%S+') do has[word] = true end
  end
  for _, group in ipairs(REST) do
    local met = false
    for _, word in ipairs(group) do met = met or has[word] end
    if not met then return false end
  end
  return true
end

-- the newest first: pages of the engine; past its window it is asked again for what is no newer
local function newest()
  local first, seen, last = 0, {{}}, nil
  return function()
    while true do
      local count = math.min({ANSWER_ITEMS}, WINDOW - first)
      if count <= 0 then
        local time = call('HGET', ITEMS .. last, 'created_at')
        if not time or time == TO then return nil, '!window' end
        TO, first, count = time, 0, math.min({ANSWER_ITEMS}, WINDOW)
        if not QUERY:find('{BOUNDED}', 1, true) then
          QUERY = (QUERY == '*' and '' or QUERY .. ' ') .. '{BOUNDED}'
        end
      end
      local reply, wrong = search(first, count)
      if wrong then return nil, wrong end
      local got = #reply - 1
      if first > 0 and got < count and first + got < reply[1] then
        WINDOW = first + got -- it is smaller than the store knows, and the engine cuts in silence
      elseif got == 0 then
        return {{}}
      end
      first = first + got
      local page = {{}}
      for i = 2, #reply do
        last = reply[i]:sub(SKIP)
        if not seen[last] then
          seen[last] = true
          page[#page + 1] = {{last, ''}}
        end
      end
      if #page > 0 then return page end
    end
  end
end

local function by_score(count)
  local reply, wrong = search(0, count)
  if wrong then return nil, wrong end
  local rows = {{}}
  for i = 2, #reply, 2 do rows[#rows + 1] = {{reply[i]:sub(SKIP), reply[i + 1]}} end
  return rows, nil, reply[1]
end

-- the engine breaks ties in its own way, and this in the order of all searches
local function ordered(rows)
  local order = {{}}
  for _, row in ipairs(rows) do
    order[row[1]] = call('HGET', ITEMS .. row[1], '{ORDER}') or ''
    row[3] = tonumber(row[2])
  end
  table.sort(rows, function(one, other)
    if one[3] ~= other[3] then return one[3] > other[3] end
    return order[one[1]] < order[other[1]]
  end)
  return rows
end

local function aggregated(count)
  local reply, wrong = engine({{
    'FT.AGGREGATE', INDEX, QUERY, 'SCORER', 'BM25STD', 'ADDSCORES', 'LOAD', '1', '@__key',
    'SORTBY', '4', '@__score', 'DESC', '@o', 'ASC', 'MAX', count, 'LIMIT', '0', count,
  }})
  if wrong then return nil, wrong end
  local rows = {{}}
  for i = 2, #reply do
    local row = {{}}
    for at = 1, #reply[i], 2 do row[reply[i][at]] = reply[i][at + 1] end
    rows[#rows + 1] = {{row['__key']:sub(SKIP), row['__score']}}
  end
  return rows
end

-- the best first: all at once
local function best()
  local given = false
  return function()
    if given then return {{}} end
    given = true
    if #CANDIDATES > 0 then return by_score(#CANDIDATES) end
    local held = call('ZCARD', IDS)
    local wanted = #REST > 0 and held or math.min(LIMIT, held)
    for _, more in ipairs({{1, {ANSWER_ITEMS}}}) do
      local count = wanted + more
      if count > WINDOW then break end
      local rows, wrong = by_score(count)
      if wrong then return nil, wrong end
      -- whole, or cut between two scores
      if #rows < count or rows[wanted][2] ~= rows[count][2] then return ordered(rows) end
    end
    local rows, wrong = aggregated(wanted)
    if wrong then return nil, wrong end
    if #rows < wanted then
      local matched, _, total = by_score(1)
      if matched and #rows < math.min(wanted, total) then return nil, '!window' end
    end
    return rows
  end
end

-- why a short answer cannot be trusted: the engine has not got the first or the last item, since somebody
-- made another index of this name
local function astray()
  for _, at in ipairs({{0, -1}}) do
    local id = call('ZRANGE', IDS, at, at)[1]
    if id and kind(ITEMS .. id) == 'ours' then
      local reply, wrong = engine({{
        'FT.SEARCH', INDEX, '*', 'NOCONTENT', 'SORTBY', 'o', 'LIMIT', 0, 1, 'INKEYS', 1, ITEMS .. id,
      }})
      if wrong or reply[1] == 0 then return '!unindexed' end
    end
  end
end

-- one pass; true when an item was there for the engine alone, so that another pass is due
local function pass(hits)
  local source, bytes, stale = SCORED and best() or newest(), 0, false
  while #hits < LIMIT do
    local page, wrong = source()
    if wrong then return false, wrong end
    if #page == 0 then return stale end
    for _, row in ipairs(page) do
      if #hits >= LIMIT then break end
      local id, score = row[1], row[2]
      if meets(id) then
        if bytes < {ANSWER_BYTES} and #hits < {ANSWER_ITEMS} then
          local flat, more = document(ITEMS .. id)
          if flat then
            hits[#hits + 1] = {{id, score, flat}}
            bytes = bytes + more
          elseif not kind(ITEMS .. id) then
            forget(id)
            stale = true
          end
        elseif kind(ITEMS .. id) == 'ours' then
          hits[#hits + 1] = {{id, score}}
        end
      end
    end
  end
  return stale
end

local hits
for _ = 1, 3 do
  hits = {{}}
  local stale, wrong = pass(hits)
  if wrong then return wrong end
  if not stale then break end
end
if #CANDIDATES == 0 and #hits < LIMIT then
  why = unfit() or astray()
  if why then return why end
end
return cjson.encode(hits)
"""
"""The search. ARGV: 4 the limit, 5 the engine's query, 6 and 7 the least and the greatest created_at,
8 whether it has a text, 9 how many hits the engine gives at most, 10 the only ids that are asked about,
or nothing; then groups of tokens of which one must be there, which the engine is not asked. Answers hits
in order: id, score, and the hash unless the answer is full."""

MARK_BUILDING = """
local why = refusal(false)
if why then return why end
call('HSET', BASE, 'building', '1')
return ''
"""
MARK_BUILT = """
call('HDEL', BASE, 'building')
return ''
"""

"""The Lua of the index of sorted sets.

- `:times` every id by minus `created_at`: in its order, and by id where that is equal;
- `:tokens` of each id, what is in the sets and with which score;
- `:x:TOKEN` the ids that have a tag or a facet, as in `:times`, or a term by minus its weight.
"""

from .scripts import ANSWER_BYTES, ANSWER_ITEMS

FEW = 64
"""How many alternatives of a group are asked one by one; beyond, an item's own tokens are read."""
AT_ONCE = 1_000
"""How many ids one command is given. Lua passes some thousand arguments at most."""

FUNCTIONS = f"""
local TIMES, TOKENS, SETS = BASE .. ':times', BASE .. ':tokens', BASE .. ':x:'

-- a key of another type has nothing of ours, and any other error stays one
local function leave(key, id)
  local reply = pcall('ZREM', key, id)
  if type(reply) == 'table' and not reply.err:find('WRONGTYPE') then error(reply.err, 0) end
end

local function index_remove(id)
  local old = call('HGET', TOKENS, id)
  if old then
    for word in old:gmatch('%S+') do
      if word:byte() ~= 61 then leave(SETS .. word, id) end
    end
    call('HDEL', TOKENS, id)
  end
  call('ZREM', TIMES, id)
end

-- what the sets are to get and to lose: one command for many items is far cheaper than one for each
local WAITING, LEAVING, WORDS, ORDERS = {{}}, {{}}, {{}}, {{}}

-- a key of another type refuses its items, and the sets become what they were
local function enter(key, members)
  local reply = pcall('ZADD', key, unpack(members))
  if type(reply) ~= 'table' then return end
  for at = 1, #WORDS, 2 do
    local id, score = WORDS[at], nil
    for word in WORDS[at + 1]:gmatch('%S+') do
      if word:byte() ~= 61 then leave(SETS .. word, id) end
    end
    for word in (call('HGET', TOKENS, id) or ''):gmatch('%S+') do
      if word:byte() == 61 then score = word:sub(2) else pcall('ZADD', SETS .. word, score, id) end
    end
  end
  error(reply.err, 0)
end

local function add(key, score, id)
  local members = WAITING[key]
  if not members then
    members = {{}}
    WAITING[key] = members
  end
  local count = #members
  members[count + 1], members[count + 2] = score, id
  if count + 2 >= {AT_ONCE} then
    enter(key, members)
    WAITING[key] = nil
  end
end

-- what may be refused comes first, and by what the index is known to be whole comes last
local function index_finish()
  for key, members in pairs(WAITING) do enter(key, members) end
  for at = 1, #LEAVING, 2 do leave(LEAVING[at], LEAVING[at + 1]) end
  for from = 1, #WORDS, {AT_ONCE} do
    call('HSET', TOKENS, unpack(WORDS, from, math.min(from + {AT_ONCE} - 1, #WORDS)))
  end
  for from = 1, #ORDERS, {AT_ONCE} do
    call('ZADD', TIMES, unpack(ORDERS, from, math.min(from + {AT_ONCE} - 1, #ORDERS)))
  end
  WAITING, LEAVING, WORDS, ORDERS = {{}}, {{}}, {{}}, {{}}
end

local function index_put(id, order, text)
  local old = call('HGET', TOKENS, id)
  if old == text then return end
  WORDS[#WORDS + 1], WORDS[#WORDS + 2] = id, text
  ORDERS[#ORDERS + 1], ORDERS[#ORDERS + 2] = order, id
  local score, new = nil, {{}}
  for word in text:gmatch('%S+') do
    if word:byte() == 61 then
      score = word:sub(2)
    else
      new[word] = true
      add(SETS .. word, score, id)
    end
  end
  if old then
    for word in old:gmatch('%S+') do
      if word:byte() ~= 61 and not new[word] then
        LEAVING[#LEAVING + 1], LEAVING[#LEAVING + 2] = SETS .. word, id
      end
    end
  end
end

local function index_intact(count)
  return call('ZCARD', TIMES) == count and call('HLEN', TOKENS) == count
end

local function index_has(id)
  return call('HGET', TOKENS, id) and call('ZSCORE', TIMES, id)
end

local function index_mend()
  for from = 0, call('ZCARD', TIMES) - 1, {AT_ONCE} do
    for _, id in ipairs(call('ZRANGE', TIMES, from, from + {AT_ONCE} - 1)) do call('ZADD', IDS, 0, id) end
  end
  if call('HLEN', TOKENS) > 0 then return end
  -- which sets an item was in is known no more, and some items may have gone since
  local cursor = '0'
  repeat
    local page = call('SCAN', cursor, 'MATCH', SETS .. '*', 'COUNT', 1000)
    cursor = page[1]
    for _, key in ipairs(page[2]) do call('DEL', key) end
  until cursor == '0'
end
"""
"""What the shared scripts need."""

FIND = f"""
local why = refusal(true)
if why then return why end
purge()

local LIMIT, FROM, TO = tonumber(ARGV[4]), ARGV[5], ARGV[6]
local BOUNDED = FROM ~= '-inf' or TO ~= 'inf'
local CANDIDATES = words(ARGV[9])

local function sets(text)
  local keys, fewest, total = {{}}, nil, 0
  for i, token in ipairs(words(text)) do
    local key = SETS .. token
    local size = call('ZCARD', key)
    keys[i] = {{key = key, token = token, size = size}}
    total = total + size
    if not fewest or size < fewest.size then fewest = keys[i] end
  end
  return keys, fewest, total
end

local function answer(hits)
  if #CANDIDATES == 0 and #hits < LIMIT then
    local reason = unfit()
    if reason then return reason end
  end
  return cjson.encode(hits)
end

local required, rarest = sets(ARGV[7])
local terms, rarest_term = sets(ARGV[8])
local groups, small = {{}}, nil
for i = 10, #ARGV do
  local keys, _, total = sets(ARGV[i])
  groups[#groups + 1] = {{keys = keys, size = total}}
  if not small or total < small.size then small = groups[#groups] end
end
for _, least in ipairs({{rarest or false, rarest_term or false, small or false}}) do
  if least and least.size == 0 then return answer({{}}) end
end

-- Conditions: each gives those of some ids that meet it

local function each(ids, ask)
  local kept = {{}}
  for from = 1, #ids, {AT_ONCE} do
    local part = {{unpack(ids, from, math.min(from + {AT_ONCE} - 1, #ids))}}
    local met = ask(part)
    for i, id in ipairs(part) do
      if met[i] then kept[#kept + 1] = id end
    end
  end
  return kept
end

local function in_set(key)
  return function(ids)
    return each(ids, function(part) return call('ZMSCORE', key, unpack(part)) end)
  end
end

local function in_time(ids)
  local from, to = tonumber(FROM), tonumber(TO)
  return each(ids, function(part)
    local met = call('ZMSCORE', TIMES, unpack(part))
    for i, score in ipairs(met) do
      local order = tonumber(score or nil)
      met[i] = order and (not from or order >= from) and (not to or order <= to)
    end
    return met
  end)
end

local function in_one_of(group)
  local wanted = {{}}
  for _, one in ipairs(group.keys) do wanted[one.token] = true end
  return function(ids)
    return each(ids, function(part)
      local met = {{}}
      if #group.keys > {FEW} then
        for i, text in ipairs(call('HMGET', TOKENS, unpack(part))) do
          for word in (text or ''):gmatch('%S+') do met[i] = met[i] or wanted[word] end
        end
        return met
      end
      for _, one in ipairs(group.keys) do
        if one.size > 0 then
          for i, score in ipairs(call('ZMSCORE', one.key, unpack(part))) do met[i] = met[i] or score end
        end
      end
      return met
    end)
  end
end

-- Sources: each gives the next ids in the order of the answer, none at the end

local function listed(ids)
  local at = 1
  return function(count)
    local part = {{unpack(ids, at, math.min(at + count - 1, #ids))}}
    at = at + #part
    return part
  end
end

local function ranked(key)
  local first, last = 0, call('ZCARD', key) - 1
  if BOUNDED then
    first = call('ZCOUNT', key, '-inf', '(' .. FROM)
    last = call('ZCOUNT', key, '-inf', TO) - 1
  end
  return function(count)
    if first > last then return {{}} end
    local part = call('ZRANGE', key, first, math.min(first + count - 1, last))
    first = first + #part
    return part
  end
end

local SCORE = {{}}

-- more sets than one command takes: the others are asked for each id
local function added_up(flat, keys, weights, from)
  local found = {{}}
  for at = 1, #flat, 2 do
    local id, score = flat[at], tonumber(flat[at + 1])
    for i = from, #keys do
      local more = score and call('ZSCORE', keys[i], id)
      score = more and score + weights[i] * tonumber(more)
    end
    if score then found[#found + 1] = {{id, score}} end
  end
  table.sort(found, function(one, other) return one[2] < other[2] end)
  local sorted = {{}}
  for _, one in ipairs(found) do
    sorted[#sorted + 1] = one[1]
    sorted[#sorted + 1] = string.format('%.17g', one[2])
  end
  return sorted
end

-- all that have the terms and the required tokens, best first
local function scored()
  local keys, weights = {{}}, {{}}
  for _, one in ipairs(terms) do keys[#keys + 1], weights[#weights + 1] = one.key, 1 end
  for _, one in ipairs(required) do keys[#keys + 1], weights[#weights + 1] = one.key, 0 end
  if #keys == 1 then return call('ZRANGE', keys[1], 0, -1, 'WITHSCORES') end
  local at_once = math.min(#keys, {AT_ONCE})
  local arguments = {{'ZINTER', at_once}}
  for i = 1, at_once do arguments[#arguments + 1] = keys[i] end
  arguments[#arguments + 1] = 'WEIGHTS'
  for i = 1, at_once do arguments[#arguments + 1] = weights[i] end
  arguments[#arguments + 1] = 'WITHSCORES'
  local flat = call(unpack(arguments))
  if at_once < #keys then return added_up(flat, keys, weights, at_once + 1) end
  return flat
end

-- the same, and those of one score by time and id
local function best()
  local flat, at = scored(), 1
  return function(count)
    local ids = {{}}
    while #ids < count and at < #flat do
      local score, block, times = flat[at + 1], {{}}, {{}}
      while flat[at + 1] == score do
        block[#block + 1] = flat[at]
        SCORE[flat[at]] = score
        at = at + 2
      end
      if #block > 1 then
        each(block, function(part)
          for i, time in ipairs(call('ZMSCORE', TIMES, unpack(part))) do
            times[part[i]] = tonumber(time or nil) or 0
          end
          return {{}}
        end)
        table.sort(block, function(one, other)
          if times[one] ~= times[other] then return times[one] < times[other] end
          return one < other
        end)
      end
      for _, id in ipairs(block) do ids[#ids + 1] = id end
    end
    return ids
  end
end

local source, walked, inside
if #CANDIDATES > 0 then
  source = listed(CANDIDATES)
elseif #terms > 0 then
  source, inside = best(), true
elseif rarest then
  source, walked = ranked(rarest.key), rarest
elseif small and small.size * small.size <= math.min(LIMIT, 1000000) * call('ZCARD', TIMES)
    and #small.keys <= {AT_ONCE} then
  -- few: their union is cheaper than the way past all others
  local arguments = {{'ZUNION', #small.keys}}
  for _, one in ipairs(small.keys) do arguments[#arguments + 1] = one.key end
  arguments[#arguments + 1] = 'AGGREGATE'
  arguments[#arguments + 1] = 'MIN'
  source, walked = listed(call(unpack(arguments))), small
  inside = false
else
  source = ranked(TIMES)
end

local conditions = {{}}
if BOUNDED and (inside ~= nil or #CANDIDATES > 0) then conditions[1] = in_time end
if not inside then
  for _, one in ipairs(required) do
    if one ~= walked then conditions[#conditions + 1] = in_set(one.key) end
  end
  for _, one in ipairs(terms) do conditions[#conditions + 1] = in_set(one.key) end
end
for _, group in ipairs(groups) do
  if group ~= walked then conditions[#conditions + 1] = in_one_of(group) end
end

local hits, gone, bytes, count = {{}}, {{}}, 0, math.max(16, math.min(LIMIT, {AT_ONCE}))
while #hits < LIMIT do
  local ids = source(count)
  if #ids == 0 then break end
  for _, condition in ipairs(conditions) do ids = condition(ids) end
  for _, id in ipairs(ids) do
    if #hits >= LIMIT then break end
    local score = SCORE[id] or ''
    if bytes < {ANSWER_BYTES} and #hits < {ANSWER_ITEMS} then
      local flat, more = document(ITEMS .. id)
      if flat then
        hits[#hits + 1] = {{id, score, flat}}
        bytes = bytes + more
      elseif not kind(ITEMS .. id) then
        gone[#gone + 1] = id
      end
    elseif kind(ITEMS .. id) == 'ours' then
      hits[#hits + 1] = {{id, score}}
    end
  end
  count = math.min(count * 4, {AT_ONCE})
end
local reply = answer(hits)
if reply:sub(1, 1) ~= '!' then
  -- deleted by another client, or not purged yet
  for i = 1, math.min(#gone, 100) do forget(gone[i]) end
end
return reply
"""
"""The search. ARGV: 4 the limit, 5 and 6 the least and the greatest order, 7 tokens that all must be
there, 8 terms likewise, 9 the only ids that are asked about, or nothing; then groups of tokens of which
one must be there. Tokens and ids are parted by spaces. Answers hits in order: id, score, and the hash
unless the answer is full."""

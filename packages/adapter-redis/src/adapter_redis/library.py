"""The Lua that every script begins with: what the scripts share, in functions."""

MARK = "adapter-redis"
"""What the field `adapter` of a hash that is ours says."""

HIDDEN = "index."
"""How the fields of an item's hash begin that only an index reads."""

PURGED_AT_ONCE = 100
"""How many expired items one call removes from the indexes. The others are passed over until then."""

HEAD = """
local BASE, SIGNED, WATCH, DUE = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1'
local ITEMS, IDS, EXPIRY = BASE .. ':item:', BASE .. ':ids', BASE .. ':expiry'
local call, pcall = redis.call, redis.pcall

local function words(text)
  local found = {}
  for word in text:gmatch('%S+') do found[#found + 1] = word end
  return found
end
"""

LIBRARY = f"""
local MARK = '{MARK}'
local byte, sub = string.byte, string.sub

-- why the server is not what the store needs, or nil
local function unfit()
  if WATCH:find('e') then
    local policy = call('INFO', 'memory'):match('maxmemory_policy:(%S+)')
    if policy ~= 'noeviction' then return '!evicting ' .. tostring(policy) end
  end
end

-- whether every item is listed, and in this index
local function whole(items)
  local count = tonumber(items)
  return call('ZCARD', IDS) == count and index_intact(count)
end

-- why the call must not be done, or nil
local function refusal(signed)
  local space = call('HMGET', BASE, 'adapter', 'signature', 'items')
  if space[1] ~= MARK then return '!gone' end
  local same = space[2] == SIGNED
  if signed and not same then return '!signature' end
  local count = tonumber(space[3])
  if call('ZCARD', IDS) ~= count or (same and not index_intact(count)) then return '!damaged' end
  if DUE then
    if WATCH:find('a') and call('INFO', 'persistence'):match('aof_enabled:(%d)') ~= '1' then
      return '!volatile'
    end
    if call('INFO', 'replication'):match('role:(%a+)') ~= 'master' then return '!replica' end
    return unfit()
  end
end

-- a key of another type is an answer, and any other error stays one
local function of_another_type(text)
  if not text:find('WRONGTYPE') then error(text, 0) end
end

-- 'ours', 'foreign', or nil when there is no such key
local function kind(key)
  local mark = pcall('HGET', key, 'adapter')
  if mark == MARK then return 'ours' end
  if mark and mark.err then of_another_type(mark.err) end
  if mark or call('EXISTS', key) == 1 then return 'foreign' end
end

-- the hash as a list of names and values, if it is ours
local function document(key)
  local flat = pcall('HGETALL', key)
  if flat.err then return of_another_type(flat.err) end
  local ours, kept, bytes, all = false, 0, 0, #flat
  for i = 1, all, 2 do
    local name, value = flat[i], flat[i + 1]
    if name == 'adapter' then ours = value == MARK end
    -- one byte tells most names apart, which is cheaper than to cut them
    if byte(name, {len(HIDDEN)}) ~= {ord(HIDDEN[-1])} or sub(name, 1, {len(HIDDEN)}) ~= '{HIDDEN}' then
      if kept < i - 1 then flat[kept + 1], flat[kept + 2] = name, value end
      kept = kept + 2
      bytes = bytes + #value
    end
  end
  for i = all, kept + 1, -1 do flat[i] = nil end
  if ours then return flat, bytes end
end

-- take an id out of every index; deletions come first, since those are allowed when memory is full
local function forget(id)
  call('ZREM', EXPIRY, id)
  index_remove(id)
  if call('ZREM', IDS, id) == 1 then call('HINCRBY', BASE, 'items', -1) end
end

-- remove what has expired, a bounded part at once
local function purge()
  local first = call('ZRANGE', EXPIRY, 0, 0, 'WITHSCORES')
  if not first[2] then return end
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if tonumber(first[2]) >= now then return end
  local due = call('ZRANGEBYSCORE', EXPIRY, '-inf', '(' .. string.format('%.0f', now),
    'LIMIT', 0, {PURGED_AT_ONCE})
  for _, id in ipairs(due) do
    if kind(ITEMS .. id) == 'ours' then call('DEL', ITEMS .. id) end
    forget(id)
  end
end

-- write ARGV[first] to ARGV[last] as fields of a hash
local function set_fields(key, first, last)
  for from = first, last, 1000 do
    call('HSET', key, unpack(ARGV, from, math.min(from + 999, last)))
  end
end

-- commands that change nothing: an account that may not do one of them is refused before any change
local function may_remove()
  call('ZREM', IDS, '')
  call('HDEL', BASE, '')
  call('DEL', BASE .. ':none')
end

-- the first is one that a server without memory refuses; later ones it would let pass
local function may_write(lasts)
  call('ZADD', IDS, 'XX', 0, '')
  may_remove()
  if lasts ~= '' then call('PEXPIREAT', BASE .. ':none', 1) end
end

-- write a hash whose index is written already
local function write(id, revision, lasts, first, last)
  local key = ITEMS .. id
  local new = call('ZADD', IDS, 0, id) == 1
  if new then call('HINCRBY', BASE, 'items', 1) end
  -- an id without a hash is one that another client has deleted
  call('DEL', key)
  if last - first < 1000 then
    call('HSET', key, 'adapter', MARK, 'revision', revision, 'indexed', SIGNED, unpack(ARGV, first, last))
  else
    call('HSET', key, 'adapter', MARK, 'revision', revision, 'indexed', SIGNED)
    set_fields(key, first, last)
  end
  if lasts ~= '' then
    local time = call('TIME')
    local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(lasts))
    call('PEXPIREAT', key, ends)
    call('ZADD', EXPIRY, ends, id)
  elseif not new then
    call('ZREM', EXPIRY, id)
  end
end

-- take numbers for so many writes; they follow the one that is given
local function numbered(count)
  local now = call('HINCRBY', BASE, 'revision', count)
  call('HSET', BASE, 'wrote:' .. SIGNED, string.format('%.0f', now))
  return now - count
end
"""

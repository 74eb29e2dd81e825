-- Stands before every script that writes the directory.

-- Lua would print a large number as 1.7e+12.
local function text(number) return string.format('%.0f', number) end

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A write passes only when the directory has this owner and this term.
-- Returns its meta, or nil and the reply that refuses the write.
local function fence(key, owner, term)
  local stored = redis.call('GET', key)
  if not stored then return nil, {'wiped'} end
  local meta = cjson.decode(stored)
  if meta.schema ~= 1 then return nil, {'schema', text(meta.schema)} end
  if meta.owner ~= owner then return nil, {'owned', meta.owner} end
  if meta.term ~= tonumber(term) then return nil, {'fenced', text(meta.term)} end
  return meta
end

local function replication_id()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- A change is for a whole directory, on the server that it was verified on. After a restart or a
-- failover seq may have gone back, and a gate could seem to have acknowledged a change that it
-- never saw.
local function fence_change(key, owner, term)
  local meta, refusal = fence(key, owner, term)
  if not meta then return nil, refusal end
  if not meta.complete then return nil, {'interrupted'} end
  if meta.replid ~= replication_id() then return nil, {'unverified'} end
  return meta
end

-- Writes meta back. DEL first: Redis without memory refuses SET only as a script's first write.
local function save(key, meta)
  redis.call('DEL', key)
  redis.call('SET', key, cjson.encode(meta))
end

-- Takes the next seq and tells the gates. 20 000 changes are more than a gate may lag behind; one
-- that does finds a gap and loads everything.
local function publish(feed, meta, op, name, value)
  meta.seq = meta.seq + 1
  redis.call('XADD', feed, 'MAXLEN', '~', 20000, '*',
    'seq', text(meta.seq), 'op', op, 'name', name, 'value', value)
end

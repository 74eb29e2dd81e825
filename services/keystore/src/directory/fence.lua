-- Begins every script of the operator.

-- Lua would print a large number as 1.7e+12.
local function text(number) return string.format('%.0f', number) end

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Members of meta.
local MEMBERS = {
  owner = 'string', api = 'string', replid = 'string', complete = 'boolean',
  term = 'number', generation = 'number', seq = 'number',
  count = 'number', owners = 'number', held = 'number', revoked = 'number',
}

-- cjson prints 14 digits.
local function is_whole(number)
  return number >= 0 and number < 1e14 and number % 1 == 0
end

-- Reads meta. nil: there is none, or none that can be read, which is worth as little. Of a later schema only the schema
-- is known.
local function read_meta(key)
  local readable, meta = pcall(cjson.decode, redis.call('GET', key) or '')
  if not readable or type(meta) ~= 'table' or type(meta.schema) ~= 'number' then return nil end
  if meta.schema ~= 1 then return meta end
  for name, kind in pairs(MEMBERS) do
    if type(meta[name]) ~= kind then return nil end
    if kind == 'number' and not is_whole(meta[name]) then return nil end
  end
  return meta
end

-- Lets a write pass only when the directory has this owner and this term.
-- Returns its meta, or nil and the reply that refuses the write.
local function fence(key, owner, term)
  local meta = read_meta(key)
  if not meta then return nil, {'wiped'} end
  if meta.schema ~= 1 then return nil, {'schema', text(meta.schema)} end
  if meta.owner ~= owner then return nil, {'owned', meta.owner} end
  if meta.term ~= tonumber(term) then return nil, {'fenced', text(meta.term)} end
  return meta
end

local function replication_id()
  return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end


-- Lets a full Redis take what follows: it refuses commands that need memory only as a script's
-- first write. PERSIST is a write that changes nothing.
local function write_though_full(key) redis.call('PERSIST', key) end

-- Writes meta back.
local function save(key, meta)
  write_though_full(key)
  redis.call('SET', key, cjson.encode(meta))
end

-- Whether the directory is before a position at which it was seen: Redis went back to an earlier state. Only a client
-- that has seen that position knows. So the directory is marked, and the next claim rebuilds it.
local function went_back(key, meta, generation, seq)
  generation = tonumber(generation)
  if meta.generation > generation then return false end
  if meta.generation == generation and meta.seq >= tonumber(seq) then return false end
  meta.complete = false
  save(key, meta)
  return true
end

-- Lets a change pass only for a whole directory, on the server that it was verified on, and not before the position
-- that the writer has seen. After a restart or a failover seq may have gone back, and a gate could seem to have
-- acknowledged a change that it never saw.
local function fence_change(key, owner, term, generation, seq)
  local meta, refusal = fence(key, owner, term)
  if not meta then return nil, refusal end
  if not meta.complete then return nil, {'interrupted'} end
  if meta.replid ~= replication_id() then return nil, {'unverified'} end
  if went_back(key, meta, generation, seq) then return nil, {'went back'} end
  return meta
end

-- Takes the next seq and reports the change to the gates. 20 000 changes are more than a gate may lag behind; one that
-- does finds a gap and loads everything.
local function publish(feed, meta, op, name, value)
  meta.seq = meta.seq + 1
  redis.call('XADD', feed, 'MAXLEN', '~', 20000, '*',
    'seq', text(meta.seq), 'op', op, 'name', name, 'value', value)
end

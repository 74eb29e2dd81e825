-- Makes some shards hold exactly what is declared, without what a tombstone bars.
-- KEYS  meta, revoked, then for each shard: records, owners
-- ARGV  owner's uid, term, generation, then for each shard: number of keys, and for each key:
--         hash, packed record, the ApiKey's uid, its stored form, account that asks ('*' for a
--         generated key)
-- reply done, each hash that was left out | interrupted | the fence's refusals
local meta, refusal = fence(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
if meta.generation ~= tonumber(ARGV[3]) then return {'interrupted'} end
write_though_full(KEYS[1])
local reply = {'done'}
local at = 4
for k = 3, #KEYS, 2 do
  local records, owners = {}, {}
  local keys = tonumber(ARGV[at])
  at = at + 1
  for _ = 1, keys do
    local hash, uid = ARGV[at], ARGV[at + 2]
    local times = read_tombstone(redis.call('HGET', KEYS[2], hash))
    if barring(times, ARGV[at + 4]) or redis.call('HEXISTS', KEYS[2], uid) == 1 then
      reply[#reply + 1] = hash
    else
      records[hash], owners[hash] = ARGV[at + 1], ARGV[at + 3]
    end
    at = at + 5
  end
  make_exactly(KEYS[k], records)
  make_exactly(KEYS[k + 1], owners)
end
return reply

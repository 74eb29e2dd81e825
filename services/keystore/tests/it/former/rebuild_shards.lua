-- Replaces some shards by what is declared, without those that were revoked.
-- KEYS  meta, revoked, then for each shard: records, owners
-- ARGV  owner's uid, term, generation, then for each shard: how many keys, and for each key:
--         hash, packed record, owner
-- reply done, each revoked hash that was left out | interrupted | the fence's refusals
local meta, refusal = fence(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
if meta.generation ~= tonumber(ARGV[3]) then return {'interrupted'} end
local reply = {'done'}
local at = 4
for k = 3, #KEYS, 2 do
  redis.call('DEL', KEYS[k], KEYS[k + 1])
  local keys = tonumber(ARGV[at])
  at = at + 1
  for _ = 1, keys do
    local hash = ARGV[at]
    if redis.call('HEXISTS', KEYS[2], hash) == 1 then
      reply[#reply + 1] = hash
    else
      redis.call('HSET', KEYS[k], hash, ARGV[at + 1])
      redis.call('HSET', KEYS[k + 1], hash, ARGV[at + 2])
    end
    at = at + 3
  end
end
return reply

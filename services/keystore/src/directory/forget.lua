-- Forgets tombstones that are 90 days old.
-- KEYS  meta, revoked
-- ARGV  owner's uid, term
-- reply done, how many | the fence's refusals
local meta, refusal = fence(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
local before = now() - 90 * 86400000
local forgotten = 0
local fields = redis.call('HGETALL', KEYS[2])
for i = 1, #fields, 2 do
  if tonumber(fields[i + 1]) <= before then
    forgotten = forgotten + redis.call('HDEL', KEYS[2], fields[i])
  end
end
return {'done', text(forgotten)}

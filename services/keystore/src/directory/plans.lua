-- Makes the plans exactly these, and tells the gates what differs.
-- KEYS  meta, feed, plans
-- ARGV  owner's uid, term, then for each plan: name, value
-- reply done, seq, generation | the refusals of fence_change
local meta, refusal = fence_change(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
local before = meta.seq
local wanted = {}
for i = 3, #ARGV, 2 do wanted[ARGV[i]] = ARGV[i + 1] end

local stored = {}
local fields = redis.call('HGETALL', KEYS[3])
for i = 1, #fields, 2 do stored[fields[i]] = fields[i + 1] end

for name in pairs(stored) do
  if not wanted[name] then
    redis.call('HDEL', KEYS[3], name)
    publish(KEYS[2], meta, 'unplan', name, '')
  end
end
for name, value in pairs(wanted) do
  if stored[name] ~= value then
    redis.call('HSET', KEYS[3], name, value)
    publish(KEYS[2], meta, 'plan', name, value)
  end
end
if meta.seq > before then save(KEYS[1], meta) end
return {'done', text(meta.seq), text(meta.generation)}

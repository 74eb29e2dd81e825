-- Reads all leases and the generation in which they count; forgets pods that are long gone.
-- KEYS  gates, meta
-- reply now in ms, generation or '', then pod, lease as JSON for each
local stored = redis.call('GET', KEYS[2])
local reply = {text(now()), stored and text(cjson.decode(stored).generation) or ''}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  -- An hour is far beyond every grace.
  if cjson.decode(fields[i + 1]).renewed < now() - 3600000 then
    redis.call('HDEL', KEYS[1], fields[i])
  else
    reply[#reply + 1] = fields[i]
    reply[#reply + 1] = fields[i + 1]
  end
end
return reply

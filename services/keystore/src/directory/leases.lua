-- Reads all leases and the generation in which they count; forgets pods that are long gone. One that
-- cannot be read is left out: to the operator it is a gate without a lease.
-- KEYS  gates, meta
-- reply now in ms, generation and the last change's seq or twice '', then each lease as JSON
-- On another server than the one that was verified the generation may be an earlier one: '' too.
local meta = read_meta(KEYS[2])
local is_verified = meta and meta.schema == 1 and meta.replid == replication_id()
local reply = {
  text(now()), is_verified and text(meta.generation) or '', is_verified and text(meta.seq) or '',
}
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local readable, lease = pcall(cjson.decode, fields[i + 1])
  local renewed = readable and type(lease) == 'table' and tonumber(lease.renewed)
  -- An hour is far beyond every grace.
  if renewed and renewed < now() - 3600000 then
    redis.call('HDEL', KEYS[1], fields[i])
  elseif renewed then
    reply[#reply + 1] = fields[i + 1]
  end
end
return reply

-- Ends a rebuild: from here on the gates may load it.
-- KEYS  meta, revoked
-- ARGV  owner's uid, term, generation, number of records that were written, number of entries of the index
-- reply done, meta as JSON | interrupted | the fence's refusals
local meta, refusal = fence(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
-- After a restart some of the shards may have gone back to what they were.
if meta.generation ~= tonumber(ARGV[3]) or meta.replid ~= replication_id() then
  return {'interrupted'}
end
meta.count, meta.owners, meta.held = tonumber(ARGV[4]), tonumber(ARGV[4]), tonumber(ARGV[5])
meta.revoked = redis.call('HLEN', KEYS[2])
meta.complete = true
save(KEYS[1], meta)
return {'done', cjson.encode(meta)}

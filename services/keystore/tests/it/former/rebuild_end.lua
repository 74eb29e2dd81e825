-- Ends a rebuild: from here on the gates may load it.
-- KEYS  meta
-- ARGV  owner's uid, term, generation, number of records written
-- reply done, meta as JSON | interrupted | the fence's refusals
local meta, refusal = fence(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
-- After a restart some of the shards may have gone back to what they were.
if meta.generation ~= tonumber(ARGV[3]) or meta.replid ~= replication_id() then
  return {'interrupted'}
end
meta.count = tonumber(ARGV[4])
meta.complete = true
save(KEYS[1], meta)
return {'done', cjson.encode(meta)}

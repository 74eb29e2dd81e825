-- Claims the directory: takes a term above every earlier one.
-- KEYS  meta
-- ARGV  owner's uid, uid to take over or ''
-- reply done, meta as JSON | owned, uid | schema, number
local stored = redis.call('GET', KEYS[1])
local meta = stored and cjson.decode(stored) or {
  schema = 1, owner = ARGV[1], term = 0, generation = 0,
  complete = false, count = 0, seq = 0, replid = '',
}
if meta.schema ~= 1 then return {'schema', text(meta.schema)} end
if meta.owner ~= ARGV[1] then
  if meta.owner ~= ARGV[2] then return {'owned', meta.owner} end
  meta.owner = ARGV[1]
  meta.complete = false
end
-- TIME keeps terms growing when Redis has lost the stored one.
meta.term = math.max(meta.term + 1, now())
save(KEYS[1], meta)
return {'done', cjson.encode(meta)}

-- Claims the directory: takes a term above every earlier one.
-- KEYS  meta
-- ARGV  owner's uid, uid to take over or '', uid of the WaterDataApi
-- reply done, meta as JSON | owned, uid | schema, number
local meta = read_meta(KEYS[1]) or {
  schema = 1, owner = ARGV[1], api = '', replid = '', complete = false,
  term = 0, generation = 0, seq = 0, count = 0, owners = 0, held = 0, revoked = 0,
}
if meta.schema ~= 1 then return {'schema', text(meta.schema)} end
if meta.owner ~= ARGV[1] then
  if meta.owner ~= ARGV[2] then return {'owned', meta.owner} end
  meta.owner = ARGV[1]
  meta.complete = false
end
-- Keys of a WaterDataApi that is gone may be in it.
if meta.api ~= ARGV[3] then meta.complete = false end
meta.api = ARGV[3]
-- TIME keeps terms growing when Redis has lost the stored one.
meta.term = math.max(meta.term + 1, now())
save(KEYS[1], meta)
return {'done', cjson.encode(meta)}

-- Begins a rebuild: a new generation that is not complete, on the server that answers here. Nothing is
-- declared until it is complete, so that the index counts for nothing meanwhile.
-- KEYS  meta, plans
-- ARGV  owner's uid, term, then for each plan: name, value
-- reply done, seq, generation | the fence's refusals
local meta, refusal = fence(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
-- TIME keeps both growing when Redis has lost the stored ones: no gate may take a number for one
-- that it has seen before.
meta.generation = math.max(meta.generation + 1, now())
meta.seq = math.max(meta.seq + 1, now())
meta.complete = false
meta.replid = replication_id()
save(KEYS[1], meta)
local wanted = {}
for i = 3, #ARGV, 2 do wanted[ARGV[i]] = ARGV[i + 1] end
make_exactly(KEYS[2], wanted)
return {'done', text(meta.seq), text(meta.generation)}

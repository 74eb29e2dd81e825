-- Makes some shards of the index hold exactly these owners.
-- KEYS  meta, then each shard of held
-- ARGV  owner's uid, term, generation, then for each shard: number of ApiKeys, and for each:
--         its uid, the content of its entry
-- reply done | interrupted | the fence's refusals
local meta, refusal = fence(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
if meta.generation ~= tonumber(ARGV[3]) then return {'interrupted'} end
write_though_full(KEYS[1])
local at = 4
for k = 2, #KEYS do
  local wanted = {}
  local owners = tonumber(ARGV[at])
  at = at + 1
  for _ = 1, owners do
    wanted[ARGV[at]] = text(meta.generation) .. ' ' .. ARGV[at + 1]
    at = at + 2
  end
  make_exactly(KEYS[k], wanted)
end
return {'done'}

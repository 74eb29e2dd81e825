-- Makes the plans exactly these, and reports to the gates what differs.
-- KEYS  meta, feed, plans
-- ARGV  owner's uid, term, generation and seq that the writer has seen, then for each plan: name, value
-- reply done, seq, generation | the refusals of fence_change
local meta, refusal = fence_change(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if not meta then return refusal end
local wanted = {}
for i = 5, #ARGV, 2 do wanted[ARGV[i]] = ARGV[i + 1] end
local puts, removals = differences(KEYS[3], wanted)
if not next(puts) and #removals == 0 then
  return {'done', text(meta.seq), text(meta.generation)}
end
-- A lowered plan is a restriction.
write_though_full(KEYS[1])
replace(KEYS[3], puts, removals)
for name, value in pairs(puts) do publish(KEYS[2], meta, 'plan', name, value) end
for _, name in ipairs(removals) do publish(KEYS[2], meta, 'unplan', name, '') end
save(KEYS[1], meta)
return {'done', text(meta.seq), text(meta.generation)}

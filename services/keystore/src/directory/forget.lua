-- Forgets some of the tombstones and last uses that are 90 days old.
-- KEYS  meta, revoked, used
-- ARGV  owner's uid, term, generation and seq that the writer has seen, cursor into revoked, largest number
--       of each
-- reply done, next cursor, number of tombstones, number of last uses | the refusals of fence_change
local meta, refusal = fence_change(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if not meta then return refusal end
local revoked, used, oldest = KEYS[2], KEYS[3], now() - 90 * 86400000
local forgotten = 0
write_though_full(KEYS[1])
local page = redis.call('HSCAN', revoked, ARGV[5], 'COUNT', ARGV[6])
for i = 1, #page[2], 2 do
  local field, before, kept = page[2][i], forgotten, {}
  for account, time in pairs(read_tombstone(page[2][i + 1])) do
    if time > oldest then kept[account] = time else forgotten = forgotten + 1 end
  end
  if not next(kept) then
    meta.revoked = meta.revoked - redis.call('HDEL', revoked, field)
  elseif forgotten > before then
    redis.call('HSET', revoked, field, tombstone_text(kept))
  end
end
if forgotten > 0 then save(KEYS[1], meta) end
local keys = redis.call('ZRANGE', used, '-inf', text(oldest), 'BYSCORE', 'LIMIT', 0, ARGV[6])
for _, key in ipairs(keys) do redis.call('ZREM', used, key) end
return {'done', page[1], text(forgotten), text(#keys)}

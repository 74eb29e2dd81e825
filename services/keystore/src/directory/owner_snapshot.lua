-- State of one ApiKey that a pass over it needs, at one moment.
-- KEYS  meta, revoked, the ApiKey's shard of held, then for each hash: its shard of records, its
--       shard of owners
-- ARGV  the ApiKey's uid, account that asks ('*' for a generated key), then each hash
-- reply done, number, '1' if the uid has a tombstone, now in ms, term, generation or '', seq or '',
--       then threes: 'held', hash, packed record | 'barred', hash, time | 'taken', hash, ''
--       | more, each hash of the index that was not listed
local meta, revoked, uid = read_meta(KEYS[1]), KEYS[2], ARGV[1]
local index = read_held(KEYS[3], uid)
local listed, indexed = {}, {}
for a = 3, #ARGV do listed[ARGV[a]] = true end
local more = unlisted(index, listed)
if more then return more end
for _, hash in ipairs(index.hashes) do indexed[hash] = true end

local is_usable = meta and meta.schema == 1 and meta.complete and meta.replid == replication_id()
local reply = {
  'done', text(index.number), text(redis.call('HEXISTS', revoked, uid)), text(now()),
  text(meta and meta.term or 0), is_usable and text(meta.generation) or '', is_usable and text(meta.seq) or '',
}
local function tell(what, hash, value)
  for _, word in ipairs({what, hash, value}) do reply[#reply + 1] = word end
end
for a = 3, #ARGV do
  local k, hash = 4 + (a - 3) * 2, ARGV[a]
  local holder = redis.call('HGET', KEYS[k + 1], hash)
  local time = barring(read_tombstone(redis.call('HGET', revoked, hash)), ARGV[2])
  if indexed[hash] then tell('held', hash, redis.call('HGET', KEYS[k], hash) or '') end
  if time then tell('barred', hash, text(time)) end
  if holder and not is_of(holder, uid) then tell('taken', hash, '') end
end
return reply

-- Writes the changes of one declaration, all of them or none, and tells the gates.
-- KEYS  meta, feed, revoked, then for each change: its shard of records, its shard of owners
-- ARGV  owner's uid, term, then for each change five:
--         op ('put' | 'reinstate' | 'revoke' | 'withdraw'), hash, uid of the key's owner,
--         the key's owner (stored form), packed record ('' where there is none)
-- reply done, seq, generation | revoked, hash | taken, hash | the refusals of fence_change
-- What is so already is not written again and takes no seq.
local meta, refusal = fence_change(KEYS[1], ARGV[1], ARGV[2])
if not meta then return refusal end
local feed, revoked = KEYS[2], KEYS[3]
local changed = false

local function each(visit)
  for i = 0, (#KEYS - 3) / 2 - 1 do
    local k, a = 4 + i * 2, 3 + i * 5
    local change = {
      records = KEYS[k], owners = KEYS[k + 1], op = ARGV[a], hash = ARGV[a + 1],
      uid = ARGV[a + 2], owner = ARGV[a + 3], record = ARGV[a + 4],
    }
    change.put = change.op == 'put' or change.op == 'reinstate'
    local reply = visit(change)
    if reply then return reply end
  end
end

local function is_anothers(change)
  local owner = redis.call('HGET', change.owners, change.hash)
  return owner and string.sub(owner, 1, #change.uid + 1) ~= change.uid .. ' '
end

refusal = each(function(change)
  if not change.put then return end
  if change.op == 'put' and redis.call('HEXISTS', revoked, change.hash) == 1 then
    return {'revoked', change.hash}
  end
  if is_anothers(change) then return {'taken', change.hash} end
end)
if refusal then return refusal end

-- Deletions come first: without memory, Redis refuses what needs some only as the first write.
each(function(change)
  if change.op == 'reinstate' then redis.call('HDEL', revoked, change.hash) end
  if change.put or is_anothers(change) then return end
  local removed = redis.call('HDEL', change.records, change.hash)
  redis.call('HDEL', change.owners, change.hash)
  if change.op == 'revoke' then redis.call('HSETNX', revoked, change.hash, text(now())) end
  if removed == 1 then
    meta.count = meta.count - 1
    changed = true
    publish(feed, meta, 'delete', change.hash, '')
  end
end)

each(function(change)
  if not change.put then return end
  if redis.call('HGET', change.owners, change.hash) ~= change.owner then
    redis.call('HSET', change.owners, change.hash, change.owner)
  end
  if redis.call('HGET', change.records, change.hash) ~= change.record then
    meta.count = meta.count + redis.call('HSET', change.records, change.hash, change.record)
    changed = true
    publish(feed, meta, 'put', change.hash, change.record)
  end
end)

if changed then save(KEYS[1], meta) end
return {'done', text(meta.seq), text(meta.generation)}

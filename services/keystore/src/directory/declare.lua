-- Makes what the directory holds of one ApiKey exactly what is declared, and reports it to the gates.
-- KEYS  meta, feed, revoked, the ApiKey's shard of held, then for each hash: its shard of records,
--       its shard of owners
-- ARGV  owner's uid, term, generation and seq that the writer has seen, number that the declaration
--       names, the ApiKey's uid, its stored form, account that its tombstones bar ('*': every one),
--       'last' or '', then for each hash four:
--         hash, op ('hold' | 'revoke' | 'withdraw'), packed record ('' unless held),
--         time of the tombstone to lift or ''
-- reply done, seq, generation, number, then for each refused hash: hash, 'taken' | the tombstone's time
--       | more, each hash of the index that was not listed | outdated, number | gone
--       | the refusals of fence_change
-- What is so already is not written again, and takes neither seq nor number.
local meta, refusal = fence_change(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if not meta then return refusal end
local feed, revoked, held = KEYS[2], KEYS[3], KEYS[4]
local uid, owner, account, is_last = ARGV[6], ARGV[7], ARGV[8], ARGV[9] == 'last'
if redis.call('HEXISTS', revoked, uid) == 1 then return {'gone'} end
local index = read_held(held, uid)
if text(index.number) ~= ARGV[5] then return {'outdated', text(index.number)} end

local changes, listed, indexed = {}, {}, {}
for i = 0, (#KEYS - 4) / 2 - 1 do
  local k, a = 5 + i * 2, 10 + i * 4
  local change = {
    records = KEYS[k], owners = KEYS[k + 1],
    hash = ARGV[a], op = ARGV[a + 1], record = ARGV[a + 2], lift = ARGV[a + 3],
  }
  local holder = redis.call('HGET', change.owners, change.hash)
  change.stored = redis.call('HGET', change.records, change.hash)
  change.is_ours = is_of(holder, uid)
  change.is_taken = holder and not change.is_ours
  changes[i + 1], listed[change.hash] = change, true
end
local more = unlisted(index, listed)
if more then return more end

-- Redis has evicted something where index, owners and records disagree. Only a rebuild knows what.
for _, hash in ipairs(index.hashes) do indexed[hash] = true end
local is_damaged = redis.call('HLEN', revoked) ~= meta.revoked
for _, change in ipairs(changes) do
  local is_held = change.is_ours or change.is_taken
  if not change.stored ~= not is_held or not change.is_ours ~= not indexed[change.hash] then
    is_damaged = true
  end
end
if is_damaged then
  meta.complete = false
  save(KEYS[1], meta)
  return {'interrupted'}
end

-- Plans every change before any is made.
local reply, hashes, tombstones, removals, puts = {}, {}, {}, {}, {}
local is_restricted, is_put_to = is_last, {}
for _, change in ipairs(changes) do
  local times = read_tombstone(redis.call('HGET', revoked, change.hash))
  local is_held = change.op == 'hold'
  if is_held then
    for _, barred in ipairs({'*', account}) do
      if times[barred] and text(times[barred]) == change.lift then
        times[barred], tombstones[change.hash] = nil, times
      end
    end
    local time = barring(times, account)
    is_held = not change.is_taken and not time
    if not is_held then
      reply[#reply + 1] = change.hash
      reply[#reply + 1] = change.is_taken and 'taken' or text(time)
    end
  elseif change.op == 'revoke' and not change.is_taken and not barring(times, account) then
    times[account], tombstones[change.hash] = now(), times
    is_restricted = true
  end
  if is_held then hashes[#hashes + 1] = change.hash end
  if is_held and change.stored ~= change.record then
    puts[#puts + 1], is_put_to[change.records] = change, true
    is_restricted = is_restricted or change.stored
  elseif not is_held and change.is_ours then
    removals[#removals + 1] = change
    is_restricted = true
  end
end

local function remove(change)
  meta.count = meta.count - redis.call('HDEL', change.records, change.hash)
  meta.owners = meta.owners - redis.call('HDEL', change.owners, change.hash)
  publish(feed, meta, 'delete', change.hash, '')
end

-- A full Redis takes every restriction; a declaration that only adds it refuses.
if is_restricted then write_though_full(KEYS[1]) end
-- A hash that loses its last field is deleted, and cannot be written again while the slot of a
-- Redis Cluster moves: where something is put, it is put before anything is removed.
for _, change in ipairs(removals) do
  if not is_put_to[change.records] then remove(change) end
end
for _, change in ipairs(puts) do
  meta.count = meta.count + redis.call('HSET', change.records, change.hash, change.record)
  if not change.is_ours then
    meta.owners = meta.owners + redis.call('HSET', change.owners, change.hash, owner)
  end
  publish(feed, meta, 'put', change.hash, change.record)
end
for _, change in ipairs(removals) do
  if is_put_to[change.records] then remove(change) end
end

local content = string.sub(owner, #uid + 2) .. '\n' .. table.concat(hashes)
local is_same = content == index.content or #hashes == 0 and not index.content
local is_changed = is_last or not is_same or #puts > 0 or next(tombstones) ~= nil
local number = index.number
if is_changed then
  -- Greater than every number of an earlier generation, so that none is used twice.
  number = math.max(number, meta.generation) + 1
  if is_last then
    meta.revoked = meta.revoked + redis.call('HSET', revoked, uid, text(now()))
    meta.held = meta.held - redis.call('HDEL', held, uid)
  else
    meta.held = meta.held + redis.call('HSET', held, uid, text(number) .. ' ' .. content)
  end
  for hash, times in pairs(tombstones) do
    if next(times) then
      meta.revoked = meta.revoked + redis.call('HSET', revoked, hash, tombstone_text(times))
    end
  end
  for hash, times in pairs(tombstones) do
    if not next(times) then meta.revoked = meta.revoked - redis.call('HDEL', revoked, hash) end
  end
  save(KEYS[1], meta)
end
return {'done', text(meta.seq), text(meta.generation), text(number), unpack(reply)}

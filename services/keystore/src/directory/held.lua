-- The index: what the directory holds of one owner, by its uid. The number of its last change, a
-- space, namespace/name, a newline, then the hashes, 32 bytes each.

-- Reads the entry of an owner. One that is missing or cannot be read has number 0 and no hashes: what the owner holds
-- all the same shows that it is wrong.
local function read_held(key, uid)
  local stored = redis.call('HGET', key, uid) or ''
  local number, content = string.match(stored, '^(%d+) (.*)$')
  local bytes = content and string.match(content, '^[^\n]*\n(.*)$')
  if not bytes or #bytes % 32 ~= 0 then return {number = 0, hashes = {}} end
  local hashes = {}
  for i = 1, #bytes, 32 do hashes[#hashes + 1] = string.sub(bytes, i, i + 31) end
  return {number = tonumber(number), content = content, hashes = hashes}
end

-- The reply that asks for the hashes of the index that a call did not list; nil: it listed all. A
-- script may touch only the keys that it names.
local function unlisted(index, listed)
  local reply = {'more'}
  for _, hash in ipairs(index.hashes) do
    if not listed[hash] then reply[#reply + 1] = hash end
  end
  return #reply > 1 and reply or nil
end

-- Whether a stored owner is the one with this uid.
local function is_of(owner, uid)
  return owner and string.sub(owner, 1, #uid + 1) == uid .. ' '
end

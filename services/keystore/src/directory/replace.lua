-- Functions that make a hash hold exactly some fields.

-- Returns those of `wanted` that are missing or differ, and the fields that are too many.
local function differences(key, wanted)
  local stored, puts, removals = {}, {}, {}
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    stored[fields[i]] = fields[i + 1]
    if not wanted[fields[i]] then removals[#removals + 1] = fields[i] end
  end
  for field, value in pairs(wanted) do
    if stored[field] ~= value then puts[field] = value end
  end
  return puts, removals
end

-- Puts before it removes: a hash that loses its last field is deleted, and cannot be written again
-- while the slot of a Redis Cluster moves.
local function replace(key, puts, removals)
  for field, value in pairs(puts) do redis.call('HSET', key, field, value) end
  for _, field in ipairs(removals) do redis.call('HDEL', key, field) end
end

local function make_exactly(key, wanted) replace(key, differences(key, wanted)) end

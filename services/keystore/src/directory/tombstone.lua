-- Tombstones, by hash: '<account>=<ms>' for each account under which the hash was revoked, where '*'
-- is every account. The tombstone of an owner, by its uid, is a plain number.

-- Time of a tombstone that cannot be read: it bars everybody, and never grows old. 2100-01-01.
local UNREADABLE = 4102444800000

-- The times of a stored tombstone by account. false: no tombstone.
local function read_tombstone(stored)
  if not stored then return {} end
  if tonumber(stored) then return {['*'] = tonumber(stored)} end
  local times = {}
  for account, time in string.gmatch(stored, '([^= ]+)=(%d+)') do
    times[account] = tonumber(time)
  end
  if not next(times) then times['*'] = UNREADABLE end
  return times
end

-- The latest time that bars an account; nil: no time does.
local function barring(times, account)
  local everyone, own = times['*'], times[account]
  return everyone and own and math.max(everyone, own) or everyone or own
end

local function tombstone_text(times)
  local words = {}
  for account, time in pairs(times) do words[#words + 1] = account .. '=' .. text(time) end
  return table.concat(words, ' ')
end

-- State of an account's windows, without changing anything. The only clock is TIME.
-- KEYS  minute: list of accepted times in us, oldest first
--       day:    '<UTC day since the epoch> <accepted in it>'
-- ARGV  limit of the minute
-- reply as the limiter's, and nothing is accepted: 0, now in us,
--       accepted within the minute, us until its next slot opens,
--       accepted within the day, us until the day ends
-- The limiter would first drop what is too old, or too far ahead where the clock was set back; here it is left out.
local WINDOW = 60000000
local DAY = 86400000000
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function entry(index) return tonumber(redis.call('LINDEX', KEYS[1], index)) end

-- Number of entries that are at most `moment`; the list is sorted.
local function until_moment(moment, length)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    if entry(middle) <= moment then low = middle + 1 else high = middle end
  end
  return low
end

local length = redis.call('LLEN', KEYS[1])
local first, last = until_moment(now - WINDOW, length), until_moment(now + WINDOW, length)
local minute, opens = last - first, 0
if minute > 0 then
  opens = entry(first + math.max(0, minute - tonumber(ARGV[1]))) + WINDOW - now
end

local today = math.floor(now / DAY)
local day, count = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%d+)$')
day, count = tonumber(day), tonumber(count)
-- A clock set back across midnight goes on with the day that had begun.
if day ~= today and day ~= today + 1 then day, count = today, 0 end
return string.format('0 %d %d %d %d %d', now, minute, opens, count, (day + 1) * DAY - now)

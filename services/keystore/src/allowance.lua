-- Counts one more within a sliding window, or returns how long it is full. The only clock is TIME.
-- KEYS  list of times in us, oldest first
-- ARGV  number allowed within the window, the window in us
-- reply {0, the time that was counted}, or {us until the window has room, 0}
local most, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function oldest() return tonumber(redis.call('LINDEX', KEYS[1], 0)) end

local first = oldest()
-- Times ahead of the clock are from before it was set back, and would count for longer than they should.
while first and (first <= now - window or first > now) do
  redis.call('LPOP', KEYS[1])
  first = oldest()
end
if redis.call('LLEN', KEYS[1]) >= most then return {first + window - now, 0} end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000))
return {0, now}

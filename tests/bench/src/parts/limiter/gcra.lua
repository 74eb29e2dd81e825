-- The generic cell rate algorithm (GCRA) for one window, in the usual form: one time for each key,
-- the earliest at which a steady stream of requests would be due.
-- KEYS  the account's time of this window
-- ARGV  requests in a period, the period in us
-- reply accepted (1 | 0), requests left, us until one is accepted, us until all are left again
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, period = tonumber(ARGV[1]), tonumber(ARGV[2])
local interval = period / limit
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + interval
local opens = due - period
if opens > now then
  return {0, 0, math.ceil(opens - now), math.ceil(due - interval - now)}
end
redis.call('SET', KEYS[1], string.format('%.3f', due), 'PX', math.ceil((due - now) / 1000))
return {1, math.floor((now - opens) / interval), 0, math.ceil(due - now)}

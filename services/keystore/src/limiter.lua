-- Checks both windows of an account and charges both, or neither. The only clock is TIME.
-- KEYS  minute: list of accepted times in us, oldest first
--       day:    '<UTC day since the epoch> <accepted in it>'
-- ARGV  limit of the minute, limit of the day (0 and 0: only charges what is owed)
--       then, where a gate has admitted requests while it could not ask, what it owes for them:
--       UTC day since the epoch, requests in it, and for each moment of the last minute:
--       its age in us, requests in it
-- reply one text of six numbers or more, which costs a client a fifth of what a list of them costs to read:
--       accepted (1 | 0), now in us,
--       accepted within the minute, us until its next slot opens,
--       accepted within the day, us until the day ends
--       then, where only the minute is full, ms until each of its next slots opens, rounded up
-- A slot of the minute opens when the entry that blocks, or will block, is a window old.
local WINDOW = 60000000
local DAY = 86400000000
-- Most slots in a reply: enough for those that wait at once, and bounds the memory of the gates.
local SLOTS = 120
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local minute_limit, day_limit = tonumber(ARGV[1]), tonumber(ARGV[2])

local function entry(index) return tonumber(redis.call('LINDEX', KEYS[1], index)) end

-- The key is the account's, whatever the plan: entries leave by age alone, so that a key of a
-- smaller plan does not shorten the list for one of a larger.
local oldest = entry(0)
while oldest and oldest <= now - WINDOW do
  redis.call('LPOP', KEYS[1])
  oldest = entry(0)
end
-- Entries from more than a window ahead: the clock was set back, and they would block for longer.
local newest = oldest and entry(-1)
while newest and newest > now + WINDOW do
  redis.call('RPOP', KEYS[1])
  newest = entry(-1)
end

local today = math.floor(now / DAY)
local day, count = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%d+)$')
day, count = tonumber(day), tonumber(count)
-- A clock set back across midnight goes on with the day that had begun.
if day ~= today and day ~= today + 1 then day, count = today, 0 end

-- Adds times, oldest first, where they belong: the list stays sorted, though a gate reports later what it admitted, and
-- a clock may be set back.
local function add(moments)
  local first = moments[1]
  while newest and first and newest > first do
    moments[#moments + 1] = newest
    redis.call('RPOP', KEYS[1])
    newest = entry(-1)
  end
  table.sort(moments)
  for _, moment in ipairs(moments) do
    -- Lua would print these as 1.7e+15.
    redis.call('RPUSH', KEYS[1], string.format('%.0f', moment))
    newest = moment
  end
end

if ARGV[3] then
  local owed = {}
  for i = 5, #ARGV, 2 do
    local moment = now - tonumber(ARGV[i])
    for _ = 1, moment > now - WINDOW and tonumber(ARGV[i + 1]) or 0 do
      owed[#owed + 1] = moment
    end
  end
  table.sort(owed)
  add(owed)
  if tonumber(ARGV[3]) == day then count = count + tonumber(ARGV[4]) end
end

local minute = redis.call('LLEN', KEYS[1])
local accepted = 0
if minute < minute_limit and count < day_limit then
  accepted = 1
  minute, count = minute + 1, count + 1
  add({now})
end
if accepted == 1 or ARGV[3] then
  redis.call('PEXPIRE', KEYS[1], 2 * WINDOW / 1000)
  redis.call('SET', KEYS[2], day .. ' ' .. count, 'PX', 2 * DAY / 1000)
end

local blocking, opens = math.max(0, minute - minute_limit), 0
if minute > 0 and minute_limit > 0 then
  opens = entry(blocking) + WINDOW - now
end
local reply = string.format(
  '%d %d %d %d %d %d', accepted, now, minute, opens, count, (day + 1) * DAY - now)
if accepted == 1 or count >= day_limit then return reply end

-- One slot opens with each entry from the blocking one on. Where the user may not yet run LRANGE, as after an upgrade
-- without the new ACL lines, all refusals are told the first.
local waits = redis.pcall('LRANGE', KEYS[1], blocking, blocking + SLOTS - 1)
for i, moment in ipairs(waits) do
  waits[i] = math.ceil((moment + WINDOW - now) / 1000)
end
if not waits[1] then return reply end
return reply .. ' ' .. table.concat(waits, ' ')

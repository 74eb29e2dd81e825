-- Renews a gate's lease, which also acknowledges every change up to seq.
-- KEYS  gates
-- ARGV  pod, pod's uid, generation, seq, grace in ms, mode, start and count
-- reply the server's time (seconds, microseconds), number of gates that may be serving, the start to exceed or 0
-- start is the time at which the process began, or 0 before it knows; count rises with each renewal. A renewal that was
-- delayed until a later one of the pod was carried out would report of a process what is no longer so.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local start, count = tonumber(ARGV[7]), tonumber(ARGV[8])
local function latest(text)
  local lease = cjson.decode(text)
  if lease.uid ~= ARGV[2] then return 0, 0 end
  return lease.start or 0, lease.count or 0
end
local stored = redis.call('HGET', KEYS[1], ARGV[1])
local readable, latest_start, latest_count = pcall(latest, stored or '')
if not readable then latest_start, latest_count = 0, 0 end
if start == 0 or start < latest_start or start == latest_start and count <= latest_count then
  return {time[1], time[2], 0, math.max(latest_start, 1)}
end
-- Redis without memory refuses HSET only as a script's first write: HDEL comes before it. No pod has
-- an empty name; deleting the only lease would delete the hash, which cannot be written again while
-- the slot of a Redis Cluster moves.
redis.call('HDEL', KEYS[1], '')
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({
  uid = ARGV[2], generation = tonumber(ARGV[3]), seq = tonumber(ARGV[4]),
  grace = tonumber(ARGV[5]), renewed = now,
  mode = ARGV[6], start = start, count = count,
}))

-- A gate that is silent may serve until its grace and ten seconds are over. What another version
-- has written must not keep this gate from renewing.
local function may_serve(text)
  local lease = cjson.decode(text)
  return lease.renewed + lease.grace + 10000 > now
end
local serving = 0
local gates = redis.call('HGETALL', KEYS[1])
for i = 2, #gates, 2 do
  local readable, serves = pcall(may_serve, gates[i])
  if readable and serves then serving = serving + 1 end
end
return {time[1], time[2], serving, 0}

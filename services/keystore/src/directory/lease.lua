-- Renews a gate's lease, which also acknowledges every change up to seq.
-- KEYS  gates
-- ARGV  pod, pod's uid, generation, seq, grace in ms, mode
-- reply the server's time: seconds, microseconds
local time = redis.call('TIME')
-- HDEL first, or a full Redis could not be acknowledged.
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode({
  uid = ARGV[2], generation = tonumber(ARGV[3]), seq = tonumber(ARGV[4]),
  grace = tonumber(ARGV[5]), renewed = time[1] * 1000 + math.floor(time[2] / 1000),
  mode = ARGV[6],
}))
return time

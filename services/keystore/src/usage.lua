-- Adds to an account's usage on one day.
-- KEYS  hash: 'accepted' and 'limited' -> requests, key id -> last use in ms
-- ARGV  accepted, limited, ms for which the hash is kept, then for each key: its id, its last use in ms
-- reply nothing
for index, field in ipairs({'accepted', 'limited'}) do
  if ARGV[index] ~= '0' then redis.call('HINCRBY', KEYS[1], field, ARGV[index]) end
end
-- Several gates report the same key, in any order.
for index = 4, #ARGV, 2 do
  local known = redis.call('HGET', KEYS[1], ARGV[index])
  if not known or tonumber(known) < tonumber(ARGV[index + 1]) then
    redis.call('HSET', KEYS[1], ARGV[index], ARGV[index + 1])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])

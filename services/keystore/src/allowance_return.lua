-- Takes a time that was counted out of an allowance again.
-- KEYS  list of times in us, oldest first
-- ARGV  the time
redis.call('LREM', KEYS[1], -1, ARGV[1])

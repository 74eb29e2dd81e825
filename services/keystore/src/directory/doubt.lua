-- Marks a directory that is before a position at which it was seen, so that the next claim rebuilds it.
-- What a later leader has claimed is for that one to judge.
-- KEYS  meta
-- ARGV  owner's uid, term of the latest claim that the caller knows, generation and seq that it has seen
-- reply done
local meta = read_meta(KEYS[1])
if meta and meta.schema == 1 and meta.owner == ARGV[1] and meta.term <= tonumber(ARGV[2]) then
  went_back(KEYS[1], meta, ARGV[3], ARGV[4])
end
return {'done'}

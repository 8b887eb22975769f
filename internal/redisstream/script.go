package redisstream

// truth is the beginning of both scripts: what the stream really holds. The mark is not believed
// beyond the stream's own last id, which survives trimming but not DEL or eviction: whoever removed
// the stream and left the mark has removed the data.
const truth = `
local stream, mark = KEYS[1], KEYS[2]
-- Positions are decimal text all the way: a Lua number is a double.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local m = redis.call('HMGET', mark, 'lineage', 'position', 'messageId', 'hash')
local position, last, hash = m[2] or '0', m[3] or '', m[4] or ''
local top = '0'
if redis.call('TYPE', stream)['ok'] ~= 'none' then
  local info = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then top = string.match(info[i + 1], '^%d+') end
  end
end
if less(top, position) then position, last, hash = top, '', '' end
`

// MarkScript reads the mark. KEYS: stream, mark. It answers what ParseMark reads.
const MarkScript = truth + `
return {top, m[1] or '', position, last, hash}
`

// AppendScript adds a batch. KEYS: stream, mark. ARGV: see Encoder. It answers what ParseReply
// reads.
//
// An error in the middle must not leave entries without a mark, so XADD is called protected, and
// the mark is moved over what was added before.
const AppendScript = truth + `
local lineage, expect, maxlen, count = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if m[1] and m[1] ~= lineage then return {'lineage', 0, 0, position, m[1]} end
if less(position, top) then return {'ahead', 0, 0, position, top} end
if expect ~= '' and expect ~= position then return {'moved', 0, 0, position, expect} end

local code, detail, accepted, repeated, added = 'ok', '', 0, 0, false
local at = 5
for _ = 1, count do
  local pos, id, n = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local entry = pos .. '-0'
  if less(position, pos) then
    local reply
    if maxlen == '' then
      reply = redis.pcall('XADD', stream, entry, unpack(ARGV, at + 3, at + 2 + n))
    else
      reply = redis.pcall('XADD', stream, 'MAXLEN', '~', maxlen, entry, unpack(ARGV, at + 3, at + 2 + n))
    end
    if type(reply) == 'table' and reply['err'] then
      code, detail = 'error', reply['err']
      break
    end
    position, last, hash, added = pos, id, redis.sha1hex(hash .. id), true
  else
    local found = redis.call('XRANGE', stream, entry, entry)[1]
    if found then
      local theirs = ''
      for i = 1, #found[2], 2 do
        if found[2][i] == 'messageId' then theirs = found[2][i + 1] end
      end
      if theirs ~= id then
        code, detail = 'foreign', theirs
        break
      end
    end
    repeated = repeated + 1
  end
  accepted = accepted + 1
  at = at + 3 + n
end
if added then
  redis.call('HSET', mark, 'lineage', lineage, 'position', position, 'messageId', last, 'hash', hash)
end
return {code, accepted, repeated, position, detail}
`

import { PAD_LIMITS } from '../pad.ts';
import { EXPIRE, PARTS } from './parts.ts';
import { LIST, STATE } from './state.ts';

const REFUSE = `
local mark = fenced(grant, settles, string.sub(id, 13))
if mark then
  if s.open then dropOpen() end
  return {'FENCED', mark}
end
`;

/**
 * For what a full Redis must take all the same, since it frees memory or keeps somebody out. Redis refuses what may need
 * memory only as a script's first write; this one needs none, and takes away a field that never is.
 */
const ALSO_WHEN_FULL = `
redis.call('HDEL', META, '')
`;

/**
 * 8 bytes of all contents, 9 the entries' common members (JSON, from author on), 10 how many contents there are in all,
 * 11 how many came before, 12… contents (JSON strings). A batch too large for one call comes in parts under one request
 * id (MORE), and is seen once the last has come; LOST where it must begin again.
 */
export const APPEND = `
${PARTS}
${REFUSE}
local total, before, count = tonumber(ARGV[10]), tonumber(ARGV[11]), #ARGV - 11
local laid = s.open and s.open.laid or 0
if laid ~= before then
  -- Sent twice by the driver.
  if laid == before + count then return {'MORE'} end
  return {'LOST'}
end
local bytes = s.bytes + tonumber(ARGV[8])
if s.seq - s.base + total > ${PAD_LIMITS.entries} then return {'TOO_LARGE', 'PAD_ENTRIES'} end
if bytes > ${PAD_LIMITS.bytes} then return {'TOO_LARGE', 'PAD_BYTES'} end
begin(string.sub(id, 1, 12), grant)
if s.open then at = s.open.at end
local thread = math.max(grant, s.last)
local tail = ',"thread_seq":' .. thread .. ',"created_at":"' .. at .. '",' .. ARGV[9] .. ',"content":'
local values, value = {}, nil
for index = 1, count do
  local number = before + index
  value = '{"seq":' .. (s.seq + number) .. ',"rev":' .. (s.rev + number) .. tail .. ARGV[11 + index] .. '}'
  values[#values + 1] = value
  if #values == 200 or index == count then
    redis.call('RPUSH', ENTRIES, unpack(values))
    values = {}
  end
end
if before + count < total then
  local open = id .. ' ' .. (before + count) .. ' ' .. (now + 2000) .. ' ' .. at
  redis.call('HSET', META, 'epoch', s.epoch, 'rev', s.rev, 'seq', s.seq, 'tag', s.tag, 'tags', s.tags, 'open', open)
  expire(ttl, now)
  return {'MORE'}
end
if s.open then redis.call('HDEL', META, 'open') end
s.seq, s.rev, s.last = s.seq + total, s.rev + total, thread
redis.call('HSET', META, 'epoch', s.epoch, 'rev', s.rev, 'seq', s.seq, 'bytes', bytes, 'last', s.last, 'tag', s.tag, 'tags', s.tags)
local done = result(total)
remember(done)
expire(ttl, now)
publish('entry', total == 1 and value)
return {'DONE', done}
`;

/**
 * 8 '' or '=' and the expected etag, 9 the common members, 10 the text (a JSON string). A long text is not among the arguments:
 * a script would copy it, which takes milliseconds. It lies under a seventh key, behind room for its members and before
 * the closing brace; LOST where it does not. Whatever else is answered, it stands there no more (BUSY alone asks for it again).
 */
export const SET_CONTENT = `
local DRAFT = KEYS[7]
local function setContent()
${PARTS}
${REFUSE}
local etag = s.there and s.epoch .. '-' .. s.version or ''
if ARGV[8] ~= '' and ARGV[8] ~= '=' .. etag then return {'ETAG_DIFFERS', etag} end
if DRAFT and redis.call('EXISTS', DRAFT) == 0 then return {'LOST'} end
begin(string.sub(id, 1, 12), grant)
s.last = math.max(grant, s.last)
s.rev, s.version = s.rev + 1, s.version + 1
local head = '{"version":' .. s.version .. ',"rev":' .. s.rev .. ',"thread_seq":' .. s.last .. ',"updated_at":"' .. at .. '",' .. ARGV[9] .. ',"content":'
local value = not DRAFT and head .. ARGV[10] .. '}'
if value then
  redis.call('SET', CONTENT, value)
else
  redis.call('SETRANGE', DRAFT, 0, head)
  redis.call('PERSIST', DRAFT)
  redis.call('UNLINK', CONTENT)
  redis.call('RENAME', DRAFT, CONTENT)
end
redis.call('HSET', META, 'epoch', s.epoch, 'rev', s.rev, 'version', s.version, 'there', '1', 'crev', s.rev, 'last', s.last, 'tag', s.tag, 'tags', s.tags)
local done = result(1)
remember(done)
expire(ttl, now)
publish('content', value)
return {'DONE', done}
end
local answer = setContent()
if DRAFT and answer[1] ~= 'BUSY' then redis.call('UNLINK', DRAFT) end
return answer
`;

/** 8 'CONTENT', 'ENTRIES' or 'ALL', 9 who clears (a participant's id or ''). */
export const CLEAR = `
${PARTS}
if not s.epoch then return {'DONE', ''} end
${ALSO_WHEN_FULL}
${REFUSE}
local what, actor, changed = ARGV[8], ARGV[9], false
local function change(prefix)
  if not changed then begin() end
  changed = true
  s.last = math.max(grant, s.last)
  s.rev = s.rev + 1
  redis.call('HSET', META, prefix .. 'rev', s.rev, prefix .. 'actor', actor, prefix .. 'thread', s.last)
end
if s.there and what ~= 'ENTRIES' then
  change('cc')
  redis.call('UNLINK', CONTENT)
  redis.call('HSET', META, 'there', '0')
end
if s.seq > s.base and what ~= 'CONTENT' then
  change('ec')
  redis.call('UNLINK', ENTRIES)
  redis.call('HSET', META, 'base', s.seq, 'bytes', 0)
end
local done = result(0)
if changed then
  redis.call('HSET', META, 'rev', s.rev, 'last', s.last, 'tag', s.tag, 'tags', s.tags)
  remember(done)
  expire(ttl, now)
  publish()
end
return {'DONE', done}
`;

/** The first result under an idempotency key: 1 key, 2 input hash. */
export const REPLAY = `
${STATE}
local record = s.epoch and redis.call('HGET', IDEM, 'k:' .. ARGV[1])
if not record then return {'NONE'} end
local time = redis.call('TIME')
local expiry, was, result = string.match(record, '^(%d+) (%S*) (.*)$')
if tonumber(expiry) <= time[1] * 1000 + math.floor(time[2] / 1000) then return {'NONE'} end
if was ~= ARGV[2] then return {'KEY_REUSED'} end
return {'DONE', result}
`;

/**
 * 1 thread seq, 2 a new mark. Where the fence is not known it stays so: a late raise must not pass for the latest. The
 * note is where the list stands: whatever is appended from now on stands at this change or behind it.
 */
export const RAISE = `
${STATE}
${LIST}
local thread = tonumber(ARGV[1])
if not s.epoch and not s.mark then return {'DONE', ''} end
${ALSO_WHEN_FULL}
redis.call('HSET', META, 'mark', ARGV[2])
if s.fence then redis.call('HSET', META, 'fence', math.max(s.fence, thread)) end
if not s.epoch then
  redis.call('PEXPIRE', META, 60000)
  return {'DONE', ''}
end
local seq, rev = s.seq, s.rev
if s.last >= thread then seq, rev = beforeThread(thread) end
redis.call('HSET', META, 'n:' .. ARGV[1], seq .. ':' .. rev)
return {'DONE', s.epoch, s.last, s.seq, s.rev}
`;

/**
 * Where a raise that came in time found positions at or above its own: the record is older than the state (restored), and its
 * heads say nothing of what stands in the list. 1 thread seq, 2… what the raise answered: epoch, last, seq, rev. The change
 * stands at the list's end of that moment; \`over\` is up to where positions of the thread decide nothing.
 */
export const NOTE = `
${STATE}
if s.epoch ~= ARGV[2] then return {'DONE'} end
${ALSO_WHEN_FULL}
redis.call('HSET', META, 'n:' .. ARGV[1], ARGV[4] .. ':' .. ARGV[5], 'over', math.max(s.over, tonumber(ARGV[3])))
return {'DONE'}
`;

/** 1 channel. Large values are freed behind the scenes, and first: a full Redis takes the tombstone only then. */
export const PURGE = `
local GONE, META, CONTENT, ENTRIES, IDEM, IMPORT = unpack(KEYS)
redis.call('UNLINK', META, CONTENT, ENTRIES, IDEM, IMPORT)
redis.call('SET', GONE, '1', 'EX', 3600)
redis.call('PUBLISH', ARGV[1], '{"gone":true}')
return {'DONE'}
`;

/** 1 ttl (see EXPIRE), 2 'NEW' if it was changed. */
export const RETIME = `
${STATE}
${EXPIRE}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
${ALSO_WHEN_FULL}
if ARGV[2] == 'NEW' then
  local ttl, version = timeToLive(ARGV[1])
  local later, _, upTo = string.match(s.retimed or '', '^(%d+) (%d+) (%d+)$')
  if not later or tonumber(upTo) < now or version >= tonumber(later) then
    s.retimed = version .. ' ' .. ttl .. ' ' .. now + 15000
    redis.call('HSET', META, 'retimed', s.retimed)
    if not s.epoch then redis.call('PEXPIRE', META, 60000) end
  end
end
if s.epoch then expire(ARGV[1], now) end
return {'DONE'}
`;

import { FENCE, TAG } from './parts.ts';
import { STATE } from './state.ts';

/** 1 request id, 2 thread seq, 3 the mark it settles or ''. What was laid aside does not outlive a refusal. */
const BEFORE = `
${STATE}
if s.epoch then return {'PRESENT'} end
${FENCE}
local id, grant, settles = unpack(ARGV, 1, 3)
grant = tonumber(grant)
local mark = fenced(grant, settles, string.sub(id, 13))
local function refuse(token)
  if token ~= '' and redis.call('LINDEX', IMPORT, 0) == token then redis.call('UNLINK', IMPORT) end
  return {'FENCED', mark}
end
`;

/**
 * A list too large for one call is laid beside first. After those of every import: 4 token, 5 how many values stand
 * there already, 6… values.
 */
export const STAGE = `
${BEFORE}
local token, before = ARGV[4], tonumber(ARGV[5])
if mark then return refuse(token) end
local length = redis.call('LLEN', IMPORT)
if before == 0 then
  if length > 0 then return {'BUSY'} end
  redis.call('RPUSH', IMPORT, token)
elseif length ~= before + 1 or redis.call('LINDEX', IMPORT, 0) ~= token then
  return {'BUSY'}
end
redis.call('RPUSH', IMPORT, unpack(ARGV, 6))
redis.call('PEXPIRE', IMPORT, 10000)
return {'DONE'}
`;

/**
 * What an earlier version left becomes the state, if there never was any. After those of every import: 4 channel,
 * 5 content or '', 6 count of entries, 7 their bytes, 8 token if they were laid aside or '', 9… entries. A long content lies
 * under a seventh key instead, and does not stay there; LOST where it does not lie there. Does not expire until the old
 * keys are gone.
 */
export const IMPORT = `
local DRAFT = KEYS[7]
local function import()
${BEFORE}
${TAG}
local channel, content, count, bytes, token = unpack(ARGV, 4, 8)
count = tonumber(count)
if mark then return refuse(token) end
if DRAFT and redis.call('EXISTS', DRAFT) == 0 then return {'LOST'} end
if token ~= '' then
  if redis.call('LLEN', IMPORT) ~= count + 1 or redis.call('LPOP', IMPORT) ~= token then return {'BUSY'} end
  redis.call('RENAME', IMPORT, ENTRIES)
  redis.call('PERSIST', ENTRIES)
elseif count > 0 then
  redis.call('RPUSH', ENTRIES, unpack(ARGV, 9))
end
begin(string.sub(id, 1, 12), grant)
s.seq, s.rev = count, count
if DRAFT or content ~= '' then
  s.rev = count + 1
  if DRAFT then
    redis.call('PERSIST', DRAFT)
    redis.call('RENAME', DRAFT, CONTENT)
  else
    redis.call('SET', CONTENT, content)
  end
  redis.call('HSET', META, 'version', 1, 'there', '1', 'crev', s.rev)
end
redis.call('HSET', META, 'epoch', s.epoch, 'rev', s.rev, 'seq', s.seq, 'bytes', bytes, 'last', grant, 'tag', s.tag, 'tags', s.tags, 'hold', 'open')
redis.call('PUBLISH', channel, '{"epoch":"' .. s.epoch .. '","tag":"' .. s.tag .. '","position":' .. s.rev .. ',"seq":' .. s.seq .. '}')
return {'DONE'}
end
local answer = import()
if DRAFT then redis.call('UNLINK', DRAFT) end
return answer
`;

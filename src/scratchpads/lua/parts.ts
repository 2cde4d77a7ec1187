import { STATE } from './state.ts';

/**
 * What every write does around its own part. Arguments: 1 request id (12 random characters of the operation, which also
 * name an epoch if one is made, and 12 of this attempt at it, which also name a mark), 2 idempotency key or '', 3 input
 * hash, 4 thread seq of the grant, 5 the mark it settles or '', 6 ttl (see EXPIRE), 7 channel, 8… the write's own.
 */
const BEFORE = `
${STATE}
local id, key, hash, grant, settles, ttl, channel = unpack(ARGV, 1, 7)
grant = tonumber(grant)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The same again, by key or (sent twice by the driver, or left over from an earlier attempt) by operation: the first
-- result again.
local field = key ~= '' and 'k:' .. key or 'r:' .. string.sub(id, 1, 12)
if s.epoch then
  local record = redis.call('HGET', IDEM, field)
  if record then
    local expiry, was, result = string.match(record, '^(%d+) (%S*) (.*)$')
    if tonumber(expiry) > now then
      if was ~= hash then return {'KEY_REUSED'} end
      return {'DONE', result}
    end
  end
end
`;

/**
 * While a batch comes in parts all other writes wait; one that does not go on in time is dropped. Its parts stand in the
 * list behind `seq`, where no script looks.
 */
const OPEN = `
local function dropOpen()
  if s.seq > s.base then redis.call('LTRIM', ENTRIES, 0, s.seq - s.base - 1) else redis.call('UNLINK', ENTRIES) end
  redis.call('HDEL', META, 'open')
  s.open = nil
end
if s.open and s.open.token ~= id then
  if s.open.deadline > now then return {'BUSY'} end
  dropOpen()
end
`;

/**
 * No change of membership since a grant that bears the present mark: every raise makes another. So where the fence is
 * above it, what raised it was rolled back, and the notes above it are of changes that never were. Another server may
 * have lost the last raise in a fail-over: there fence and mark are unknown until they are settled.
 */
export const FENCE = `
-- Another after each fail-over or restart.
local server
local function serverTag()
  if not server then
    local info = redis.pcall('INFO', 'replication')
    server = type(info) == 'string' and string.match(info, 'master_replid:(%w%w%w%w%w%w%w%w)') or '00000000'
  end
  return server
end
local function dropNotes(above, upTo)
  if upTo - above > 5000 then
    for _, name in ipairs(redis.call('HKEYS', META)) do
      local thread = string.match(name, '^n:(%d+)$')
      if thread and tonumber(thread) > above then redis.call('HDEL', META, name) end
    end
    return
  end
  for thread = above + 1, upTo do redis.call('HDEL', META, 'n:' .. thread) end
end
-- nil, or the mark to settle.
local function fenced(grant, settles, candidate)
  if s.fencer ~= serverTag() then
    if s.fence then redis.call('HDEL', META, 'fence') end
    s.fence, s.mark = nil, nil
  end
  if s.mark and settles == s.mark then
    if not s.fence or s.fence > grant then
      if s.fence then dropNotes(grant, s.fence) end
      s.fence = grant
      redis.call('HSET', META, 'fence', grant)
    end
    return nil
  end
  if s.fence and grant >= s.fence then return nil end
  if not s.mark then
    s.mark = candidate
    redis.call('HSET', META, 'mark', s.mark, 'fencer', serverTag())
    if not s.epoch then redis.call('PEXPIRE', META, 60000) end
  end
  return s.mark
end
`;

/** Which server takes this write is kept, so that what another lost in a fail-over is known as such. Follows FENCE. */
export const TAG = `
local function begin(epoch, thread)
  if not s.epoch then
    s.epoch = epoch
    redis.call('HSET', META, 'start', thread)
    redis.call('PERSIST', META)
  end
  local tag = serverTag()
  if tag ~= s.tag then
    s.tag = tag
    s.tags = string.sub(s.tags, -600) .. tag .. ':' .. s.rev .. ','
  end
end
`;

/**
 * All keys of a pad expire together. After a legacy import (hold) nothing expires for half a minute: by then the old
 * key is gone and whoever still holds a grant from before it is refused, so that what expired is not imported again.
 * A time to live comes as seconds and version. A new one is kept (`<version> <seconds> <until when, Unix ms>`) as long as
 * a write may come that was authorised before it, and holds for those.
 */
export const EXPIRE = `
local function timeToLive(argument)
  local seconds, version = string.match(argument, '^(%d+) (%d+)$')
  return tonumber(seconds), tonumber(version)
end
local function expire(argument, now)
  local ttl, version = timeToLive(argument)
  if s.retimed then
    local later, seconds, upTo = string.match(s.retimed, '^(%d+) (%d+) (%d+)$')
    if tonumber(upTo) < now then
      redis.call('HDEL', META, 'retimed')
    elseif version < tonumber(later) then
      ttl = tonumber(seconds)
    end
  end
  local day = now + 86400000
  if ttl > 0 then
    local at = now + ttl * 1000
    local hold = redis.call('HGET', META, 'hold')
    if hold == 'open' then
      hold = now + 30000
      redis.call('HSET', META, 'hold', hold)
    end
    if hold then at = math.max(at, tonumber(hold)) end
    redis.call('HSET', META, 'expires', '1')
    redis.call('PEXPIREAT', META, at)
    redis.call('PEXPIREAT', CONTENT, at)
    redis.call('PEXPIREAT', ENTRIES, at)
    redis.call('PEXPIREAT', IDEM, math.min(at, day))
    return
  end
  if s.expires then
    redis.call('HDEL', META, 'expires')
    redis.call('PERSIST', META)
    redis.call('PERSIST', CONTENT)
    redis.call('PERSIST', ENTRIES)
  end
  redis.call('PEXPIREAT', IDEM, day)
end
`;

/**
 * A client's key lives 24 h, a request id two minutes. They stand in two queues inside the hash, and each write takes
 * a few that have run out off their heads, so that no write ever pays for many.
 */
const AFTER = `
local function remember(result)
  local kind, life = 'r', 120000
  if key ~= '' then kind, life = 'k', 86400000 end
  local ends = redis.call('HMGET', IDEM, 'kh', 'kt', 'rh', 'rt')
  local queues = {k = {tonumber(ends[1]) or 0, tonumber(ends[2]) or 0}, r = {tonumber(ends[3]) or 0, tonumber(ends[4]) or 0}}
  for name, queue in pairs(queues) do
    for _ = 1, 3 do
      if queue[1] >= queue[2] then break end
      local place = name .. 'q' .. queue[1]
      local expiry, old = string.match(redis.call('HGET', IDEM, place), '^(%d+) (.*)$')
      if tonumber(expiry) > now then break end
      redis.call('HDEL', IDEM, place)
      local record = redis.call('HGET', IDEM, old)
      if record and tonumber(string.match(record, '^%d+')) <= now then redis.call('HDEL', IDEM, old) end
      queue[1] = queue[1] + 1
    end
  end
  local mine, other = queues[kind], kind == 'k' and 'r' or 'k'
  redis.call('HSET', IDEM, field, (now + life) .. ' ' .. hash .. ' ' .. result,
    kind .. 'q' .. mine[2], (now + life) .. ' ' .. field,
    kind .. 't', mine[2] + 1, kind .. 'h', mine[1], other .. 'h', queues[other][1])
end
-- RFC 3339 of the script's time. Source of the calendar: H. Hinnant, chrono-compatible low-level date algorithms.
local function timestamp()
  local seconds = tonumber(time[1])
  local days = math.floor(seconds / 86400)
  local rest = seconds - days * 86400
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', year, month, day,
    math.floor(rest / 3600), math.floor(rest / 60) % 60, rest % 60, tonumber(time[2]))
end
local at = timestamp()
-- What the caller is told, also again under the same key.
local function result(count)
  return table.concat({s.epoch, s.tag, s.rev, s.seq, count, s.last, at, s.version}, ' ')
end
local function publish(name, value)
  local message = '{"epoch":"' .. s.epoch .. '","tag":"' .. s.tag .. '","position":' .. s.rev .. ',"seq":' .. s.seq
  if value and #value <= 16384 then message = message .. ',"' .. name .. '":' .. value end
  redis.call('PUBLISH', channel, message .. '}')
end
`;

/** In this order: nothing of a write's own comes before the check of its key, and nothing is written before the fence. */
export const PARTS = `${BEFORE}${OPEN}${FENCE}${TAG}${EXPIRE}${AFTER}`;

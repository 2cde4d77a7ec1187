import { EXPIRE } from './parts.ts';
import { LIST, STATE } from './state.ts';

/**
 * Bounds of what one call reads, of all its pages and single entries together: so many stretches of the list, and
 * bytes. A caller who wants more asks again from `next` on, as of the first look.
 */
const FETCH = `
local spent, seeks = 0, 0
-- How many entries one stretch may take, and how many hidden ones it takes in rather than begin another.
local function stretch()
  local average = s.bytes / math.max(1, s.seq - s.base) + 256
  return math.max(4, math.min(64, math.floor(262144 / average))), math.floor(8192 / average)
end
-- Of ranges {low, high} of seqs (ascending, disjoint) the first or last \`limit\` values, in the order of reading.
-- The second result is the seq to go on from, nil when all was read.
local function fetch(ranges, limit, backward, budget)
  local found, own, bytes = {}, 0, 0
  local chunk, gap = stretch()
  local step, at, stop = 1, 1, #ranges
  if backward then step, at, stop = -1, #ranges, 1 end
  local from = ranges[at] and (backward and ranges[at][2] or ranges[at][1])
  while ranges[at] and #found < limit do
    if own >= 24 or seeks >= 64 or bytes >= budget or spent >= 524288 then return found, from end
    own, seeks = own + 1, seeks + 1
    local reach = from + step * (math.min(chunk, limit - #found + gap) - 1)
    local low, high, last = from, from, at
    if backward then
      while ranges[last - 1] and ranges[last - 1][2] >= math.max(reach, ranges[last][1] - 1 - gap) do last = last - 1 end
      low = math.max(reach, ranges[last][1])
    else
      while ranges[last + 1] and ranges[last + 1][1] <= math.min(reach, ranges[last][2] + 1 + gap) do last = last + 1 end
      high = math.min(reach, ranges[last][2])
    end
    local values = redis.call('LRANGE', ENTRIES, low - s.base - 1, high - s.base - 1)
    local first, final = 1, #values
    if backward then first, final = #values, 1 end
    for index = first, final, step do
      local seq = low + index - 1
      bytes, spent = bytes + #values[index], spent + #values[index]
      while ranges[at] and ((backward and seq < ranges[at][1]) or (not backward and seq > ranges[at][2])) do at = at + step end
      if not ranges[at] then break end
      if seq >= ranges[at][1] and seq <= ranges[at][2] then
        if #found >= limit then break end
        found[#found + 1] = values[index]
      end
      from = seq + step
    end
    while ranges[at] and ((backward and from < ranges[at][1]) or (not backward and from > ranges[at][2])) do at = at + step end
    if ranges[at] then
      if backward then from = math.min(from, ranges[at][2]) else from = math.max(from, ranges[at][1]) end
    end
  end
  return found, nil
end
`;

/** A boundary between windows as the entry before it: noted at the change, or searched once and noted now. */
const BOUNDS = `
local bounds, searches = {}, 0
local function learn(threads)
  local names = {}
  for _, thread in ipairs(threads) do
    if not bounds[thread] then names[#names + 1] = thread end
  end
  local firstThread, firstRev
  for start = 1, #names, 500 do
    local part = {}
    for index = start, math.min(start + 499, #names) do part[#part + 1] = 'n:' .. names[index] end
    local notes = redis.call('HMGET', META, unpack(part))
    for index, note in ipairs(notes) do
      local thread = names[start + index - 1]
      if note then
        local seq, rev = string.match(note, '^(%d+):(%d+)$')
        bounds[thread] = {tonumber(seq), tonumber(rev)}
      elseif thread <= s.start then
        bounds[thread] = {0, 0}
      elseif thread > s.last then
        bounds[thread] = {s.seq, s.rev}
      else
        if not firstThread then
          firstThread, firstRev = math.huge, s.rev + 1
          if s.seq > s.base then firstRev, firstThread = entryAt(s.base + 1) end
        end
        local seq, rev = s.base, firstRev - 1
        if thread > firstThread then
          if searches >= 20 then return false end
          searches = searches + 1
          seq, rev = beforeThread(thread)
        end
        bounds[thread] = {seq, rev}
        redis.pcall('HSET', META, 'n:' .. thread, seq .. ':' .. rev)
      end
    end
  end
  return true
end
`;

/**
 * 1 thread seq of the grant, 2 what is wanted (JSON): c content, w lists of windows, p pages {w which of them or nil, a
 * after, b before, l limit, r backward, k bytes}, s seqs (ascending), v which windows show those or nil, o {e epoch, q seq, z base} of the first look if
 * this goes on from it, 3 the mark of a FENCED that the grant settles or '', 4 ttl (see EXPIRE), of 0 seconds while a legacy import may be
 * under way.
 * Answers STATE epoch rev seq base tags expiry content pages entries next over (up to which thread seq windows are places in the
 * list alone, since the record's head was found below it); FENCED where something stands above what the
 * grant saw (its mark names up to where: if a head that was read under the lock is still lower, as after a restore of
 * the record, the present windows decide); MORE where it must be called again to find all windows; CHANGED where the first look cannot go on.
 */
export const READ = `
${STATE}
${EXPIRE}
local wants = cjson.decode(ARGV[2])
local first = wants.o
if first and (s.epoch ~= first.e or s.base ~= first.z or s.seq < first.q) then return {'CHANGED'} end
local settled = tonumber(string.match(ARGV[3], '^last:(%d+)$')) or 0
if not first and s.last > math.max(tonumber(ARGV[1]), settled) then return {'FENCED', 'last:' .. s.last} end
if not s.epoch then return {'STATE', ''} end
if not first and s.last > tonumber(ARGV[1]) then s.over = math.max(s.over, s.last) end
-- An import was cut off after its last old key was gone.
if s.hold == 'open' and timeToLive(ARGV[4]) > 0 then
  local time = redis.call('TIME')
  expire(ARGV[4], time[1] * 1000 + math.floor(time[2] / 1000))
end
${LIST}
${FETCH}
${BOUNDS}
local top = first and first.q or s.seq
-- What a list of windows shows: ranges {low, high, how many are shown before it}, ascending; their sum; where it ends.
local function view(windows)
  local shown, total, ends = {}, 0, {s.seq, s.rev}
  local function show(low, high)
    if low > high then return end
    shown[#shown + 1] = {low, high, total}
    total = total + high - low + 1
  end
  if not windows then
    show(s.base + 1, top)
    return {shown, total, ends}
  end
  ends = {0, 0}
  local threads = {}
  for _, window in ipairs(windows) do
    threads[#threads + 1] = window[1]
    if window[2] then threads[#threads + 1] = window[2] end
  end
  if not learn(threads) then return nil end
  for _, window in ipairs(windows) do
    ends = window[2] and bounds[window[2]] or {s.seq, s.rev}
    show(math.max(bounds[window[1]][1], s.base) + 1, math.min(ends[1], top))
  end
  return {shown, total, ends}
end
-- The first range that ends at \`seq\` or behind it.
local function rangeAt(shown, seq)
  local low, high = 1, #shown + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if shown[middle][2] >= seq then high = middle else low = middle + 1 end
  end
  return low
end
-- Those that a page can need: each holds one entry at least, so one more than its limit, however many there are.
local function rangesOf(shown, page, first, last)
  local ranges = {}
  if first > last then return ranges end
  local step, at = 1, rangeAt(shown, first)
  if page.r then
    step, at = -1, rangeAt(shown, last)
    if not shown[at] or shown[at][1] > last then at = at - 1 end
  end
  while shown[at] and shown[at][1] <= last and shown[at][2] >= first and #ranges <= page.l do
    ranges[#ranges + 1] = {math.max(shown[at][1], first), math.min(shown[at][2], last)}
    at = at + step
  end
  if page.r then
    for index = 1, math.floor(#ranges / 2) do
      local other = #ranges + 1 - index
      ranges[index], ranges[other] = ranges[other], ranges[index]
    end
  end
  return ranges
end
local views, pages = {}, {}
for number, page in ipairs(wants.p or {}) do
  local name = page.w or 0
  if not views[name] then views[name] = view(page.w and wants.w[page.w]) end
  if not views[name] then return {'MORE'} end
  local shown, total, ends = unpack(views[name])
  local first, last = (page.a or 0) + 1, (page.b or math.huge) - 1
  local found, next = fetch(rangesOf(shown, page, first, last), page.l, page.r, page.k)
  -- How many are shown before the first of these, or before where it would be.
  local edge = page.r and page.b or first
  if found[1] then edge = tonumber(string.match(found[page.r and #found or 1], '^{"seq":(%d+)')) end
  local at = shown[rangeAt(shown, edge)]
  local skipped = at and at[3] + math.max(0, edge - at[1]) or total
  pages[number] = {found, next or false, total, skipped, ends[1], ends[2]}
end
local entries, following = {}, nil
if wants.s then
  local name, ranges = wants.v or 0, {}
  if not views[name] then views[name] = view(wants.v and wants.w[wants.v]) end
  if not views[name] then return {'MORE'} end
  local shown = views[name][1]
  for _, seq in ipairs(wants.s) do
    local range = shown[rangeAt(shown, seq)]
    if range and range[1] <= seq then ranges[#ranges + 1] = {seq, seq} end
  end
  entries, following = fetch(ranges, #ranges, false, 524288)
end
local expiry = redis.call('PTTL', META)
if expiry >= 0 then
  local time = redis.call('TIME')
  expiry = time[1] * 1000 + math.floor(time[2] / 1000) + expiry
end
return {'STATE', s.epoch, s.rev, s.seq, s.base, s.tags, expiry, wants.c and redis.call('GET', CONTENT) or false, pages, entries, following or false, s.over}
`;

/** Where the log ends. */
export const HEAD = `
${STATE}
if not s.epoch then return {'HEAD', '', 0, 0, ''} end
return {'HEAD', s.epoch, s.rev, s.seq, s.tags}
`;

/**
 * 1 rev, 2 limit. Answers CHANGES epoch rev seq tags, the seq before the first entry, entries, whether these are all,
 * and of what else changed since: the content, and rev, thread seq and actor of the last clears.
 */
export const CHANGES = `
${STATE}
if not s.epoch then return {'CHANGES', ''} end
${LIST}
${FETCH}
local after, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
-- The first entry behind \`after\`: revs grow about evenly along the list, so guess; halve where guesses do not help.
local low, high = s.base + 1, s.seq + 1
local lowRev, highRev = 0, s.rev + 1
local guesses = 0
while low < high do
  local middle = math.floor((low + high) / 2)
  if guesses % 3 ~= 2 then
    middle = low + math.floor((high - low) * (after - lowRev) / math.max(1, highRev - lowRev))
    middle = math.max(low, math.min(high - 1, middle))
  end
  guesses = guesses + 1
  local rev = entryAt(middle)
  if rev > after then high, highRev = middle, rev else low, lowRev = middle + 1, rev end
end
local entries, next = {}, nil
if low <= s.seq then entries, next = fetch({{low, s.seq}}, limit, false, 524288) end
local complete = low + #entries > s.seq
local upTo = complete and s.rev or numbers(entries[#entries])
local m = redis.call('HMGET', META, 'crev', 'ccrev', 'ccthread', 'ccactor', 'ecrev', 'ecthread', 'ecactor')
local function isDue(rev) return rev and tonumber(rev) > after and tonumber(rev) <= upTo end
local content = s.there and isDue(m[1]) and redis.call('GET', CONTENT)
local contentCleared = isDue(m[2]) and {tonumber(m[2]), tonumber(m[3]), m[4]}
local entriesCleared = isDue(m[5]) and {tonumber(m[5]), tonumber(m[6]), m[7]}
return {'CHANGES', s.epoch, s.rev, s.seq, s.tags, low - 1, entries, content, contentCleared, entriesCleared}
`;

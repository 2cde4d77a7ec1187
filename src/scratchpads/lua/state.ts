/**
 * What every script of a pad begins with: the tombstone, and the state of one moment. `s.epoch` is nil where there is
 * no state. Meta without an epoch holds only a fence or what is told of expiry, for a minute. State that is not whole (a key expired, was
 * evicted or removed by hand) is removed, all of it: never a mixture.
 *
 * Fields of meta: epoch, rev, seq (of the last entry, also across clears), base (the seq before the list's first
 * entry), bytes (of the entries' contents), version and crev (of the content; there: '1' while it is there), ccrev
 * ccactor ccthread, ecrev ecactor ecthread (the last clear of content and of entries), fence, mark (another at each
 * raise), start (the thread seq of the epoch's first write: whatever is at or before it shows nothing of this epoch),
 * over (see NOTE), fencer (the tag of the server on which these two are known), last (the highest thread_seq written), tag (of the server that took the last write), tags (`tag:rev,…`: the
 * rev after which each began), hold (see EXPIRE), `n:<thread seq>` (`<entry seq>:<rev>`: where the list stood at
 * that change of membership), expires ('1' where keys do), retimed (see EXPIRE), open (a batch
 * that comes in parts: its id, how many entries of it stand behind seq where nobody sees them, until when it may go
 * on, and its time).
 */
export const STATE = `
local GONE, META, CONTENT, ENTRIES, IDEM, IMPORT = unpack(KEYS)
if redis.call('EXISTS', GONE) == 1 then return {'GONE'} end
local s = {}
do
  local m = redis.call('HMGET', META, 'epoch', 'rev', 'seq', 'base', 'bytes', 'version', 'there', 'last', 'tag', 'tags', 'fence', 'mark', 'expires', 'open', 'fencer', 'start', 'hold', 'over', 'retimed')
  s.epoch, s.tag, s.tags, s.mark, s.fencer = m[1], m[9] or '', m[10] or '', m[12], m[15]
  s.start, s.hold, s.over = tonumber(m[16]) or 0, m[17], tonumber(m[18]) or 0
  s.rev, s.seq, s.base = tonumber(m[2]) or 0, tonumber(m[3]) or 0, tonumber(m[4]) or 0
  s.bytes, s.version, s.last = tonumber(m[5]) or 0, tonumber(m[6]) or 0, tonumber(m[8]) or 0
  s.there, s.fence, s.expires, s.retimed = m[7] == '1', tonumber(m[11]), m[13], m[19]
  local token, laid, deadline, at = string.match(m[14] or '', '^(%S+) (%d+) (%d+) (%S+)$')
  if token then s.open = {token = token, laid = tonumber(laid), deadline = tonumber(deadline), at = at} end
  local whole = s.epoch and redis.call('LLEN', ENTRIES) == s.seq - s.base + (s.open and s.open.laid or 0)
    and (redis.call('EXISTS', CONTENT) == 1) == s.there
  if not whole then
    redis.call('UNLINK', CONTENT, ENTRIES, IDEM)
    -- With a rev it is what is left of a state, also without its epoch: a fence alone has none.
    if s.epoch or m[2] then
      redis.call('UNLINK', META)
      s = {over = 0}
    end
    s.epoch, s.tag, s.tags, s.rev, s.seq, s.base, s.bytes, s.version, s.last, s.there = nil, '', '', 0, 0, 0, 0, 0, 0, false
  end
end
`;

/** Reads in the list: entries begin with their numbers, so that no script decodes JSON. */
export const LIST = `
local function numbers(value)
  local rev, thread = string.match(value, '^{"seq":%d+,"rev":(%d+),"thread_seq":(%d+)')
  return tonumber(rev), tonumber(thread)
end
local function entryAt(seq)
  return numbers(redis.call('LINDEX', ENTRIES, seq - s.base - 1))
end
-- Where the list stood at that position of the thread: seq of the last entry with thread_seq < thread (base if there is
-- none), and the rev before the next entry's (the last if there is none).
local function beforeThread(thread)
  if thread <= s.start then return 0, 0 end
  local low, high, rev = s.base, s.seq, s.rev
  while low < high do
    local middle = math.floor((low + high + 1) / 2)
    local r, t = entryAt(middle)
    if t < thread then low = middle else high, rev = middle - 1, r - 1 end
  end
  return low, rev
end
`;

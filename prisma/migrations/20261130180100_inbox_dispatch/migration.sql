-- How what is pending is handed out, taken back and told of.

-- ---------------------------------------------------------------------------------------------------------
-- What happens to a member or a thread, as its inbox sees it: triggers, so that it holds however it comes about. All of them
-- run under the thread's head.

-- Removed: nothing of others any more, and what is in hand is over. Back: what was pending from its own windows.
CREATE FUNCTION tp_follow_state() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_row inbox_threads;
BEGIN
  SELECT i.* INTO v_row FROM inbox_threads i
    WHERE i.owner_id = NEW.owner_id AND i.thread_id = NEW.thread_id AND i.participant_id = NEW.participant_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF v_row.delivery_id IS NOT NULL THEN
    PERFORM tp_end_delivery(v_row, NULL);
  END IF;
  -- The old floors say nothing of what was said before them.
  v_row.pending_seq := 0;
  v_row.mentioned_seq := 0;
  PERFORM tp_settle(v_row);
  PERFORM tp_control(NEW.owner_id, NEW.participant_id, CASE WHEN NEW.state = 'REMOVED' THEN 'REMOVED' ELSE 'READDED' END,
                     NEW.thread_id, NULL, NEW.since_seq);
  RETURN NULL;
END $$;
CREATE TRIGGER thread_members_follow_state AFTER UPDATE OF state ON thread_members FOR EACH ROW
  WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION tp_follow_state();

-- A message that somebody has in hand, or may take next, was taken back.
CREATE FUNCTION tp_tell_retraction() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_row inbox_threads;
BEGIN
  FOR v_row IN
    SELECT i.* FROM inbox_threads i
    JOIN thread_members m ON m.owner_id = i.owner_id AND m.thread_id = i.thread_id AND m.participant_id = i.participant_id
    WHERE i.owner_id = NEW.owner_id AND i.thread_id = NEW.thread_id AND i.participant_id <> NEW.sender_id
      AND m.state = 'ACTIVE' AND m.ack_seq < NEW.message_seq
      AND tp_visible(NEW.owner_id, NEW.thread_id, NEW.message_seq, '{}', i.participant_id)
    ORDER BY i.participant_id FOR NO KEY UPDATE OF i
  LOOP
    PERFORM tp_control(NEW.owner_id, v_row.participant_id, 'MESSAGE_RETRACTED', NEW.thread_id, NULL, NEW.retraction_seq);
    IF NEW.message_seq IN (v_row.pending_seq, v_row.mentioned_seq) THEN
      PERFORM tp_settle(v_row);
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER retracted_messages_tell AFTER INSERT ON retracted_messages FOR EACH ROW EXECUTE FUNCTION tp_tell_retraction();

-- A thread is gone. Of a user that is deleted whole nobody is left to be told.
CREATE FUNCTION tp_tell_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_row inbox_threads;
BEGIN
  FOR v_row IN
    SELECT i.* FROM inbox_threads i WHERE i.owner_id = NEW.owner_id AND i.thread_id = NEW.id
      AND EXISTS (SELECT 1 FROM users u WHERE u.id = NEW.owner_id AND u.deleted_at IS NULL)
    ORDER BY i.participant_id FOR NO KEY UPDATE
  LOOP
    PERFORM tp_end_delivery(v_row, NULL);
    UPDATE inbox_threads i SET pending_seq = NULL, pending_since = NULL, mentioned_seq = NULL, mentioned_since = NULL
      WHERE i.owner_id = v_row.owner_id AND i.thread_id = v_row.thread_id AND i.participant_id = v_row.participant_id;
    PERFORM tp_control(NEW.owner_id, v_row.participant_id, 'THREAD_DELETED', NEW.id);
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER threads_tell_deletion AFTER UPDATE OF deleted_at ON threads FOR EACH ROW
  WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION tp_tell_deletion();

-- ---------------------------------------------------------------------------------------------------------
-- Reading.

-- What a message takes of an answer, about: its texts, and something for all else of it.
CREATE FUNCTION tp_message_bytes(p_owner text, p_thread text, p_seq integer) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT 512 + coalesce((SELECT octet_length(b.content) + coalesce(octet_length(b.data::text), 0) FROM message_bodies b
    WHERE b.owner_id = p_owner AND b.thread_id = p_thread AND b.seq = p_seq), 0)
$$;

-- Positions of the first p_limit pending messages from p_from on, ascending; of those that mention it if p_mentions_only. Ends
-- before they are larger than p_bytes together, but never before the first.
CREATE FUNCTION tp_pending(
  p_owner text, p_thread text, p_participant text, p_from integer, p_mentions_only boolean, p_limit integer, p_bytes integer
) RETURNS integer[] LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_seqs integer[] := '{}';
  v_from integer := p_from;
  v_next integer;
  v_bytes bigint := 0;
BEGIN
  WHILE cardinality(v_seqs) < p_limit LOOP
    SELECT f.seq INTO v_next FROM tp_first_pending(p_owner, p_thread, p_participant, v_from, p_mentions_only) f;
    EXIT WHEN v_next IS NULL;
    v_bytes := v_bytes + tp_message_bytes(p_owner, p_thread, v_next);
    EXIT WHEN v_bytes > p_bytes AND cardinality(v_seqs) > 0;
    v_seqs := v_seqs || v_next;
    v_from := v_next + 1;
  END LOOP;
  RETURN v_seqs;
END $$;

-- ---------------------------------------------------------------------------------------------------------
-- Handing out.

-- What an inbox may be given now, in this order: up to 50 control notices, then deliveries of at most p_max threads, the oldest
-- pending first, each leased. One JSON object for each: channel, and what belongs to it. One object, channel AGAIN: nothing
-- was found yet, and there may be something.
--   p_bytes: what is given takes about so much of an answer at most, notices and deliveries each, but never less than one of
--   them; the rest is left for the next time.
--   p_run: the run whose inbox it is; empty: the main one. p_thread: of this thread only.
--   p_holder: the stream that asks; if the inbox is not its own any more the answer is one object, channel TAKEN_OVER.
--   p_ids: names for at most p_max deliveries. p_told: numbers of notices that came; a pull (p_holder null) proves it by asking.
--   p_once: whoever asks may have asked before under the same name; what was given under it is not given again, nor anything else,
--   whatever became of it. That is kept as of other calls: a delivery's own name is forgotten in time.
-- Errors: NOT_FOUND, FORBIDDEN, PARTICIPANT_NOT_ACTIVE (of p_thread).
CREATE FUNCTION take_inbox(
  p_owner text, p_participant text, p_run text, p_thread text, p_max integer, p_batch integer, p_mentions_only boolean,
  p_holder text, p_ids text[], p_lease double precision, p_told bigint[], p_bytes integer, p_once boolean
) RETURNS SETOF jsonb
LANGUAGE plpgsql AS $$
DECLARE
  c_most_settled CONSTANT integer := 16;
  v_participant participants;
  v_state participant_states;
  v_holder text;
  v_row inbox_threads;
  v_member thread_members;
  v_head thread_heads;
  v_thread text;
  v_seqs integer[];
  v_given integer := 0;
  v_left integer := p_max;
  v_settled integer := 0;
  v_settled_before integer;
  v_until timestamptz;
  v_now timestamptz;
  v_bytes bigint := p_bytes;
  v_size bigint;
  v_notices integer;
BEGIN
  SELECT p.* INTO v_participant FROM participants p WHERE p.owner_id = p_owner AND p.id = p_participant;
  IF NOT FOUND THEN
    PERFORM tp_fail('NOT_FOUND', 'Participant not found.');
  END IF;
  IF v_participant.kind = 'HUMAN' THEN
    PERFORM tp_fail('FORBIDDEN', 'Only agents and units have an inbox.');
  END IF;
  IF p_thread IS NOT NULL THEN
    SELECT m.state INTO v_state FROM thread_members m JOIN thread_heads h ON h.owner_id = m.owner_id AND h.thread_id = m.thread_id
      WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_participant;
    IF NOT FOUND THEN
      PERFORM tp_fail('NOT_FOUND', 'Thread not found.');
    END IF;
  END IF;

  -- Whoever takes for this participant waits here, holding nothing; its runs' inboxes too.
  LOOP
    PERFORM 1 FROM inboxes i WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.run_id = '' FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO inboxes (owner_id, participant_id) VALUES (p_owner, p_participant) ON CONFLICT DO NOTHING;
  END LOOP;
  IF p_once AND EXISTS (
    SELECT 1 FROM idempotency_records r WHERE r.owner_id = p_owner AND r.operation = 'takeMessage' AND r.target = ''
      AND r.actor = p_participant AND r.key = p_ids[1]
  ) THEN
    RETURN;
  END IF;

  IF p_holder IS NULL AND p_run <> '' THEN
    -- A run that pulls is told what concerns it, and has its conversation to itself between two pulls.
    INSERT INTO inboxes AS i (owner_id, participant_id, run_id, thread_id, held_until)
      VALUES (p_owner, p_participant, p_run, p_thread, clock_timestamp() + p_lease * interval '1 second')
      ON CONFLICT (owner_id, participant_id, run_id) DO UPDATE SET holder = NULL, held_until = EXCLUDED.held_until
      WHERE i.holder IS NULL OR i.held_until <= clock_timestamp();
  END IF;

  IF p_holder IS NULL THEN
    UPDATE inbox_controls c SET told_at = clock_timestamp()
      WHERE c.owner_id = p_owner AND c.participant_id = p_participant AND c.inbox_run_id = p_run
        AND c.told_at IS NULL AND c.offered_at IS NOT NULL;
  ELSE
    UPDATE inbox_controls c SET told_at = clock_timestamp()
      WHERE c.owner_id = p_owner AND c.participant_id = p_participant AND c.inbox_run_id = p_run
        AND c.told_at IS NULL AND c.number = ANY (p_told);
  END IF;
  IF p_holder IS NOT NULL THEN
    SELECT i.holder INTO v_holder FROM inboxes i
      WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.run_id = p_run;
    IF v_holder IS DISTINCT FROM p_holder THEN
      RETURN NEXT jsonb_build_object('channel', 'TAKEN_OVER');
      RETURN;
    END IF;
  END IF;

  RETURN QUERY
    WITH untold AS (
      SELECT c.*, (SELECT jsonb_agg(to_jsonb(r)) FROM timeline_rows r
        WHERE r.owner_id = p_owner AND r.thread_id = c.thread_id AND r.seq = c.seq) AS events
      FROM inbox_controls c
      WHERE c.owner_id = p_owner AND c.participant_id = p_participant AND c.inbox_run_id = p_run AND c.told_at IS NULL
      ORDER BY c.number LIMIT 50
    ), sized AS (
      SELECT u.*, row_number() OVER by_number AS place,
        sum(512 + coalesce(octet_length(u.text), 0) + coalesce(octet_length(u.events::text), 0)) OVER by_number AS reach
      FROM untold u WINDOW by_number AS (ORDER BY u.number)
    ), told AS (
      SELECT z.* FROM sized z WHERE z.place = 1 OR z.reach <= p_bytes
    ), offered AS (
      UPDATE inbox_controls c SET offered_at = clock_timestamp() FROM told
      WHERE p_holder IS NULL AND c.owner_id = told.owner_id AND c.participant_id = told.participant_id
        AND c.inbox_run_id = told.inbox_run_id AND c.number = told.number)
    SELECT jsonb_build_object('channel', 'CONTROL', 'number', t.number::text, 'kind', t.kind, 'threadId', t.thread_id,
      'runId', t.run_id, 'text', t.text, 'events', t.events)
    FROM told t ORDER BY t.number;
  GET DIAGNOSTICS v_notices = ROW_COUNT;

  IF v_state = 'REMOVED' THEN
    IF v_notices > 0 THEN RETURN; END IF;
    PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in this thread; only an active member is given messages.');
  END IF;
  IF NOT v_participant.concurrent_threads THEN
    v_now := clock_timestamp();
    v_left := least(v_left, 1);
    IF EXISTS (SELECT 1 FROM inbox_threads i WHERE i.owner_id = p_owner AND i.participant_id = p_participant
                 AND i.delivery_id IS NOT NULL AND i.leased_until > v_now) THEN
      RETURN;
    END IF;
  END IF;

  <<hand_out>>
  LOOP
    v_settled_before := v_settled;
    FOR v_thread IN
      SELECT c.thread_id FROM tp_candidates(p_owner, p_participant, p_run, p_thread, p_mentions_only, v_left - v_given + 16) c
    LOOP
      EXIT hand_out WHEN v_given >= v_left OR v_bytes <= 0;
      SELECT i.* INTO v_row FROM inbox_threads i
        WHERE i.owner_id = p_owner AND i.thread_id = v_thread AND i.participant_id = p_participant
          AND (i.delivery_id IS NULL OR i.leased_until <= clock_timestamp())
          AND CASE WHEN p_mentions_only THEN i.mentioned_seq ELSE i.pending_seq END IS NOT NULL
        FOR NO KEY UPDATE SKIP LOCKED;
      CONTINUE WHEN NOT FOUND;
      -- From here on nobody acknowledges or removes in this thread for it: they wait for the row.
      SELECT m.* INTO v_member FROM thread_members m
        WHERE m.owner_id = p_owner AND m.thread_id = v_thread AND m.participant_id = p_participant;
      SELECT h.* INTO v_head FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = v_thread;
      CONTINUE WHEN NOT FOUND;
      v_seqs := CASE WHEN v_member.state = 'ACTIVE' THEN tp_pending(p_owner, v_thread, p_participant,
        greatest(v_member.ack_seq + 1, CASE WHEN p_mentions_only THEN v_row.mentioned_seq ELSE v_row.pending_seq END),
        p_mentions_only, p_batch, least(v_bytes, 1048576)::integer) ELSE '{}' END;
      IF cardinality(v_seqs) = 0 THEN
        -- Only under the head may this be said; where somebody holds it, it is said another time.
        PERFORM 1 FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = v_thread FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
          IF v_row.delivery_id IS NOT NULL THEN PERFORM tp_end_delivery(v_row, NULL); END IF;
          PERFORM tp_settle(v_row);
          v_settled := v_settled + 1;
          -- Their heads are held to the end, and whoever posts there waits: so the others are for the next time.
          EXIT hand_out WHEN v_settled >= c_most_settled;
        END IF;
        CONTINUE;
      END IF;
      SELECT sum(tp_message_bytes(p_owner, v_thread, s.seq)) INTO v_size FROM unnest(v_seqs) AS s(seq);
      EXIT hand_out WHEN v_given > 0 AND v_size > v_bytes;
      v_given := v_given + 1;
      IF p_once THEN
        INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result)
          VALUES (p_owner, 'takeMessage', '', p_participant, p_ids[1], '', '{}');
      END IF;
      v_bytes := v_bytes - v_size;
      v_until := clock_timestamp() + p_lease * interval '1 second';
      UPDATE inbox_threads i SET
          delivery_id = p_ids[v_given], attempt = v_row.attempt + 1, delivery_seqs = v_seqs, taken_at = clock_timestamp(),
          leased_until = v_until, holder = p_holder, only_mentions = p_mentions_only, run_id = p_run
        WHERE i.owner_id = p_owner AND i.thread_id = v_thread AND i.participant_id = p_participant;
      RETURN NEXT jsonb_build_object('channel', 'MESSAGE', 'deliveryId', p_ids[v_given], 'threadId', v_thread,
        'attempt', v_row.attempt + 1,
        'leaseExpiresAt', to_char(v_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'pendingCount', v_member.closed_visible + v_head.message_count - v_member.open_after_no - v_member.ack_visible
          - (v_member.sent_count - v_member.ack_sent) - v_member.unread_retracted,
        'events', (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.seq) FROM timeline_rows r
          WHERE r.owner_id = p_owner AND r.thread_id = v_thread AND r.seq = ANY (v_seqs)));
    END LOOP;
    EXIT WHEN v_settled = v_settled_before;
  END LOOP;
  IF v_given = 0 AND v_notices = 0 AND v_settled >= c_most_settled THEN
    RETURN NEXT jsonb_build_object('channel', 'AGAIN');
  END IF;
END $$;

-- Threads of which something may be handed out, those first that wait longest: what nobody has in hand, and what was in hand
-- until its lease ran out, of which only what is still pending. What is left to runs is asked once, and not of each thread.
CREATE FUNCTION tp_candidates(
  p_owner text, p_participant text, p_run text, p_thread text, p_mentions_only boolean, p_limit integer
) RETURNS TABLE (thread_id text, since bigint) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz := clock_timestamp();
  v_left text[] := tp_left_to_runs(p_owner, p_participant, p_run, false);
BEGIN
  IF p_thread IS NOT NULL THEN
    RETURN QUERY SELECT i.thread_id, i.pending_since FROM inbox_threads i
      WHERE i.owner_id = p_owner AND i.thread_id = p_thread AND i.participant_id = p_participant AND i.pending_since IS NOT NULL
        AND i.thread_id <> ALL (v_left);
  ELSIF p_mentions_only THEN
    RETURN QUERY SELECT c.thread_id, c.since FROM (
      (SELECT i.thread_id, i.mentioned_since AS since FROM inbox_threads i
       WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.mentioned_since IS NOT NULL AND i.delivery_id IS NULL
         AND i.thread_id <> ALL (v_left)
       ORDER BY i.mentioned_since LIMIT p_limit)
      UNION ALL
      (SELECT i.thread_id, i.mentioned_since FROM inbox_threads i
       WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.delivery_id IS NOT NULL
         AND i.leased_until <= v_now AND i.mentioned_since IS NOT NULL AND i.thread_id <> ALL (v_left)
       ORDER BY i.leased_until LIMIT p_limit)) c
      ORDER BY c.since LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT c.thread_id, c.since FROM (
      (SELECT i.thread_id, i.pending_since AS since FROM inbox_threads i
       WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.pending_since IS NOT NULL AND i.delivery_id IS NULL
         AND i.thread_id <> ALL (v_left)
       ORDER BY i.pending_since LIMIT p_limit)
      UNION ALL
      (SELECT i.thread_id, i.pending_since FROM inbox_threads i
       WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.delivery_id IS NOT NULL
         AND i.leased_until <= v_now AND i.pending_since IS NOT NULL AND i.thread_id <> ALL (v_left)
       ORDER BY i.leased_until LIMIT p_limit)) c
      ORDER BY c.since LIMIT p_limit;
  END IF;
END $$;

-- Threads that are left to inboxes of runs: those of open streams and, unless p_streams, those of open runs that pulled not long
-- ago. A run's own inbox leaves none.
CREATE FUNCTION tp_left_to_runs(p_owner text, p_participant text, p_run text, p_streams boolean) RETURNS text[]
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_run = '' THEN ARRAY(
    SELECT r.thread_id FROM inboxes r
    WHERE r.owner_id = p_owner AND r.participant_id = p_participant AND r.run_id <> '' AND r.held_until > now()
      AND r.thread_id IS NOT NULL AND (r.holder IS NOT NULL OR (NOT p_streams AND EXISTS (
        SELECT 1 FROM runs o WHERE o.id = r.run_id AND o.finished_at IS NULL)))) ELSE '{}' END
$$;

-- When an activity was.
CREATE FUNCTION tp_at(p_activity bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
  SELECT timestamptz 'epoch' + p_activity * interval '1 microsecond'
$$;

-- ---------------------------------------------------------------------------------------------------------
-- Observations: what an inbox's participant may see besides, at most p_limit events of all its threads, from where it was told
-- last. One JSON object for each thread: threadId, seq (it is told up to there once these came), events. Last of all
-- { seen, isCut }: nothing up to the activity `seen` has to be looked at again (null: all that was looked for has), and where the
-- answer was cut the rest comes with the next.
--   p_bytes: the events take about so much of an answer at most, but never less than one; the rest comes with the next.
--   p_since: only threads that moved after this activity, or whose runs' streams ended since; null: all, and none twice. At most a
--   thousand threads are looked at, of five thousand that moved. p_told…:
--   positions that came. p_mentions_only: messages that are no deliveries, since they do not mention it, belong here.
CREATE FUNCTION inbox_digest(
  p_owner text, p_participant text, p_run text, p_thread text, p_since bigint, p_mentions_only boolean, p_limit integer,
  p_told_threads text[], p_told_seqs integer[], p_bytes integer
) RETURNS SETOF jsonb
LANGUAGE plpgsql AS $$
DECLARE
  c_most_threads CONSTANT integer := 1000;
  c_most_heads CONSTANT integer := 5000;
  -- An event may be committed so long after one of another thread that is later; what is older than that is all there.
  v_settled bigint := (extract(epoch FROM clock_timestamp() - interval '10 seconds') * 1000000)::bigint;
  v_end bigint;
  v_upto bigint;
  v_candidate record;
  v_left integer := p_limit;
  v_bytes bigint := p_bytes;
  v_told boolean := false;
  v_is_cut boolean := false;
  v_found integer;
  v_kept integer;
  v_last integer;
  v_size bigint;
  v_looked integer := 0;
  v_events jsonb;
  v_types text[] := ARRAY['PARTICIPANT_STATE_CHANGED', 'RETRACTION', 'SYSTEM'];
BEGIN
  IF p_mentions_only THEN
    v_types := array_append(v_types, 'MESSAGE');
  END IF;
  PERFORM settle_digest(p_owner, p_participant, p_mentions_only, p_told_threads, p_told_seqs);
  SELECT h.activity INTO v_end FROM thread_heads h
    WHERE p_thread IS NULL AND h.owner_id = p_owner AND h.activity > p_since ORDER BY h.activity OFFSET c_most_heads LIMIT 1;
  FOR v_candidate IN
    SELECT c.*, CASE WHEN m.state = 'REMOVED' THEN m.since_seq ELSE c.last_seq END AS end_seq
    FROM tp_moved_threads(p_owner, p_participant, p_run, p_thread, p_since, v_end, p_mentions_only) c
    JOIN thread_members m ON m.owner_id = p_owner AND m.thread_id = c.thread_id AND m.participant_id = p_participant
    WHERE c.told_seq < CASE WHEN m.state = 'REMOVED' THEN m.since_seq ELSE c.last_seq END
    ORDER BY c.activity FETCH FIRST (c_most_threads) ROWS WITH TIES
  LOOP
    v_upto := v_candidate.activity - 1;
    EXIT WHEN v_left <= 0;
    v_looked := v_looked + 1;
    WITH page AS (
      SELECT r AS event, r.seq,
        512 + coalesce(octet_length(r.content), 0) + coalesce(octet_length(r.data::text), 0)
          + coalesce(octet_length(r.context::text), 0) + coalesce(octet_length(r.reason), 0) AS size,
        CASE r.type
          WHEN 'MESSAGE' THEN r.seq > v_candidate.messages_seq AND r.sender_id <> p_participant
            AND p_participant <> ALL (r.mention_ids)
          WHEN 'PARTICIPANT_STATE_CHANGED' THEN r.seq > v_candidate.observed_seq AND r.subject_id <> p_participant
          WHEN 'RETRACTION' THEN r.seq > v_candidate.observed_seq AND r.actor_id <> p_participant AND NOT EXISTS (
            SELECT 1 FROM inbox_controls k WHERE k.owner_id = p_owner AND k.thread_id = v_candidate.thread_id AND k.seq = r.seq
              AND k.participant_id = p_participant)
          ELSE r.seq > v_candidate.observed_seq END AS is_told
      FROM page_events(p_owner, v_candidate.thread_id, p_participant,
        (SELECT array_agg(greatest(w.after_seq, 1) ORDER BY w.after_seq) FROM visibility_windows w
          WHERE w.owner_id = p_owner AND w.thread_id = v_candidate.thread_id AND w.participant_id = p_participant),
        (SELECT array_agg(least(coalesce(w.end_seq, v_candidate.end_seq), v_candidate.end_seq) ORDER BY w.after_seq)
          FROM visibility_windows w
          WHERE w.owner_id = p_owner AND w.thread_id = v_candidate.thread_id AND w.participant_id = p_participant),
        v_candidate.told_seq + 1, v_types, v_left, false) r
    ), reached AS (
      SELECT p.*, coalesce(sum(p.size) FILTER (WHERE p.is_told) OVER by_seq, 0) AS reach,
        count(*) FILTER (WHERE p.is_told) OVER by_seq AS place
      FROM page p WINDOW by_seq AS (ORDER BY p.seq)
    ), fitting AS (
      SELECT r.*, r.reach <= v_bytes OR (NOT v_told AND r.place <= 1) AS fits FROM reached r
    )
    SELECT count(*), count(*) FILTER (WHERE f.fits), max(f.seq) FILTER (WHERE f.fits),
        coalesce(sum(f.size) FILTER (WHERE f.fits AND f.is_told), 0),
        jsonb_agg(to_jsonb(f.event) ORDER BY f.seq) FILTER (WHERE f.fits AND f.is_told)
      INTO v_found, v_kept, v_last, v_size, v_events FROM fitting f;
    v_is_cut := v_kept < v_found;
    v_last := CASE
      WHEN v_is_cut THEN coalesce(v_last, v_candidate.told_seq)
      WHEN v_found < v_left THEN v_candidate.end_seq
      ELSE v_last END;
    v_left := v_left - v_found;
    v_bytes := v_bytes - v_size;
    v_told := v_told OR v_events IS NOT NULL;
    -- Where there is nothing to tell the position is moved now and then only, since it costs a write; and by whoever begins,
    -- so that the next who does finds only what moved since.
    IF v_events IS NOT NULL OR v_last - v_candidate.told_seq >= 50
       OR (p_since IS NULL AND v_last > v_candidate.told_seq) THEN
      RETURN NEXT jsonb_build_object('threadId', v_candidate.thread_id, 'seq', v_last, 'events', coalesce(v_events, '[]'));
    END IF;
    EXIT WHEN v_is_cut;
    IF v_last = v_candidate.end_seq THEN
      v_upto := v_candidate.activity;
    END IF;
  END LOOP;
  v_is_cut := v_is_cut OR v_left <= 0 OR v_looked >= c_most_threads;
  RETURN NEXT jsonb_build_object(
    'seen', CASE WHEN p_since IS NOT NULL OR NOT v_is_cut
      THEN greatest(p_since, least(CASE WHEN v_is_cut THEN v_upto END, v_end, v_settled)) END::text,
    'isCut', v_is_cut OR v_end IS NOT NULL);
END $$;

-- Positions that came. One row after the other: of many at once all of the agent's threads would be read. In the order in which
-- everybody waits for rows of several threads: two digests of one agent, or of two and posts in threads of both, would wait for
-- each other.
CREATE FUNCTION settle_digest(
  p_owner text, p_participant text, p_mentions_only boolean, p_threads text[], p_seqs integer[]
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE v_told record;
BEGIN
  FOR v_told IN SELECT u.thread_id, u.seq FROM unnest(p_threads, p_seqs) AS u(thread_id, seq) ORDER BY u.thread_id LOOP
    UPDATE inbox_threads t SET observed_seq = greatest(t.observed_seq, v_told.seq),
        messages_seq = CASE WHEN p_mentions_only THEN greatest(t.messages_seq, v_told.seq) ELSE t.messages_seq END
      WHERE t.owner_id = p_owner AND t.thread_id = v_told.thread_id AND t.participant_id = p_participant;
  END LOOP;
END $$;

-- Threads that moved after p_since, up to p_until, or whose runs' streams ended since then, which they were left to; where p_since
-- is null, all that there is something of. told_seq: where to go on, behind what of either kind was told.
CREATE FUNCTION tp_moved_threads(
  p_owner text, p_participant text, p_run text, p_thread text, p_since bigint, p_until bigint, p_mentions_only boolean
) RETURNS TABLE (thread_id text, observed_seq integer, messages_seq integer, told_seq integer, last_seq integer, activity bigint)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE v_left text[] := tp_left_to_runs(p_owner, p_participant, p_run, true);
BEGIN
  IF p_since IS NULL OR p_thread IS NOT NULL THEN
    RETURN QUERY SELECT i.thread_id, i.observed_seq, i.messages_seq, t.seq, h.last_seq, h.activity FROM inbox_threads i
      JOIN thread_heads h ON h.owner_id = i.owner_id AND h.thread_id = i.thread_id
      CROSS JOIN LATERAL (
        SELECT CASE WHEN p_mentions_only THEN least(i.observed_seq, i.messages_seq) ELSE i.observed_seq END AS seq) t
      WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND (p_thread IS NULL OR i.thread_id = p_thread)
        AND h.last_seq > t.seq AND i.thread_id <> ALL (v_left);
  ELSE
    RETURN QUERY SELECT i.thread_id, i.observed_seq, i.messages_seq, t.seq, h.last_seq, h.activity FROM (
        SELECT m.thread_id, m.last_seq, m.activity FROM thread_heads m
        WHERE m.owner_id = p_owner AND m.activity > p_since AND m.activity <= coalesce(p_until, 9223372036854775807)
        UNION
        SELECT m.thread_id, m.last_seq, m.activity FROM inboxes r
        JOIN thread_heads m ON m.owner_id = r.owner_id AND m.thread_id = r.thread_id
        WHERE p_run = '' AND r.owner_id = p_owner AND r.participant_id = p_participant AND r.run_id <> ''
          AND r.held_until > tp_at(p_since)) h
      JOIN inbox_threads i ON i.owner_id = p_owner AND i.thread_id = h.thread_id AND i.participant_id = p_participant
      CROSS JOIN LATERAL (
        SELECT CASE WHEN p_mentions_only THEN least(i.observed_seq, i.messages_seq) ELSE i.observed_seq END AS seq) t
      WHERE h.last_seq > t.seq AND i.thread_id <> ALL (v_left);
  END IF;
END $$;

-- Takes away what was told a day ago, what nobody fetched in a month, and the places of runs' inboxes that are over.
CREATE FUNCTION empty_inboxes(p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_count integer;
  v_more integer;
BEGIN
  DELETE FROM inbox_controls c WHERE c.ctid = ANY (ARRAY(
    SELECT o.ctid FROM inbox_controls o WHERE o.told_at < now() - interval '1 day' LIMIT p_limit));
  GET DIAGNOSTICS v_count = ROW_COUNT;
  DELETE FROM inbox_controls c WHERE c.ctid = ANY (ARRAY(
    SELECT o.ctid FROM inbox_controls o WHERE o.told_at IS NULL AND o.at < now() - interval '30 days' LIMIT p_limit));
  GET DIAGNOSTICS v_more = ROW_COUNT;
  v_count := v_count + v_more;
  DELETE FROM inboxes i WHERE i.ctid = ANY (ARRAY(
    SELECT o.ctid FROM inboxes o WHERE o.run_id <> '' AND o.held_until < now() - interval '1 day'
      AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = o.run_id AND r.finished_at IS NULL) LIMIT p_limit));
  GET DIAGNOSTICS v_more = ROW_COUNT;
  RETURN v_count + v_more;
END $$;

-- CreateTable
CREATE TABLE "inbox_threads" (
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "pending_seq" INTEGER,
    "pending_since" BIGINT,
    "mentioned_seq" INTEGER,
    "mentioned_since" BIGINT,
    "delivery_id" TEXT,
    "attempt" INTEGER NOT NULL DEFAULT 0,
    "delivery_seqs" INTEGER[] DEFAULT ARRAY[]::INTEGER[],
    "taken_at" TIMESTAMPTZ(3),
    "leased_until" TIMESTAMPTZ(3),
    "holder" TEXT,
    "only_mentions" BOOLEAN NOT NULL DEFAULT false,
    "run_id" TEXT NOT NULL DEFAULT '',
    "closed_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "observed_seq" INTEGER NOT NULL DEFAULT 0,
    "messages_seq" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "inbox_threads_pkey" PRIMARY KEY ("owner_id","thread_id","participant_id")
);

-- CreateTable
CREATE TABLE "inboxes" (
    "owner_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "run_id" TEXT NOT NULL DEFAULT '',
    "thread_id" TEXT,
    "holder" TEXT,
    "held_until" TIMESTAMPTZ(3),

    CONSTRAINT "inboxes_pkey" PRIMARY KEY ("owner_id","participant_id","run_id")
);

-- CreateTable
CREATE TABLE "inbox_controls" (
    "owner_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "inbox_run_id" TEXT NOT NULL DEFAULT '',
    "number" BIGSERIAL NOT NULL,
    "kind" TEXT NOT NULL,
    "thread_id" TEXT,
    "seq" INTEGER,
    "run_id" TEXT,
    "text" TEXT,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "offered_at" TIMESTAMPTZ(3),
    "told_at" TIMESTAMPTZ(3),

    CONSTRAINT "inbox_controls_pkey" PRIMARY KEY ("owner_id","participant_id","inbox_run_id","number")
);

-- CreateIndex
CREATE UNIQUE INDEX "inbox_threads_delivery_id_key" ON "inbox_threads"("delivery_id");

-- CreateIndex
CREATE INDEX "inbox_threads_owner_id_participant_id_thread_id_idx" ON "inbox_threads"("owner_id", "participant_id", "thread_id");

-- CreateIndex
CREATE INDEX "inbox_controls_owner_id_thread_id_seq_idx" ON "inbox_controls"("owner_id", "thread_id", "seq");

-- CreateIndex
CREATE INDEX "inbox_controls_told_at_idx" ON "inbox_controls"("told_at");

-- AddForeignKey
ALTER TABLE "inbox_threads" ADD CONSTRAINT "inbox_threads_owner_id_thread_id_participant_id_fkey" FOREIGN KEY ("owner_id", "thread_id", "participant_id") REFERENCES "thread_members"("owner_id", "thread_id", "participant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "inboxes" ADD CONSTRAINT "inboxes_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "inbox_controls" ADD CONSTRAINT "inbox_controls_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- ---------------------------------------------------------------------------------------------------------
-- What waits for agents and units (domain: dispatch). Nothing is queued: pending is what stands after the read position, and
-- inbox_threads says where to look first.
--
-- Locks. Whoever appends, acknowledges, removes or deletes holds the thread's head first and waits for rows of inbox_threads
-- of that thread then. Whoever takes holds its inbox's row (and then its run's), then rows of inbox_threads and, to find that
-- nothing is pending, a head; for both it never waits: what somebody else holds is left to the next time. Whoever moves or gives
-- back what it has in several threads (a digest, a stream that ends) waits for rows of inbox_threads in the order of threads, and
-- holds no head; whoever keeps several inboxes waits for their rows in the order of their keys. So nobody who posts waits for
-- an agent longer than for one short statement, and there is no cycle: who holds a row of one thread waits for one of a later
-- thread at most.

CREATE INDEX inbox_threads_ready_idx ON inbox_threads (owner_id, participant_id, pending_since)
  WHERE pending_since IS NOT NULL AND delivery_id IS NULL;
CREATE INDEX inbox_threads_mentioned_idx ON inbox_threads (owner_id, participant_id, mentioned_since)
  WHERE mentioned_since IS NOT NULL AND delivery_id IS NULL;
CREATE INDEX inbox_threads_in_hand_idx ON inbox_threads (owner_id, participant_id, leased_until) WHERE delivery_id IS NOT NULL;
CREATE INDEX inbox_controls_untold_idx ON inbox_controls (owner_id, participant_id, inbox_run_id, number) WHERE told_at IS NULL;
-- Notices that came are found without those that wait.
CREATE INDEX inbox_controls_offered_idx ON inbox_controls (owner_id, participant_id, inbox_run_id)
  WHERE told_at IS NULL AND offered_at IS NOT NULL;
-- For what empties inboxes: it looks every half minute, and finds nothing mostly.
CREATE INDEX inbox_controls_untold_at_idx ON inbox_controls (at) WHERE told_at IS NULL;
-- Of what somebody has alone, so that no other question takes it for its own: an agent had an inbox for each of its runs.
CREATE INDEX inboxes_held_idx ON inboxes (owner_id, participant_id, held_until) WHERE holder IS NOT NULL;
CREATE INDEX inboxes_of_runs_idx ON inboxes (held_until) WHERE run_id <> '';
-- What is left to runs of an agent, and which of their streams ended.
CREATE INDEX inboxes_beside_idx ON inboxes (owner_id, participant_id, held_until) WHERE run_id <> '';

CREATE TRIGGER inbox_threads_no_delete BEFORE DELETE ON inbox_threads FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();
CREATE TRIGGER inbox_threads_no_truncate BEFORE TRUNCATE ON inbox_threads FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER inboxes_no_truncate BEFORE TRUNCATE ON inboxes FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER inbox_controls_no_truncate BEFORE TRUNCATE ON inbox_controls FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- Each membership of an agent or unit, however it comes about.
CREATE FUNCTION tp_open_inbox_threads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO inbox_threads (owner_id, thread_id, participant_id)
    SELECT n.owner_id, n.thread_id, n.participant_id FROM new_members n
    JOIN participants p ON p.owner_id = n.owner_id AND p.id = n.participant_id AND p.kind <> 'HUMAN';
  RETURN NULL;
END $$;
CREATE TRIGGER thread_members_open_inbox AFTER INSERT ON thread_members REFERENCING NEW TABLE AS new_members
  FOR EACH STATEMENT EXECUTE FUNCTION tp_open_inbox_threads();

-- Those who were members before: whatever they have not read may be pending, which the first to take finds out.
INSERT INTO inbox_threads
    (owner_id, thread_id, participant_id, pending_seq, pending_since, mentioned_seq, mentioned_since, messages_seq)
  SELECT m.owner_id, m.thread_id, m.participant_id, f.seq, f.activity, f.seq, f.activity, m.ack_seq FROM thread_members m
  JOIN participants p ON p.owner_id = m.owner_id AND p.id = m.participant_id AND p.kind <> 'HUMAN'
  LEFT JOIN LATERAL (
    SELECT e.seq, (extract(epoch FROM e.at) * 1000000)::bigint AS activity FROM events e
    WHERE e.owner_id = m.owner_id AND e.thread_id = m.thread_id AND e.type = 'MESSAGE' AND e.seq > m.ack_seq
      AND m.state = 'ACTIVE' ORDER BY e.seq LIMIT 1) f ON true;

-- ---------------------------------------------------------------------------------------------------------
-- Wake-ups. What this transaction gives somebody to take is told after its commit: the statement that calls a function of
-- these asks for it by tp_woken(). A wake-up that is lost costs latency only.

CREATE FUNCTION tp_wake(p_participants text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(p_participants) > 0 THEN
    PERFORM set_config('threadpad.woken',
      ltrim(coalesce(current_setting('threadpad.woken', true), '') || ' ' || array_to_string(p_participants, ' ')), true);
  END IF;
END $$;

-- The participants whose inboxes this transaction woke.
CREATE FUNCTION tp_woken() RETURNS text[] LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(string_to_array(nullif(current_setting('threadpad.woken', true), ''), ' '), '{}')
$$;

-- Tells an agent or unit something at once, in the transaction that causes it; a person has no inbox and is told nothing.
-- p_thread, p_run: what it is about; p_seq: the thread's event that it shows. The inbox of a run is told too what is about that
-- run and, while the run is open, about its conversation. Kinds: REMOVED, READDED, RUN_ASSIGNED, RUN_CANCELLED,
-- MEMORY_POLICY_CHANGED, THREAD_DELETED, MESSAGE_RETRACTED. Waits for nobody.
CREATE FUNCTION tp_control(
  p_owner text, p_participant text, p_kind text, p_thread text DEFAULT NULL, p_run text DEFAULT NULL,
  p_seq integer DEFAULT NULL, p_text text DEFAULT NULL
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO inbox_controls (owner_id, participant_id, inbox_run_id, kind, thread_id, run_id, seq, text)
    SELECT p.owner_id, p.id, r.run_id, p_kind, p_thread, p_run, p_seq, p_text
    FROM participants p CROSS JOIN LATERAL (
      SELECT '' AS run_id
      UNION ALL
      SELECT i.run_id FROM inboxes i
      WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.run_id = p_run AND i.run_id <> ''
      UNION ALL
      SELECT i.run_id FROM runs o JOIN inboxes i ON i.owner_id = o.owner_id AND i.participant_id = o.participant_id AND i.run_id = o.id
      WHERE o.owner_id = p_owner AND o.participant_id = p_participant AND o.conversation_thread_id = p_thread
        AND o.finished_at IS NULL AND o.id IS DISTINCT FROM p_run) r
    WHERE p.owner_id = p_owner AND p.id = p_participant AND p.kind <> 'HUMAN';
  IF FOUND THEN
    PERFORM tp_wake(ARRAY[p_participant]);
  END IF;
END $$;

-- ---------------------------------------------------------------------------------------------------------
-- What is pending.

-- The first message of others that p_participant can see from p_from on, in its windows, and that is not retracted; of those that
-- mention it if p_mentions_only. Null: there is none.
CREATE FUNCTION tp_first_pending(
  p_owner text, p_thread text, p_participant text, p_from integer, p_mentions_only boolean, OUT seq integer, OUT since bigint
) LANGUAGE plpgsql STABLE AS $$
DECLARE v_window record;
BEGIN
  FOR v_window IN
    SELECT w.after_seq, w.end_seq FROM visibility_windows w
    WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_participant
      AND (w.end_seq IS NULL OR w.end_seq >= p_from) ORDER BY w.after_seq
  LOOP
    SELECT e.seq, (extract(epoch FROM e.at) * 1000000)::bigint INTO seq, since FROM events e
      WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.type = 'MESSAGE'
        AND e.seq >= greatest(p_from, v_window.after_seq) AND e.seq <= coalesce(v_window.end_seq, 2147483647)
        AND e.sender_id <> p_participant
        AND (NOT p_mentions_only OR p_participant = ANY (e.mention_ids))
        AND NOT EXISTS (SELECT 1 FROM retracted_messages r
          WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.message_seq = e.seq)
      ORDER BY e.seq LIMIT 1;
    IF FOUND THEN RETURN; END IF;
  END LOOP;
  seq := NULL;
  since := NULL;
END $$;

-- Says anew where the first pending message stands. The caller holds the thread's head and the row; p_row is as it stands.
CREATE FUNCTION tp_settle(p_row inbox_threads) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_ack integer;
  v_first record;
  v_mention record;
BEGIN
  SELECT CASE WHEN m.state = 'ACTIVE' THEN m.ack_seq END INTO v_ack FROM thread_members m
    WHERE m.owner_id = p_row.owner_id AND m.thread_id = p_row.thread_id AND m.participant_id = p_row.participant_id;
  IF v_ack IS NULL THEN
    SELECT NULL::integer AS seq, NULL::bigint AS since INTO v_first;
    v_mention := v_first;
  ELSE
    SELECT f.seq, f.since INTO v_first FROM tp_first_pending(p_row.owner_id, p_row.thread_id, p_row.participant_id,
      greatest(v_ack + 1, coalesce(p_row.pending_seq, 0)), false) f;
    SELECT f.seq, f.since INTO v_mention FROM tp_first_pending(p_row.owner_id, p_row.thread_id, p_row.participant_id,
      greatest(v_first.seq, p_row.mentioned_seq), true) f WHERE v_first.seq IS NOT NULL AND p_row.mentioned_seq IS NOT NULL;
  END IF;
  UPDATE inbox_threads i SET pending_seq = v_first.seq, pending_since = v_first.since,
      mentioned_seq = v_mention.seq, mentioned_since = v_mention.since
    WHERE i.owner_id = p_row.owner_id AND i.thread_id = p_row.thread_id AND i.participant_id = p_row.participant_id;
END $$;

-- A message was appended, under the head's lock: whoever else is active and had nothing pending has now.
CREATE FUNCTION tp_expect(p_owner text, p_thread text, p_sender text, p_seq integer, p_mentions text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE v_woken text[];
BEGIN
  WITH head AS (
    SELECT h.activity FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_thread
  ), woken AS (
    UPDATE inbox_threads i SET
      pending_seq = coalesce(i.pending_seq, p_seq), pending_since = coalesce(i.pending_since, head.activity),
      mentioned_seq = CASE WHEN i.participant_id = ANY (p_mentions) THEN coalesce(i.mentioned_seq, p_seq) ELSE i.mentioned_seq END,
      mentioned_since = CASE WHEN i.participant_id = ANY (p_mentions) THEN coalesce(i.mentioned_since, head.activity) ELSE i.mentioned_since END
    FROM head
    WHERE i.owner_id = p_owner AND i.thread_id = p_thread AND i.participant_id <> p_sender
      AND (i.pending_seq IS NULL OR (i.mentioned_seq IS NULL AND i.participant_id = ANY (p_mentions)))
      AND EXISTS (SELECT 1 FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_thread
                    AND m.participant_id = i.participant_id AND m.state = 'ACTIVE')
    RETURNING i.participant_id)
  SELECT array_agg(woken.participant_id) INTO v_woken FROM woken;
  IF v_woken IS NOT NULL THEN
    PERFORM tp_wake(v_woken);
  END IF;
END $$;

-- The delivery in flight is over. p_acked: it was acknowledged up to there, which may be repeated; null: it was not, and its
-- acknowledgement is refused from now on.
CREATE FUNCTION tp_end_delivery(p_row inbox_threads, p_acked integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE inbox_threads i SET
      delivery_id = NULL, attempt = 0, delivery_seqs = '{}', taken_at = NULL, leased_until = NULL, holder = NULL, run_id = '',
      only_mentions = false,
      closed_ids = CASE WHEN p_acked IS NULL THEN i.closed_ids ELSE (ARRAY[p_row.delivery_id] || i.closed_ids)[1:16] END,
      -- Of others than those that mention it nothing was handed out, where only mentions are.
      messages_seq = CASE WHEN p_row.only_mentions THEN i.messages_seq ELSE greatest(i.messages_seq, p_acked) END
    WHERE i.owner_id = p_row.owner_id AND i.thread_id = p_row.thread_id AND i.participant_id = p_row.participant_id;
  PERFORM tp_wake(ARRAY[p_row.participant_id]);
END $$;

-- Acknowledges the delivery in flight: up to p_seq, or as far as it goes. p_repeatable: one that was acknowledged before does
-- nothing. Any other is CONFLICT and moves nothing. The caller holds the thread's head.
CREATE FUNCTION tp_acknowledge_delivery(
  p_owner text, p_thread text, p_participant text, p_delivery text, p_seq integer, p_repeatable boolean DEFAULT true
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_row inbox_threads;
  v_seq integer;
BEGIN
  IF p_delivery !~ '^dlv_[0-7][0-9a-hjkmnp-tv-z]{25}$' THEN
    PERFORM tp_fail('NOT_FOUND', 'Delivery not found.', '{"field":"deliveryId"}');
  END IF;
  SELECT i.* INTO v_row FROM inbox_threads i
    WHERE i.owner_id = p_owner AND i.thread_id = p_thread AND i.participant_id = p_participant FOR NO KEY UPDATE;
  IF v_row.delivery_id IS DISTINCT FROM p_delivery THEN
    IF p_repeatable AND p_delivery = ANY (v_row.closed_ids) THEN RETURN; END IF;
    PERFORM tp_fail('CONFLICT', 'This delivery is not in flight in this thread: it was acknowledged, or handed out again since.',
                    '{"field":"deliveryId"}');
  END IF;
  v_seq := coalesce(p_seq, v_row.delivery_seqs[cardinality(v_row.delivery_seqs)]);
  PERFORM tp_end_delivery(v_row, v_seq);
  PERFORM tp_move_read_position(p_owner, p_thread, p_participant, v_seq);
  PERFORM tp_settle(v_row);
END $$;

-- p_sources and, as far as 50 go, the messages that this inbox of the sender has in hand, in whichever thread.
CREATE FUNCTION tp_with_messages_in_hand(
  p_owner text, p_participant text, p_run text, p_delivery text, p_sources text[]
) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT (p_sources || coalesce(array_agg(h.id ORDER BY h.since, h.seq), '{}'))[1:50] FROM (
    SELECT e.id, i.pending_since AS since, e.seq
    FROM inbox_threads i CROSS JOIN LATERAL unnest(i.delivery_seqs) AS s(seq)
    JOIN events e ON e.owner_id = i.owner_id AND e.thread_id = i.thread_id AND e.seq = s.seq
    WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.delivery_id IS NOT NULL
      AND (i.delivery_id = p_delivery OR (i.run_id = p_run AND i.leased_until > clock_timestamp()))
      AND e.id <> ALL (p_sources)) h
$$;

-- What of the record is otherwise since agents have inboxes, memories and runs. Each function is the one of before but for
-- what is said here. A new parameter has a default, which lets a process of the version before go on while this one is
-- brought in.

-- Says where a credential ended because its run did, and where it has not ended: it expires at another time.
CREATE OR REPLACE FUNCTION tp_log_ending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.revoked_at IS NULL THEN
    INSERT INTO revocation_log (credential_id, reason) VALUES (OLD.id, 'EXPIRY_MOVED');
    RETURN NULL;
  END IF;
  INSERT INTO revocation_log (credential_id, reason) VALUES (OLD.id,
    CASE WHEN EXISTS (SELECT 1 FROM runs r WHERE r.id = OLD.run_id AND r.finished_at IS NOT NULL) THEN 'RUN_CLOSED' END);
  RETURN NULL;
END $$;

-- Says anew what is pending. A delivery that lies wholly before the new position is closed. The row is held
-- before anything is read, so that nobody takes meanwhile what is acknowledged here.
ALTER FUNCTION tp_acknowledge(text, text, text, integer) RENAME TO tp_move_read_position;
CREATE FUNCTION tp_acknowledge(p_owner text, p_thread text, p_participant text, p_seq integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE v_row inbox_threads;
BEGIN
  SELECT i.* INTO v_row FROM inbox_threads i
    WHERE i.owner_id = p_owner AND i.thread_id = p_thread AND i.participant_id = p_participant FOR NO KEY UPDATE;
  PERFORM tp_move_read_position(p_owner, p_thread, p_participant, p_seq);
  IF v_row.thread_id IS NULL THEN RETURN; END IF;
  IF v_row.delivery_seqs[cardinality(v_row.delivery_seqs)] <= p_seq THEN
    PERFORM tp_end_delivery(v_row, p_seq);
  ELSIF v_row.delivery_id IS NULL AND v_row.messages_seq < p_seq THEN
    UPDATE inbox_threads i SET messages_seq = p_seq
      WHERE i.owner_id = p_owner AND i.thread_id = p_thread AND i.participant_id = p_participant;
  END IF;
  IF v_row.pending_seq <= p_seq THEN
    PERFORM tp_settle(v_row);
  END IF;
END $$;

DROP FUNCTION append_message(text, text, text, text, text, jsonb, jsonb, text[], text[], text, text, integer, text, integer, text, integer, text[]);

-- Appends a message. One round trip; everything that must hold is checked under the thread's lock, but for what no table
-- knows: of the sources, p_seen are those that the caller has found visible to the sender elsewhere. p_run: the run that
-- writes it. p_delivery, which must be in flight, is acknowledged with it: up to p_ack, or else as far as it goes. The messages that the
-- sender has in hand are added to its sources. Wakes the inboxes that have something to take now.
-- Errors: NOT_FOUND, IDEMPOTENCY_KEY_REUSED, PARTICIPANT_NOT_ACTIVE, CONFLICT, INVALID_CURSOR, STALE_VIEW, LOOP_LIMIT.
CREATE FUNCTION append_message(
  p_owner text, p_thread text, p_sender text, p_id text, p_content text, p_data jsonb, p_context jsonb,
  p_mentions text[], p_sources text[], p_key text, p_hash text,
  p_if_nothing_after integer, p_if_nothing_after_tag text, p_ack integer, p_ack_tag text, p_max_hops integer,
  p_seen text[] DEFAULT '{}', p_run text DEFAULT NULL, p_delivery text DEFAULT NULL
) RETURNS SETOF timeline_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_head thread_heads;
  v_member thread_members;
  v_kind participant_kinds;
  v_seq integer;
  v_hops integer;
  v_first record;
  v_end integer;
  v_unseen integer;
  v_latest record;
  v_sources text[] := p_sources;
BEGIN
  v_head := tp_lock_thread(p_owner, p_thread, p_sender);

  IF p_key IS NOT NULL THEN
    SELECT e.seq, e.input_hash INTO v_first FROM events e
      WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.sender_id = p_sender AND e.client_key = p_key;
    IF FOUND THEN
      IF v_first.input_hash IS DISTINCT FROM p_hash THEN
        PERFORM tp_fail('IDEMPOTENCY_KEY_REUSED', 'This idempotencyKey was used before with another input.');
      END IF;
      -- It was answered before: what is handed out again for it is done.
      PERFORM tp_acknowledge_delivery(p_owner, p_thread, p_sender, p_delivery, NULL) WHERE p_delivery IS NOT NULL AND EXISTS (
        SELECT 1 FROM inbox_threads i WHERE i.delivery_id = p_delivery
          AND i.owner_id = p_owner AND i.thread_id = p_thread AND i.participant_id = p_sender);
      RETURN QUERY SELECT r.* FROM timeline_rows r
        WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = v_first.seq;
      RETURN;
    END IF;
  END IF;

  UPDATE thread_members m SET sent_count = m.sent_count + 1
    WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_sender AND m.state = 'ACTIVE'
    RETURNING m.* INTO v_member;
  IF NOT FOUND THEN
    PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in this thread; only an active member may post.');
  END IF;

  IF p_if_nothing_after IS NOT NULL OR p_ack IS NOT NULL THEN
    SELECT e.seq INTO v_end FROM events e
      WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND p_sender <> ALL (e.hidden_from)
      ORDER BY e.seq DESC LIMIT 1;
  END IF;
  IF p_ack IS NOT NULL THEN
    IF p_ack > v_end THEN
      PERFORM tp_fail('INVALID_CURSOR', 'This cursor does not belong to this log, or lies beyond its end.', '{"field":"acknowledgeUpTo"}');
    END IF;
    PERFORM tp_require_position(p_owner, p_thread, p_ack, p_ack_tag, 'acknowledgeUpTo');
  END IF;
  IF p_if_nothing_after IS NOT NULL THEN
    IF p_if_nothing_after > v_end THEN
      PERFORM tp_fail('INVALID_CURSOR', 'This cursor does not belong to this log, or lies beyond its end.', '{"field":"ifNothingAfter"}');
    END IF;
    PERFORM tp_require_position(p_owner, p_thread, p_if_nothing_after, p_if_nothing_after_tag, 'ifNothingAfter');
    IF v_end > p_if_nothing_after THEN
      -- Positions are gapless, so a window's length is its number of events; the few that hide are taken off.
      SELECT coalesce(sum(least(coalesce(w.end_seq, v_end), v_end) - greatest(w.after_seq, p_if_nothing_after + 1, 1) + 1), 0)
        INTO v_unseen FROM visibility_windows w
        WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_sender
          AND coalesce(w.end_seq, v_end) > p_if_nothing_after;
      SELECT v_unseen - count(*) INTO v_unseen FROM events e
        JOIN visibility_windows w ON w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_sender
          AND w.after_seq <= e.seq AND coalesce(w.end_seq, v_end) >= e.seq
        WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.type = 'SYSTEM'
          AND e.seq > p_if_nothing_after AND e.seq <= v_end AND p_sender = ANY (e.hidden_from);
      SELECT e.seq, e.id INTO v_latest FROM events e
        WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.seq = v_end;
      PERFORM tp_fail('STALE_VIEW', 'There is something newer than ifNothingAfter. Read it, then decide again.',
        jsonb_build_object(
          'unseen', v_unseen,
          'unseenIds', (SELECT coalesce(jsonb_agg(r.id ORDER BY r.seq), '[]') FROM page_events(
              p_owner, p_thread, p_sender,
              (SELECT array_agg(w.after_seq ORDER BY w.after_seq) FROM visibility_windows w WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_sender),
              (SELECT array_agg(coalesce(w.end_seq, v_end) ORDER BY w.after_seq) FROM visibility_windows w WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_sender),
              p_if_nothing_after + 1, NULL, 20, false) r),
          'latestCursor', tp_cursor(p_thread, v_latest.seq, v_latest.id)));
    END IF;
  END IF;

  IF cardinality(p_mentions) > 0 AND EXISTS (
    SELECT 1 FROM unnest(p_mentions) AS i(id) WHERE NOT EXISTS (
      SELECT 1 FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = i.id)
  ) THEN
    PERFORM tp_fail('NOT_FOUND', 'Participant not found.', '{"field":"mentionIds"}');
  END IF;
  IF cardinality(p_sources) > 0 AND EXISTS (
    SELECT 1 FROM unnest(p_sources) AS i(id) WHERE i.id <> ALL (p_seen) AND NOT EXISTS (
      SELECT 1 FROM events e WHERE e.id = i.id AND e.owner_id = p_owner
        AND EXISTS (SELECT 1 FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = e.thread_id)
        AND tp_visible(p_owner, e.thread_id, e.seq, e.hidden_from, p_sender))
  ) THEN
    PERFORM tp_fail('NOT_FOUND', 'Source not found.', '{"field":"sourceIds"}');
  END IF;

  SELECT p.kind INTO v_kind FROM participants p WHERE p.owner_id = p_owner AND p.id = p_sender;
  IF v_kind <> 'HUMAN' THEN
    v_sources := tp_with_messages_in_hand(p_owner, p_sender, coalesce(p_run, ''), p_delivery, p_sources);
  END IF;
  v_hops := CASE WHEN v_kind = 'HUMAN' THEN 0 ELSE v_head.agent_hops + 1 END;
  IF p_max_hops > 0 AND v_hops > p_max_hops THEN
    PERFORM tp_fail('LOOP_LIMIT', 'Too many messages by agents since the last human message.', jsonb_build_object('limit', p_max_hops));
  END IF;

  v_seq := v_head.last_seq + 1;
  INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, sender_id, sender_no, agent_hops, context,
                      mention_ids, source_ids, run_id, client_key, input_hash, hidden_from)
    VALUES (p_owner, p_thread, v_seq, p_id, 'MESSAGE', tp_next_at(v_head), v_head.message_count + 1, p_sender,
            v_member.sent_count, v_hops, p_context, p_mentions, v_sources, p_run, p_key, CASE WHEN p_key IS NOT NULL THEN p_hash END, '{}');
  INSERT INTO message_bodies (owner_id, thread_id, seq, content, data) VALUES (p_owner, p_thread, v_seq, p_content, p_data);
  IF p_delivery IS NOT NULL THEN
    PERFORM tp_acknowledge_delivery(p_owner, p_thread, p_sender, p_delivery, p_ack, false);
  ELSIF p_ack IS NOT NULL THEN
    PERFORM tp_acknowledge(p_owner, p_thread, p_sender, p_ack);
  END IF;
  PERFORM tp_expect(p_owner, p_thread, p_sender, v_seq, p_mentions);
  RETURN QUERY SELECT r.* FROM timeline_rows r WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = v_seq;
END $$;

DROP FUNCTION acknowledge(text, text, text, integer, text);

-- p_delivery: the delivery in flight, acknowledged up to p_seq or, without one, as far as it goes.
-- Errors: NOT_FOUND, INVALID_CURSOR, CONFLICT.
CREATE FUNCTION acknowledge(
  p_owner text, p_thread text, p_participant text, p_seq integer, p_tag text, p_delivery text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_member thread_members;
  v_end integer;
BEGIN
  PERFORM tp_lock_thread(p_owner, p_thread, p_participant);
  IF p_seq IS NOT NULL THEN
    SELECT m.* INTO v_member FROM thread_members m
      WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_participant;
    IF v_member.state = 'REMOVED' THEN
      v_end := v_member.since_seq;
    ELSE
      SELECT e.seq INTO v_end FROM events e
        WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND p_participant <> ALL (e.hidden_from)
        ORDER BY e.seq DESC LIMIT 1;
    END IF;
    IF p_seq > v_end THEN
      PERFORM tp_fail('INVALID_CURSOR', 'This cursor does not belong to this log, or lies beyond its end.', '{"field":"upTo"}');
    END IF;
    PERFORM tp_require_position(p_owner, p_thread, p_seq, p_tag, 'upTo');
  END IF;
  IF p_delivery IS NOT NULL THEN
    PERFORM tp_acknowledge_delivery(p_owner, p_thread, p_participant, p_delivery, p_seq);
  ELSE
    PERFORM tp_acknowledge(p_owner, p_thread, p_participant, p_seq);
  END IF;
END $$;

-- As before, but what calls left under their names, which may be as many as its events, is emptied with those: until then a name
-- whose thread is gone counts for nothing.
CREATE OR REPLACE FUNCTION delete_thread(
  p_owner text, p_thread text, p_audit_id text, p_credential text, OUT members text[], OUT scratchpad_id text
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tp_lock_thread(p_owner, p_thread, NULL);
  SELECT s.id INTO scratchpad_id FROM scratchpads s WHERE s.owner_id = p_owner AND s.thread_id = p_thread;
  UPDATE threads t SET deleted_at = now(), set_hash = NULL WHERE t.owner_id = p_owner AND t.id = p_thread;
  DELETE FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_thread;
  INSERT INTO audit_log (id, owner_id, act, credential_id, subject_id) VALUES (p_audit_id, p_owner, 'thread.deleted', p_credential, p_thread);
  members := ARRAY(SELECT m.participant_id FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_thread);
END $$;

-- Memories, runs and what calls left under their names, which may be many, are emptied before their agents or threads go and would take them along in one piece.
CREATE OR REPLACE FUNCTION empty_deleted(p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_thread threads;
  v_user users;
  v_ids text[];
  v_count integer;
BEGIN
  SELECT t.* INTO v_thread FROM threads t WHERE t.deleted_at IS NOT NULL
    ORDER BY t.deleted_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    DELETE FROM events e WHERE e.owner_id = v_thread.owner_id AND e.thread_id = v_thread.id AND e.seq > (
      SELECT max(b.seq) - p_limit FROM events b WHERE b.owner_id = v_thread.owner_id AND b.thread_id = v_thread.id);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count = 0 THEN
      DELETE FROM visibility_windows w WHERE w.ctid = ANY (ARRAY(
        SELECT b.ctid FROM visibility_windows b
        WHERE b.owner_id = v_thread.owner_id AND b.thread_id = v_thread.id LIMIT p_limit));
      GET DIAGNOSTICS v_count = ROW_COUNT;
    END IF;
    IF v_count = 0 THEN
      DELETE FROM idempotency_records k WHERE k.ctid = ANY (ARRAY(
        SELECT b.ctid FROM idempotency_records b
        WHERE b.owner_id = v_thread.owner_id AND b.thread_id = v_thread.id LIMIT p_limit));
      GET DIAGNOSTICS v_count = ROW_COUNT;
    END IF;
    IF v_count = 0 THEN
      DELETE FROM threads t WHERE t.id = v_thread.id;
      v_count := 1;
    END IF;
    RETURN v_count;
  END IF;

  -- Heads before threads, as every append takes them; and a head that somebody holds is waited for only while no other
  -- is held, since an extension takes two in an order of its own. The user's row must not stop those appends' foreign keys.
  SELECT u.* INTO v_user FROM users u WHERE u.deleted_at IS NOT NULL
    ORDER BY u.deleted_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  v_ids := ARRAY(SELECT h.thread_id FROM thread_heads h WHERE h.owner_id = v_user.id LIMIT p_limit FOR UPDATE SKIP LOCKED);
  IF cardinality(v_ids) = 0 THEN
    v_ids := ARRAY(SELECT h.thread_id FROM thread_heads h WHERE h.owner_id = v_user.id LIMIT 1 FOR UPDATE);
  END IF;
  IF cardinality(v_ids) = 0 THEN
    -- Threads whose head is gone already.
    v_ids := ARRAY(SELECT t.id FROM threads t WHERE t.owner_id = v_user.id AND t.deleted_at IS NULL LIMIT p_limit);
  END IF;
  UPDATE threads t SET deleted_at = now(), set_hash = NULL WHERE t.id = ANY (v_ids) AND t.deleted_at IS NULL;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  DELETE FROM thread_heads h WHERE h.owner_id = v_user.id AND h.thread_id = ANY (v_ids);
  IF v_count > 0 OR EXISTS (SELECT 1 FROM threads t WHERE t.owner_id = v_user.id) THEN
    -- Another worker may hold the last of them: come back.
    RETURN v_count;
  END IF;
  DELETE FROM memory_entries m WHERE m.ctid = ANY (ARRAY(
    SELECT b.ctid FROM memory_entries b WHERE b.owner_id = v_user.id LIMIT p_limit));
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count > 0 THEN
    RETURN v_count;
  END IF;
  DELETE FROM idempotency_records k WHERE k.ctid = ANY (ARRAY(
    SELECT b.ctid FROM idempotency_records b WHERE b.owner_id = v_user.id LIMIT p_limit));
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count > 0 THEN
    RETURN v_count;
  END IF;
  -- The newest first: a run is older than those that were delegated in it, and would take them along.
  DELETE FROM runs r WHERE r.owner_id = v_user.id AND r.id = ANY (ARRAY(
    SELECT b.id FROM runs b WHERE b.owner_id = v_user.id ORDER BY b.id DESC LIMIT p_limit));
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count > 0 THEN
    RETURN v_count;
  END IF;
  DELETE FROM participants p WHERE p.owner_id = v_user.id AND p.id = ANY (ARRAY(
    SELECT b.id FROM participants b WHERE b.owner_id = v_user.id LIMIT p_limit));
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count = 0 THEN
    DELETE FROM users u WHERE u.id = v_user.id;
    v_count := 1;
  END IF;
  RETURN v_count;
END $$;

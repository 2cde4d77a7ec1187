-- A message may derive from entries of scratchpads, whose store is not this one. The default lets a process of the version
-- before go on posting while this one is brought in.
DROP FUNCTION append_message(text, text, text, text, text, jsonb, jsonb, text[], text[], text, text, integer, text, integer, text, integer);

-- Appends a message. One round trip; everything that must hold is checked under the thread's lock, but for what no table
-- knows: of the sources, p_seen are those that the caller has found visible to the sender elsewhere.
-- Errors: NOT_FOUND, IDEMPOTENCY_KEY_REUSED, PARTICIPANT_NOT_ACTIVE, INVALID_CURSOR, STALE_VIEW, LOOP_LIMIT.
CREATE FUNCTION append_message(
  p_owner text, p_thread text, p_sender text, p_id text, p_content text, p_data jsonb, p_context jsonb,
  p_mentions text[], p_sources text[], p_key text, p_hash text,
  p_if_nothing_after integer, p_if_nothing_after_tag text, p_ack integer, p_ack_tag text, p_max_hops integer,
  p_seen text[] DEFAULT '{}'
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
BEGIN
  v_head := tp_lock_thread(p_owner, p_thread, p_sender);

  IF p_key IS NOT NULL THEN
    SELECT e.seq, e.input_hash INTO v_first FROM events e
      WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.sender_id = p_sender AND e.client_key = p_key;
    IF FOUND THEN
      IF v_first.input_hash IS DISTINCT FROM p_hash THEN
        PERFORM tp_fail('IDEMPOTENCY_KEY_REUSED', 'This idempotencyKey was used before with another input.');
      END IF;
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
  v_hops := CASE WHEN v_kind = 'HUMAN' THEN 0 ELSE v_head.agent_hops + 1 END;
  IF p_max_hops > 0 AND v_hops > p_max_hops THEN
    PERFORM tp_fail('LOOP_LIMIT', 'Too many messages by agents since the last human message.', jsonb_build_object('limit', p_max_hops));
  END IF;

  v_seq := v_head.last_seq + 1;
  INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, sender_id, sender_no, agent_hops, context,
                      mention_ids, source_ids, client_key, input_hash, hidden_from)
    VALUES (p_owner, p_thread, v_seq, p_id, 'MESSAGE', tp_next_at(v_head), v_head.message_count + 1, p_sender,
            v_member.sent_count, v_hops, p_context, p_mentions, p_sources, p_key, CASE WHEN p_key IS NOT NULL THEN p_hash END, '{}');
  INSERT INTO message_bodies (owner_id, thread_id, seq, content, data) VALUES (p_owner, p_thread, v_seq, p_content, p_data);
  IF p_ack IS NOT NULL THEN
    PERFORM tp_acknowledge(p_owner, p_thread, p_sender, p_ack);
  END IF;
  RETURN QUERY SELECT r.* FROM timeline_rows r WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = v_seq;
END $$;

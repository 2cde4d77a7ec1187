-- What Prisma's schema language cannot say: the record is append-only and gapless, and every write to a
-- timeline is one function, so one round trip.
--
-- Conventions. A broken rule raises SQLSTATE TP001: MESSAGE is the error code, DETAIL a JSON object with the
-- message for people and the facts. Functions that write take the lock on the thread's thread_heads row first
-- and hold it to commit; that lock is what orders a thread's events. A later thread (larger set) is always
-- locked after the earlier one, so there is no cycle of locks.

CREATE FUNCTION tp_fail(p_code text, p_message text, p_facts jsonb DEFAULT '{}') RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING
    ERRCODE = 'TP001',
    MESSAGE = p_code,
    DETAIL = (p_facts || jsonb_build_object('message', p_message))::text;
END $$;

-- The cursor of a timeline position; the same text as src/shared/cursors.ts makes.
CREATE FUNCTION tp_cursor(p_thread text, p_seq integer, p_id text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT translate(
    encode(convert_to(
      't1 ' || split_part(p_thread, '_', 2) || ' ' || p_seq || ' ' ||
      CASE WHEN p_seq = 0 THEN '000000' ELSE right(p_id, 6) END, 'UTF8'), 'base64'),
    E'+/=\n', '-_')
$$;

-- ---------------------------------------------------------------------------------------------------------
-- The record refuses to be rewritten.

-- A thread's rows may go once the thread (or its owner) is deleted, never before.
CREATE FUNCTION tp_thread_is_deleted(p_owner text, p_thread text) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT NOT EXISTS (SELECT 1 FROM threads t WHERE t.id = p_thread AND t.deleted_at IS NULL)
      OR NOT EXISTS (SELECT 1 FROM users u WHERE u.id = p_owner AND u.deleted_at IS NULL)
$$;

CREATE FUNCTION tp_refuse_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: UPDATE is refused', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION tp_refuse_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT tp_thread_is_deleted(OLD.owner_id, OLD.thread_id) THEN
    RAISE EXCEPTION '% is append-only: DELETE is refused while its thread exists', TG_TABLE_NAME
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN OLD;
END $$;

CREATE FUNCTION tp_refuse_delete_always() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: DELETE is refused', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION tp_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% holds the record: TRUNCATE is refused', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION tp_refuse_update();
CREATE TRIGGER events_no_delete BEFORE DELETE ON events FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();
CREATE TRIGGER message_bodies_no_update BEFORE UPDATE ON message_bodies FOR EACH ROW EXECUTE FUNCTION tp_refuse_update();
CREATE TRIGGER message_bodies_no_delete BEFORE DELETE ON message_bodies FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();
CREATE TRIGGER retracted_messages_no_update BEFORE UPDATE ON retracted_messages FOR EACH ROW EXECUTE FUNCTION tp_refuse_update();
CREATE TRIGGER retracted_messages_no_delete BEFORE DELETE ON retracted_messages FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();
CREATE TRIGGER thread_members_no_delete BEFORE DELETE ON thread_members FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();
CREATE TRIGGER visibility_windows_no_delete BEFORE DELETE ON visibility_windows FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();
CREATE TRIGGER revocation_log_no_update BEFORE UPDATE ON revocation_log FOR EACH ROW EXECUTE FUNCTION tp_refuse_update();
CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log FOR EACH ROW EXECUTE FUNCTION tp_refuse_update();
CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete_always();

CREATE TRIGGER users_no_truncate BEFORE TRUNCATE ON users FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER threads_no_truncate BEFORE TRUNCATE ON threads FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER thread_heads_no_truncate BEFORE TRUNCATE ON thread_heads FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER thread_members_no_truncate BEFORE TRUNCATE ON thread_members FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER visibility_windows_no_truncate BEFORE TRUNCATE ON visibility_windows FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER message_bodies_no_truncate BEFORE TRUNCATE ON message_bodies FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER retracted_messages_no_truncate BEFORE TRUNCATE ON retracted_messages FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER revocation_log_no_truncate BEFORE TRUNCATE ON revocation_log FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- Gaplessness: whoever inserts an event, by whatever way, moves the head by exactly one in the same statement.
CREATE FUNCTION tp_advance_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE thread_heads h SET
    last_seq = NEW.seq,
    last_at = NEW.at,
    activity = (extract(epoch FROM NEW.at) * 1000000)::bigint,
    message_count = NEW.message_no,
    tail_hidden = cardinality(NEW.hidden_from) > 0,
    agent_hops = coalesce(NEW.agent_hops, h.agent_hops)
  WHERE h.owner_id = NEW.owner_id AND h.thread_id = NEW.thread_id
    AND h.last_seq = NEW.seq - 1
    AND h.last_at < NEW.at
    AND h.message_count = NEW.message_no - (NEW.type = 'MESSAGE')::integer;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'event % of % does not follow the head of its thread', NEW.seq, NEW.thread_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER events_advance_head BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION tp_advance_head();

-- ---------------------------------------------------------------------------------------------------------
-- Reading.

-- One row per event with its body: what services, pages and live delivery read. The LIMITs keep the planner from
-- joining whole tables where it guesses that a range is large: each event's parts are looked up by key.
CREATE VIEW timeline_rows AS
SELECT
  e.owner_id, e.thread_id, e.seq, e.id, e.type::text AS type,
  to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
  e.sender_id, e.agent_hops, e.context, e.mention_ids, e.source_ids, e.run_id, e.client_key,
  b.content, coalesce(b.data, e.data) AS data,
  e.subject_id, e.to_state::text AS to_state, e.actor_id, e.target_seq, e.reason,
  e.kind, e.related_thread_id, e.hidden_from,
  r.retraction_seq
FROM events e
LEFT JOIN LATERAL (
  SELECT m.content, m.data FROM message_bodies m
  WHERE m.owner_id = e.owner_id AND m.thread_id = e.thread_id AND m.seq = e.seq LIMIT 1) b ON true
LEFT JOIN LATERAL (
  SELECT m.retraction_seq FROM retracted_messages m
  WHERE m.owner_id = e.owner_id AND m.thread_id = e.thread_id AND m.message_seq = e.seq LIMIT 1) r ON true;

-- A cursor must meet the event it was made of.
CREATE FUNCTION tp_require_position(p_owner text, p_thread text, p_seq integer, p_tag text, p_field text) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_seq > 0 AND NOT EXISTS (
    SELECT 1 FROM events e
    WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.seq = p_seq AND right(e.id, 6) = p_tag
  ) THEN
    PERFORM tp_fail('INVALID_CURSOR', 'This cursor does not belong to this log, or lies beyond its end.',
                    jsonb_build_object('field', p_field));
  END IF;
END $$;

-- Up to p_limit events of the closed ranges [p_lows[i], p_highs[i]] (ascending, disjoint), from p_from on or, if
-- p_backward, from p_from down, in that order. p_types null: all. Ranges that cannot contribute are not touched.
CREATE FUNCTION page_events(
  p_owner text, p_thread text, p_viewer text, p_lows integer[], p_highs integer[],
  p_from integer, p_types text[], p_limit integer, p_backward boolean
) RETURNS SETOF timeline_rows
LANGUAGE plpgsql STABLE ROWS 50 AS $$
DECLARE
  v_count integer := coalesce(array_length(p_lows, 1), 0);
  v_left integer := p_limit;
  v_found integer;
  v_low integer;
  v_high integer;
  v_i integer;
  v_type timeline_event_types[] := p_types::timeline_event_types[];
BEGIN
  FOR v_step IN 1 .. v_count LOOP
    EXIT WHEN v_left <= 0;
    v_i := CASE WHEN p_backward THEN v_count + 1 - v_step ELSE v_step END;
    v_low := CASE WHEN p_backward THEN p_lows[v_i] ELSE greatest(p_lows[v_i], p_from) END;
    v_high := CASE WHEN p_backward THEN least(p_highs[v_i], p_from) ELSE p_highs[v_i] END;
    CONTINUE WHEN v_low > v_high;
    IF v_type IS NULL AND p_backward THEN
      RETURN QUERY SELECT r.* FROM timeline_rows r
        WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq BETWEEN v_low AND v_high
          AND (p_viewer IS NULL OR p_viewer <> ALL (r.hidden_from))
        ORDER BY r.seq DESC LIMIT v_left;
    ELSIF v_type IS NULL THEN
      RETURN QUERY SELECT r.* FROM timeline_rows r
        WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq BETWEEN v_low AND v_high
          AND (p_viewer IS NULL OR p_viewer <> ALL (r.hidden_from))
        ORDER BY r.seq LIMIT v_left;
    ELSIF p_backward THEN
      RETURN QUERY SELECT r.* FROM (
          SELECT c.seq FROM unnest(v_type) AS t(type) CROSS JOIN LATERAL (
            SELECT e.seq FROM events e
            WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.type = t.type AND e.seq BETWEEN v_low AND v_high
              AND (p_viewer IS NULL OR p_viewer <> ALL (e.hidden_from))
            ORDER BY e.seq DESC LIMIT v_left) c
          ORDER BY c.seq DESC LIMIT v_left) s
        JOIN timeline_rows r ON r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = s.seq
        ORDER BY r.seq DESC;
    ELSE
      RETURN QUERY SELECT r.* FROM (
          SELECT c.seq FROM unnest(v_type) AS t(type) CROSS JOIN LATERAL (
            SELECT e.seq FROM events e
            WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.type = t.type AND e.seq BETWEEN v_low AND v_high
              AND (p_viewer IS NULL OR p_viewer <> ALL (e.hidden_from))
            ORDER BY e.seq LIMIT v_left) c
          ORDER BY c.seq LIMIT v_left) s
        JOIN timeline_rows r ON r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = s.seq
        ORDER BY r.seq;
    END IF;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    v_left := v_left - v_found;
  END LOOP;
END $$;

-- May this viewer (null: the owner) see this position? The rule of windows, for one event.
CREATE FUNCTION tp_visible(p_owner text, p_thread text, p_seq integer, p_hidden_from text[], p_viewer text) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT p_viewer IS NULL OR (p_viewer <> ALL (p_hidden_from) AND EXISTS (
    SELECT 1 FROM visibility_windows w
    WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_viewer
      AND w.after_seq <= p_seq AND (w.end_seq IS NULL OR w.end_seq >= p_seq)))
$$;

-- ---------------------------------------------------------------------------------------------------------
-- Writing.

-- Takes the thread's lock. NOT_FOUND for a thread that is not there, is deleted, or that p_member is no member of.
CREATE FUNCTION tp_lock_thread(p_owner text, p_thread text, p_member text) RETURNS thread_heads
LANGUAGE plpgsql AS $$
DECLARE v_head thread_heads;
BEGIN
  SELECT h.* INTO v_head FROM thread_heads h
    WHERE h.owner_id = p_owner AND h.thread_id = p_thread FOR NO KEY UPDATE;
  IF v_head.thread_id IS NULL OR (p_member IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM thread_members m
    WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_member
  )) THEN
    PERFORM tp_fail('NOT_FOUND', 'Thread not found.');
  END IF;
  RETURN v_head;
END $$;

CREATE FUNCTION tp_next_at(p_head thread_heads) RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$
  SELECT greatest(clock_timestamp(), p_head.last_at + interval '1 microsecond')
$$;

-- Moves a read position forward (never back) and keeps the numbers that unreadCount is made of.
CREATE FUNCTION tp_acknowledge(p_owner text, p_thread text, p_participant text, p_seq integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_member thread_members;
  v_window visibility_windows;
  v_number integer;
  v_sent integer;
  v_retracted integer;
BEGIN
  SELECT * INTO v_member FROM thread_members m
    WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_participant;
  IF p_seq <= v_member.ack_seq THEN RETURN; END IF;

  SELECT * INTO v_window FROM visibility_windows w
    WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_participant AND w.after_seq < p_seq
    ORDER BY w.after_seq DESC LIMIT 1;
  SELECT e.message_no INTO v_number FROM events e
    WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.seq = least(p_seq, coalesce(v_window.end_seq, p_seq));
  SELECT e.sender_no INTO v_sent FROM events e
    WHERE e.owner_id = p_owner AND e.thread_id = p_thread AND e.sender_id = p_participant AND e.seq <= p_seq
    ORDER BY e.seq DESC LIMIT 1;
  v_retracted := tp_count_retracted(p_owner, p_thread, p_participant, v_member.ack_seq + 1, p_seq, 0,
    CASE WHEN v_member.state = 'ACTIVE' THEN NULL ELSE v_member.since_seq END);

  UPDATE thread_members m SET
    ack_seq = p_seq,
    ack_visible = v_window.visible_before + v_number - v_window.after_no,
    ack_sent = coalesce(v_sent, 0),
    unread_retracted = m.unread_retracted - v_retracted
  WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_participant;
END $$;

-- Messages of others in [p_low, p_high], visible to p_participant, retracted at a position in (p_after, p_until].
CREATE FUNCTION tp_count_retracted(
  p_owner text, p_thread text, p_participant text, p_low integer, p_high integer, p_after integer, p_until integer
) RETURNS integer
LANGUAGE sql STABLE AS $$
  -- Windows do not overlap, and each is one range of the index, however many there are.
  SELECT coalesce(sum(c.count), 0)::integer FROM visibility_windows w CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM retracted_messages r
    WHERE r.owner_id = p_owner AND r.thread_id = p_thread
      AND r.message_seq BETWEEN greatest(p_low, w.after_seq + 1) AND least(p_high, w.end_seq)
      AND r.retraction_seq > p_after AND (p_until IS NULL OR r.retraction_seq <= p_until)
      AND r.sender_id <> p_participant) c
  WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_participant
    AND w.after_seq < p_high AND (w.end_seq IS NULL OR w.end_seq >= p_low)
$$;

-- Appends a message. One round trip; everything that must hold is checked under the thread's lock.
-- Errors: NOT_FOUND, IDEMPOTENCY_KEY_REUSED, PARTICIPANT_NOT_ACTIVE, INVALID_CURSOR, STALE_VIEW, LOOP_LIMIT.
CREATE FUNCTION append_message(
  p_owner text, p_thread text, p_sender text, p_id text, p_content text, p_data jsonb, p_context jsonb,
  p_mentions text[], p_sources text[], p_key text, p_hash text,
  p_if_nothing_after integer, p_if_nothing_after_tag text, p_ack integer, p_ack_tag text, p_max_hops integer
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
    SELECT 1 FROM unnest(p_sources) AS i(id) WHERE NOT EXISTS (
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

-- Retracts a message of one's own.
-- Errors: NOT_FOUND, BAD_USER_INPUT, FORBIDDEN, PARTICIPANT_NOT_ACTIVE, ALREADY_RETRACTED.
CREATE FUNCTION retract_message(p_owner text, p_message text, p_actor text, p_id text, p_reason text) RETURNS SETOF timeline_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_message events;
  v_head thread_heads;
  v_seq integer;
BEGIN
  SELECT e.* INTO v_message FROM events e WHERE e.id = p_message AND e.owner_id = p_owner;
  IF FOUND THEN
    SELECT h.* INTO v_head FROM thread_heads h
      WHERE h.owner_id = p_owner AND h.thread_id = v_message.thread_id FOR NO KEY UPDATE;
  END IF;
  IF v_head.thread_id IS NULL
     OR NOT tp_visible(p_owner, v_message.thread_id, v_message.seq, v_message.hidden_from, p_actor) THEN
    PERFORM tp_fail('NOT_FOUND', 'Message not found.');
  END IF;
  IF v_message.type <> 'MESSAGE' THEN
    PERFORM tp_fail('BAD_USER_INPUT', 'Only a message can be retracted.', '{"field":"messageId"}');
  END IF;
  IF v_message.sender_id <> p_actor THEN
    PERFORM tp_fail('FORBIDDEN', 'Only its sender can retract a message.');
  END IF;
  IF NOT EXISTS (SELECT 1 FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = v_message.thread_id
                   AND m.participant_id = p_actor AND m.state = 'ACTIVE') THEN
    PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in this thread; only an active member may retract.');
  END IF;
  IF EXISTS (SELECT 1 FROM retracted_messages r WHERE r.owner_id = p_owner AND r.thread_id = v_message.thread_id
               AND r.message_seq = v_message.seq) THEN
    PERFORM tp_fail('ALREADY_RETRACTED', 'This message is already retracted.');
  END IF;

  v_seq := v_head.last_seq + 1;
  INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, actor_id, target_seq, reason, mention_ids, source_ids, hidden_from)
    VALUES (p_owner, v_message.thread_id, v_seq, p_id, 'RETRACTION', tp_next_at(v_head), v_head.message_count,
            p_actor, v_message.seq, p_reason, '{}', '{}', '{}');
  INSERT INTO retracted_messages (owner_id, thread_id, message_seq, retraction_seq, sender_id)
    VALUES (p_owner, v_message.thread_id, v_message.seq, v_seq, p_actor);
  -- It is no longer unread for those who are active and could see it.
  UPDATE thread_members m SET unread_retracted = m.unread_retracted + 1
    WHERE m.owner_id = p_owner AND m.thread_id = v_message.thread_id AND m.state = 'ACTIVE'
      AND m.participant_id <> p_actor AND m.ack_seq < v_message.seq
      AND EXISTS (
        SELECT 1 FROM visibility_windows w
        WHERE w.owner_id = p_owner AND w.thread_id = m.thread_id AND w.participant_id = m.participant_id
          AND w.after_seq < v_message.seq AND (w.end_seq IS NULL OR w.end_seq >= v_message.seq));
  RETURN QUERY SELECT r.* FROM timeline_rows r WHERE r.owner_id = p_owner AND r.thread_id = v_message.thread_id AND r.seq = v_seq;
END $$;

-- Writes one change of a member's state, under a lock that the caller holds; p_head is as it was locked.
CREATE FUNCTION tp_change_state(
  p_head thread_heads, p_participant text, p_to participant_states, p_actor text, p_id text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_seq integer := p_head.last_seq + 1;
  v_at timestamptz := tp_next_at(p_head);
  v_member thread_members;
  v_missed integer;
BEGIN
  INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, subject_id, to_state, actor_id, mention_ids, source_ids, hidden_from)
    VALUES (p_head.owner_id, p_head.thread_id, v_seq, p_id, 'PARTICIPANT_STATE_CHANGED', v_at, p_head.message_count,
            p_participant, p_to, p_actor, '{}', '{}', '{}');
  SELECT m.* INTO v_member FROM thread_members m
    WHERE m.owner_id = p_head.owner_id AND m.thread_id = p_head.thread_id AND m.participant_id = p_participant;
  IF p_to = 'REMOVED' THEN
    UPDATE visibility_windows w SET end_seq = v_seq
      WHERE w.owner_id = p_head.owner_id AND w.thread_id = p_head.thread_id AND w.participant_id = p_participant AND w.end_seq IS NULL;
    UPDATE thread_members m SET
      state = 'REMOVED', since_seq = v_seq, since_at = v_at,
      frozen_activity = (extract(epoch FROM v_at) * 1000000)::bigint,
      closed_visible = m.closed_visible + p_head.message_count - m.open_after_no
    WHERE m.owner_id = p_head.owner_id AND m.thread_id = p_head.thread_id AND m.participant_id = p_participant;
  ELSE
    -- What was retracted meanwhile counts for it from now on.
    v_missed := tp_count_retracted(p_head.owner_id, p_head.thread_id, p_participant,
                                   v_member.ack_seq + 1, v_seq, v_member.since_seq, NULL);
    INSERT INTO visibility_windows (owner_id, thread_id, participant_id, after_seq, after_no, visible_before)
      VALUES (p_head.owner_id, p_head.thread_id, p_participant, v_seq, p_head.message_count, v_member.closed_visible);
    UPDATE thread_members m SET
      state = 'ACTIVE', since_seq = v_seq, since_at = v_at, frozen_activity = NULL,
      open_after_no = p_head.message_count, unread_retracted = m.unread_retracted + v_missed
    WHERE m.owner_id = p_head.owner_id AND m.thread_id = p_head.thread_id AND m.participant_id = p_participant;
  END IF;
END $$;

-- remove, re-add, leave. p_member: whom the thread must be visible to (null: the owner).
-- Errors: NOT_FOUND, INVALID_TRANSITION.
CREATE FUNCTION change_state(
  p_owner text, p_thread text, p_member text, p_participant text, p_to participant_states, p_actor text, p_id text,
  p_audit_id text, p_credential text
) RETURNS SETOF timeline_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_head thread_heads;
  v_state participant_states;
BEGIN
  v_head := tp_lock_thread(p_owner, p_thread, p_member);
  SELECT m.state INTO v_state FROM thread_members m
    WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_participant;
  IF NOT FOUND THEN
    PERFORM tp_fail('NOT_FOUND', 'Participant not found.');
  END IF;
  IF v_state = p_to THEN
    PERFORM tp_fail('INVALID_TRANSITION',
      CASE WHEN p_to = 'REMOVED' THEN 'The participant is already removed.' ELSE 'The participant is already active.' END,
      jsonb_build_object('state', v_state));
  END IF;
  PERFORM tp_change_state(v_head, p_participant, p_to, p_actor, p_id);
  INSERT INTO audit_log (id, owner_id, act, credential_id, actor_id, subject_id, details)
    VALUES (p_audit_id, p_owner, CASE WHEN p_to = 'REMOVED' THEN 'participant.removed' ELSE 'participant.readded' END,
            p_credential, p_actor, p_participant, jsonb_build_object('threadId', p_thread));
  RETURN QUERY SELECT r.* FROM timeline_rows r
    WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = v_head.last_seq + 1;
END $$;

CREATE FUNCTION tp_set_hash(p_participants text[]) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT encode(sha256(convert_to(string_agg(i.id, ',' ORDER BY i.id COLLATE "C"), 'UTF8')), 'hex')
  FROM (SELECT DISTINCT unnest(p_participants) AS id) i
$$;

-- Finds or creates the thread of a set. Insert-if-absent: a second caller waits for the first and finds its row.
CREATE FUNCTION tp_ensure_thread(
  p_owner text, p_participants text[], p_thread text, p_event text, p_thread_only boolean, p_meta jsonb,
  OUT thread_id text, OUT created boolean
)
LANGUAGE plpgsql AS $$
DECLARE
  v_hash text := tp_set_hash(p_participants);
  v_at timestamptz;
BEGIN
  LOOP
    INSERT INTO threads (id, owner_id, set_hash, meta_data, thread_only)
      VALUES (p_thread, p_owner, v_hash, coalesce(p_meta, '{}'), coalesce(p_thread_only, true))
      ON CONFLICT (owner_id, set_hash) DO NOTHING;
    IF FOUND THEN
      created := true;
      thread_id := p_thread;
      EXIT;
    END IF;
    SELECT t.id INTO thread_id FROM threads t WHERE t.owner_id = p_owner AND t.set_hash = v_hash;
    IF FOUND THEN
      created := false;
      RETURN;
    END IF;
    -- It was deleted between the two statements: the set is free again.
  END LOOP;

  v_at := clock_timestamp();
  INSERT INTO thread_heads (owner_id, thread_id, last_seq, last_at, activity)
    VALUES (p_owner, thread_id, 0, v_at - interval '1 microsecond', 0);
  INSERT INTO thread_members (owner_id, thread_id, participant_id, since_at)
    SELECT p_owner, tp_ensure_thread.thread_id, i.id, v_at FROM (SELECT DISTINCT unnest(p_participants) AS id) i;
  INSERT INTO visibility_windows (owner_id, thread_id, participant_id, after_seq, after_no, visible_before)
    SELECT p_owner, tp_ensure_thread.thread_id, i.id, 0, 0, 0 FROM (SELECT DISTINCT unnest(p_participants) AS id) i;
  INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, kind, data, mention_ids, source_ids, hidden_from)
    VALUES (p_owner, thread_id, 1, p_event, 'SYSTEM', v_at, 0, 'THREAD_OPENED',
            jsonb_build_object('transition', 'ADDED', 'participantIds',
              (SELECT jsonb_agg(i.id ORDER BY i.id COLLATE "C") FROM (SELECT DISTINCT unnest(p_participants) AS id) i)),
            '{}', '{}', '{}');
END $$;

CREATE FUNCTION tp_require_participants(p_owner text, p_participants text[]) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM unnest(p_participants) AS i(id) WHERE NOT EXISTS (
    SELECT 1 FROM participants p WHERE p.owner_id = p_owner AND p.id = i.id)) THEN
    PERFORM tp_fail('NOT_FOUND', 'Participant not found.', '{"field":"participantIds"}');
  END IF;
END $$;

-- The first result of a command with this key, or null; serialises callers with the same key to commit.
CREATE FUNCTION tp_replay(p_owner text, p_operation text, p_target text, p_actor text, p_key text, p_hash text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE v_record idempotency_records;
BEGIN
  IF p_key IS NULL THEN RETURN NULL; END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended(concat_ws(E'\x1f', p_owner, p_operation, p_target, p_actor, p_key), 0));
  SELECT r.* INTO v_record FROM idempotency_records r
    WHERE r.owner_id = p_owner AND r.operation = p_operation AND r.target = p_target AND r.actor = p_actor AND r.key = p_key;
  IF NOT FOUND THEN RETURN NULL; END IF;
  -- A record lives no longer than its thread, which is gone with its head, however long it takes to be emptied.
  IF v_record.thread_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = v_record.thread_id
  ) THEN
    DELETE FROM idempotency_records r
      WHERE r.owner_id = p_owner AND r.operation = p_operation AND r.target = p_target AND r.actor = p_actor AND r.key = p_key;
    RETURN NULL;
  END IF;
  IF v_record.input_hash <> p_hash THEN
    PERFORM tp_fail('IDEMPOTENCY_KEY_REUSED', 'This idempotencyKey was used before with another input.');
  END IF;
  RETURN v_record.result;
END $$;

-- Opens the thread of a set. Errors: NOT_FOUND, CONFLICT, IDEMPOTENCY_KEY_REUSED.
CREATE FUNCTION open_thread(
  p_owner text, p_participants text[], p_thread text, p_event text, p_thread_only boolean, p_meta jsonb,
  p_actor text, p_key text, p_hash text
) RETURNS TABLE (thread_id text, created boolean)
LANGUAGE plpgsql AS $$
DECLARE
  v_first jsonb;
  v_stored threads;
BEGIN
  v_first := tp_replay(p_owner, 'openThread', '', p_actor, p_key, p_hash);
  IF v_first IS NOT NULL THEN
    RETURN QUERY SELECT v_first ->> 'threadId', (v_first ->> 'created')::boolean;
    RETURN;
  END IF;
  PERFORM tp_require_participants(p_owner, p_participants);
  SELECT e.thread_id, e.created INTO thread_id, created
    FROM tp_ensure_thread(p_owner, p_participants, p_thread, p_event, p_thread_only, p_meta) e;
  IF NOT created THEN
    SELECT t.* INTO v_stored FROM threads t WHERE t.owner_id = p_owner AND t.id = open_thread.thread_id;
    IF p_thread_only <> v_stored.thread_only OR p_meta <> v_stored.meta_data THEN
      PERFORM tp_fail('CONFLICT', 'The thread of these participants exists with other properties; opening changes nothing.',
                      jsonb_build_object('existingId', thread_id));
    END IF;
  END IF;
  IF p_key IS NOT NULL THEN
    INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id)
      VALUES (p_owner, 'openThread', '', p_actor, p_key, p_hash,
              jsonb_build_object('threadId', thread_id, 'created', created), thread_id);
  END IF;
  RETURN NEXT;
END $$;

-- Appends a SystemEvent that names another thread; hides it from members who are none of that thread.
CREATE FUNCTION tp_append_link(p_head thread_heads, p_id text, p_kind text, p_related text) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, kind, related_thread_id, mention_ids, source_ids, hidden_from)
    VALUES (p_head.owner_id, p_head.thread_id, p_head.last_seq + 1, p_id, 'SYSTEM', tp_next_at(p_head), p_head.message_count,
            p_kind, p_related, '{}', '{}',
            coalesce((SELECT array_agg(m.participant_id ORDER BY m.participant_id) FROM thread_members m
              WHERE m.owner_id = p_head.owner_id AND m.thread_id = p_head.thread_id AND NOT EXISTS (
                SELECT 1 FROM thread_members o WHERE o.owner_id = p_head.owner_id AND o.thread_id = p_related
                  AND o.participant_id = m.participant_id)), '{}'));
  RETURN p_head.last_seq + 1;
END $$;

-- Opens the thread of the larger set and links the two, once. p_removed_ids: an event id for each member that
-- may begin removed. earlier_seq and later_seq: the link's events, null where the two were linked before. Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE, BAD_USER_INPUT, PAYLOAD limits, IDEMPOTENCY_KEY_REUSED.
CREATE FUNCTION extend_thread(
  p_owner text, p_thread text, p_actor text, p_added text[], p_new_thread text, p_opened_id text, p_continued_id text,
  p_continues_id text, p_removed_ids text[], p_max_participants integer, p_key text, p_hash text
) RETURNS TABLE (thread_id text, created boolean, earlier_seq integer, later_seq integer)
LANGUAGE plpgsql AS $$
DECLARE
  v_first jsonb;
  v_head thread_heads;
  v_new_head thread_heads;
  v_members text[];
  v_removed text[];
BEGIN
  v_head := tp_lock_thread(p_owner, p_thread, p_actor);
  v_first := tp_replay(p_owner, 'extendThread', p_thread, coalesce(p_actor, ''), p_key, p_hash);
  IF v_first IS NOT NULL THEN
    RETURN QUERY SELECT v_first ->> 'threadId', (v_first ->> 'created')::boolean, NULL::integer, NULL::integer;
    RETURN;
  END IF;
  SELECT array_agg(m.participant_id ORDER BY m.participant_id COLLATE "C"),
         array_agg(m.participant_id ORDER BY m.participant_id COLLATE "C") FILTER (WHERE m.state = 'REMOVED')
    INTO v_members, v_removed
    FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_thread;
  IF p_actor = ANY (v_removed) THEN
    PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in this thread; only an active member may extend it.');
  END IF;
  PERFORM tp_require_participants(p_owner, p_added);
  IF p_added <@ v_members THEN
    PERFORM tp_fail('BAD_USER_INPUT', 'participantIds names nobody new: name at least one participant who is not in the thread.',
                    '{"field":"participantIds"}');
  END IF;
  IF (SELECT count(DISTINCT i.id) FROM unnest(v_members || p_added) AS i(id)) > p_max_participants THEN
    PERFORM tp_fail('BAD_USER_INPUT', format('A thread has at most %s participants.', p_max_participants),
                    jsonb_build_object('field', 'participantIds', 'limit', p_max_participants));
  END IF;

  SELECT e.thread_id, e.created INTO thread_id, created
    FROM tp_ensure_thread(p_owner, v_members || p_added, p_new_thread, p_opened_id, NULL, NULL) e;
  SELECT h.* INTO v_new_head FROM thread_heads h
    WHERE h.owner_id = p_owner AND h.thread_id = extend_thread.thread_id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM tp_fail('UNAVAILABLE', 'The thread is being deleted. Try again.');
  END IF;
  IF created THEN
    FOR i IN 1 .. coalesce(array_length(v_removed, 1), 0) LOOP
      PERFORM tp_change_state(v_new_head, v_removed[i], 'REMOVED', p_actor, p_removed_ids[i]);
      SELECT h.* INTO v_new_head FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = extend_thread.thread_id;
    END LOOP;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM thread_links l WHERE l.earlier_id = p_thread AND l.later_id = extend_thread.thread_id) THEN
    earlier_seq := tp_append_link(v_head, p_continued_id, 'CONTINUED_AS', thread_id);
    later_seq := tp_append_link(v_new_head, p_continues_id, 'CONTINUES', p_thread);
    INSERT INTO thread_links (owner_id, earlier_id, later_id, earlier_seq, later_seq)
      VALUES (p_owner, p_thread, thread_id, extend_thread.earlier_seq, extend_thread.later_seq);
  END IF;
  IF p_key IS NOT NULL THEN
    INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id)
      VALUES (p_owner, 'extendThread', p_thread, coalesce(p_actor, ''), p_key, p_hash,
              jsonb_build_object('threadId', thread_id, 'created', created), thread_id);
  END IF;
  RETURN NEXT;
END $$;

-- Moves a read position. p_participant must be a member; its visible end bounds the position.
CREATE FUNCTION acknowledge(p_owner text, p_thread text, p_participant text, p_seq integer, p_tag text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_head thread_heads;
  v_member thread_members;
  v_end integer;
BEGIN
  v_head := tp_lock_thread(p_owner, p_thread, p_participant);
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
  PERFORM tp_acknowledge(p_owner, p_thread, p_participant, p_seq);
END $$;

-- Makes a thread invisible at once and frees its set; a worker empties it in batches. Answers whose thread it was.
CREATE FUNCTION delete_thread(p_owner text, p_thread text, p_audit_id text, p_credential text) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tp_lock_thread(p_owner, p_thread, NULL);
  UPDATE threads t SET deleted_at = now(), set_hash = NULL WHERE t.owner_id = p_owner AND t.id = p_thread;
  DELETE FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_thread;
  DELETE FROM idempotency_records r WHERE r.owner_id = p_owner AND r.thread_id = p_thread;
  INSERT INTO audit_log (id, owner_id, act, credential_id, subject_id) VALUES (p_audit_id, p_owner, 'thread.deleted', p_credential, p_thread);
  RETURN ARRAY(SELECT m.participant_id FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_thread);
END $$;

-- Takes away up to p_limit rows of something that was deleted; answers how many steps' worth it did, 0 when nothing is
-- left. Several workers do not meet: each takes what nobody holds. Every call is one short transaction.
CREATE FUNCTION empty_deleted(p_limit integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_thread threads;
  v_user users;
  v_count integer;
BEGIN
  SELECT t.* INTO v_thread FROM threads t WHERE t.deleted_at IS NOT NULL
    ORDER BY t.deleted_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    DELETE FROM events e WHERE e.owner_id = v_thread.owner_id AND e.thread_id = v_thread.id AND e.seq IN (
      SELECT b.seq FROM events b WHERE b.owner_id = v_thread.owner_id AND b.thread_id = v_thread.id
      ORDER BY b.seq DESC LIMIT p_limit);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count = 0 THEN
      DELETE FROM visibility_windows w WHERE w.owner_id = v_thread.owner_id AND w.thread_id = v_thread.id
        AND (w.participant_id, w.after_seq) IN (
          SELECT b.participant_id, b.after_seq FROM visibility_windows b
          WHERE b.owner_id = v_thread.owner_id AND b.thread_id = v_thread.id LIMIT p_limit);
      GET DIAGNOSTICS v_count = ROW_COUNT;
    END IF;
    IF v_count = 0 THEN
      DELETE FROM threads t WHERE t.id = v_thread.id;
      v_count := 1;
    END IF;
    RETURN v_count;
  END IF;

  SELECT u.* INTO v_user FROM users u WHERE u.deleted_at IS NOT NULL
    ORDER BY u.deleted_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 0; END IF;
  WITH gone AS (
    UPDATE threads t SET deleted_at = now(), set_hash = NULL
    WHERE t.id IN (SELECT b.id FROM threads b WHERE b.owner_id = v_user.id AND b.deleted_at IS NULL LIMIT p_limit)
    RETURNING t.id)
  DELETE FROM thread_heads h USING gone WHERE h.owner_id = v_user.id AND h.thread_id = gone.id;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count > 0 OR EXISTS (SELECT 1 FROM threads t WHERE t.owner_id = v_user.id) THEN
    -- Another worker may hold the last of them: come back.
    RETURN v_count;
  END IF;
  DELETE FROM participants p WHERE p.owner_id = v_user.id AND p.id IN (
    SELECT b.id FROM participants b WHERE b.owner_id = v_user.id LIMIT p_limit);
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count = 0 THEN
    DELETE FROM users u WHERE u.id = v_user.id;
    v_count := 1;
  END IF;
  RETURN v_count;
END $$;

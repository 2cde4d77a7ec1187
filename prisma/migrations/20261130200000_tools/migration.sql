-- Tool calls. A call with an id of the runtime's is an idempotency record: from its beginning with what it acts on, from its
-- end with its result. So a call that is repeated acts once, counts once, and is answered as it was the first time; also where
-- the first attempt was lost half-way, or still runs.

-- What an agent, or a run of it, pulled last and has not acknowledged: of p_thread, or (null) of whichever; p_delivery: only that
-- one. What a stream took is the stream's. A lease that has run out is one's own until somebody else takes the message.
CREATE FUNCTION tp_hand(p_owner text, p_participant text, p_run text, p_thread text, p_delivery text DEFAULT NULL) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('threadId', i.thread_id, 'deliveryId', i.delivery_id, 'seqs', to_jsonb(i.delivery_seqs))
  FROM inbox_threads i
  WHERE i.owner_id = p_owner AND i.participant_id = p_participant AND i.run_id = p_run
    AND (p_thread IS NULL OR i.thread_id = p_thread) AND (p_delivery IS NULL OR i.delivery_id = p_delivery)
    AND i.delivery_id IS NOT NULL AND i.holder IS NULL
  ORDER BY i.taken_at DESC LIMIT 1
$$;

-- What the first attempt of a call kept; null: this is the first, which keeps p_result. Errors: IDEMPOTENCY_KEY_REUSED.
CREATE FUNCTION tp_keep_call(
  p_owner text, p_operation text, p_thread text, p_actor text, p_call text, p_hash text, p_result jsonb
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE v_record idempotency_records;
BEGIN
  INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id)
    VALUES (p_owner, p_operation, coalesce(p_thread, ''), p_actor, p_call, p_hash, p_result, p_thread)
    ON CONFLICT DO NOTHING;
  IF FOUND THEN RETURN NULL; END IF;
  SELECT r.* INTO v_record FROM idempotency_records r
    WHERE r.owner_id = p_owner AND r.operation = p_operation AND r.target = coalesce(p_thread, '')
      AND r.actor = p_actor AND r.key = p_call;
  IF v_record.input_hash <> p_hash THEN
    PERFORM tp_fail('IDEMPOTENCY_KEY_REUSED', 'This toolCallId was used before with another name or other arguments.',
                    '{"field":"toolCallId"}');
  END IF;
  RETURN v_record.result;
END $$;

-- Begins a call: its first result (with `output`) if it is finished already, else what it acts on: `threadId`, the message in
-- hand (`hand`), and p_names, the ids of what it makes, all as its first attempt found them. p_run, in which it counts: null
-- outside of one. p_thread null: the thread is that of the message in hand, or none where nothing is in hand, or where the call
-- takes (p_takes); such a call stays where it was, also when the thread is deleted: what is kept of that names ids only.
-- Errors: NOT_FOUND (the thread, the run), IDEMPOTENCY_KEY_REUSED, INVALID_TRANSITION, LOOP_LIMIT.
CREATE FUNCTION begin_tool_call(
  p_owner text, p_thread text, p_participant text, p_run text, p_call text, p_hash text, p_names jsonb, p_takes boolean
) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  v_begun jsonb := p_names;
  v_thread text := p_thread;
  v_first jsonb;
BEGIN
  IF p_thread IS NOT NULL OR NOT p_takes THEN
    v_begun := v_begun || jsonb_build_object('hand', tp_hand(p_owner, p_participant, coalesce(p_run, ''), p_thread));
  END IF;
  IF p_thread IS NULL THEN
    IF p_call IS NOT NULL THEN
      v_begun := coalesce(tp_keep_call(p_owner, 'placeToolCall', NULL, p_participant, p_call, p_hash, v_begun), v_begun);
    END IF;
    v_thread := coalesce(v_begun ->> 'threadId', v_begun -> 'hand' ->> 'threadId');
    IF v_thread IS NULL THEN RETURN v_begun; END IF;
  END IF;
  IF NOT EXISTS (
    SELECT 1 FROM thread_heads h JOIN thread_members m ON m.owner_id = h.owner_id AND m.thread_id = h.thread_id
    WHERE h.owner_id = p_owner AND h.thread_id = v_thread AND m.participant_id = p_participant
  ) THEN
    PERFORM tp_fail('NOT_FOUND', 'Thread not found.');
  END IF;
  v_begun := v_begun || jsonb_build_object('threadId', v_thread);
  IF p_call IS NOT NULL THEN
    v_first := tp_keep_call(p_owner, 'executeTool', v_thread, coalesce(p_run, p_participant), p_call, p_hash, v_begun);
    IF v_first IS NOT NULL THEN RETURN v_first; END IF;
  END IF;
  IF p_run IS NOT NULL THEN
    PERFORM tp_count_tool_call(p_owner, p_run);
  END IF;
  RETURN v_begun;
END $$;

-- Ends a call that began nowhere: it took a message of p_thread, where its result is kept from now on, or none (null). False:
-- another attempt was there before. Errors: NOT_FOUND (the thread).
CREATE FUNCTION finish_taking(p_owner text, p_participant text, p_call text, p_thread text, p_result jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE v_hash text;
BEGIN
  IF p_thread IS NOT NULL THEN
    PERFORM tp_lock_thread(p_owner, p_thread, p_participant);
  END IF;
  UPDATE idempotency_records r
    SET result = r.result || CASE WHEN p_thread IS NULL THEN p_result ELSE jsonb_build_object('threadId', p_thread) END
    WHERE r.owner_id = p_owner AND r.operation = 'placeToolCall' AND r.target = '' AND r.actor = p_participant
      AND r.key = p_call AND NOT r.result ?| '{output,threadId}'
    RETURNING r.input_hash INTO v_hash;
  IF NOT FOUND THEN RETURN false; END IF;
  IF p_thread IS NOT NULL THEN
    PERFORM tp_keep_call(p_owner, 'executeTool', p_thread, p_participant, p_call, v_hash, p_result);
  END IF;
  RETURN true;
END $$;

-- Ends a call: keeps its result, and lets it stand in the conversation as p_shown (null: it is not told there; so too
-- where the worker is not active any more). What was done with a scratchpad is told in no run whose conversation is the
-- scratchpad's own thread: nothing is written there. No row: nothing was appended. Errors: NOT_FOUND (the thread).
CREATE FUNCTION finish_tool_call(
  p_owner text, p_thread text, p_participant text, p_run text, p_call text, p_result jsonb, p_id text, p_shown jsonb
) RETURNS SETOF timeline_rows
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tp_lock_thread(p_owner, p_thread, p_participant);
  IF p_call IS NOT NULL THEN
    UPDATE idempotency_records r SET result = p_result
      WHERE r.owner_id = p_owner AND r.operation = 'executeTool' AND r.target = p_thread
        AND r.actor = coalesce(p_run, p_participant) AND r.key = p_call AND NOT r.result ? 'output';
    -- Another attempt of the same call was there before.
    IF NOT FOUND THEN RETURN; END IF;
  END IF;
  IF p_shown IS NULL OR NOT EXISTS (
    SELECT 1 FROM thread_members m
    WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_participant AND m.state = 'ACTIVE'
  ) OR (p_shown ->> 'name' LIKE '%_scratchpad' AND EXISTS (
    SELECT 1 FROM runs r JOIN scratchpads s ON s.owner_id = r.owner_id AND s.id = r.scratchpad_id
    WHERE r.owner_id = p_owner AND r.id = p_run AND s.thread_id = p_thread
  )) THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT r.* FROM append_system_event(p_owner, p_thread, p_id, 'TOOL_RESULT', p_shown, p_run) r;
END $$;

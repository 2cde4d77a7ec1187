-- Scratchpads: SQL owns their identity, Redis their state. What is deleted here must go there too, however it was
-- deleted, and a change of membership is known there before it is committed here.

CREATE TRIGGER scratchpads_no_truncate BEFORE TRUNCATE ON scratchpads FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER scratchpad_purges_no_truncate BEFORE TRUNCATE ON scratchpad_purges FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER scratchpad_fences_no_truncate BEFORE TRUNCATE ON scratchpad_fences FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER scratchpad_retimes_no_truncate BEFORE TRUNCATE ON scratchpad_retimes FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- Whatever deletes a pad (a command, a cascade from its thread or user, a hand at a console) leaves what a worker needs
-- to empty Redis, in the same transaction.
CREATE FUNCTION tp_purge_scratchpads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO scratchpad_purges (scratchpad_id, owner_id, thread_id)
    SELECT g.id, g.owner_id, g.thread_id FROM gone g
    ON CONFLICT (scratchpad_id) DO UPDATE SET due_at = now(), emptied_at = NULL, attempts = 0;
  RETURN NULL;
END $$;
CREATE TRIGGER scratchpads_purge AFTER DELETE ON scratchpads REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION tp_purge_scratchpads();

-- A thread that is deleted takes its pad along at once, long before it is emptied itself.
CREATE FUNCTION tp_delete_scratchpad_of_thread() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM scratchpads s WHERE s.owner_id = NEW.owner_id AND s.thread_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER threads_delete_scratchpad AFTER UPDATE OF deleted_at ON threads FOR EACH ROW
  WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION tp_delete_scratchpad_of_thread();

-- What a pad's keys in Redis are named after never changes; updated_at is the time of its properties, of nothing else.
CREATE FUNCTION tp_guard_scratchpad() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id <> OLD.id OR NEW.owner_id <> OLD.owner_id OR NEW.thread_id <> OLD.thread_id OR NEW.created_at <> OLD.created_at THEN
    RAISE EXCEPTION 'the identity of a scratchpad does not change' USING ERRCODE = 'restrict_violation';
  END IF;
  NEW.updated_at := CASE
    WHEN NEW.meta_data IS DISTINCT FROM OLD.meta_data OR NEW.ttl_seconds IS DISTINCT FROM OLD.ttl_seconds
      THEN greatest(clock_timestamp(), OLD.updated_at + interval '1 millisecond')
    ELSE OLD.updated_at END;
  RETURN NEW;
END $$;
CREATE TRIGGER scratchpads_guard BEFORE UPDATE ON scratchpads FOR EACH ROW EXECUTE FUNCTION tp_guard_scratchpad();

-- Makes a thread's pad. p_actor: an active member; null: the owner. p_ensure: answers the pad that is there instead of
-- failing. The thread's lock is held, so that two callers make one pad, and no change of membership that took no
-- notice of it commits after it. Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE, CONFLICT.
CREATE FUNCTION create_scratchpad(
  p_owner text, p_thread text, p_actor text, p_id text, p_meta jsonb, p_ttl integer, p_ensure boolean,
  p_audit_id text, p_credential text
) RETURNS SETOF scratchpads
LANGUAGE plpgsql AS $$
DECLARE
  v_pad scratchpads;
  v_is_first boolean;
BEGIN
  PERFORM tp_lock_thread(p_owner, p_thread, p_actor);
  SELECT s.* INTO v_pad FROM scratchpads s WHERE s.owner_id = p_owner AND s.thread_id = p_thread;
  IF v_pad.id IS NOT NULL AND p_ensure THEN
    RETURN NEXT v_pad;
    RETURN;
  END IF;
  IF p_actor IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM thread_members m
    WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_actor AND m.state = 'ACTIVE'
  ) THEN
    PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in this thread; only an active member may create its scratchpad.');
  END IF;
  IF v_pad.id IS NOT NULL THEN
    PERFORM tp_fail('CONFLICT', 'Scratchpad already exists for this thread.', jsonb_build_object('existingId', v_pad.id));
  END IF;
  -- What an earlier format left of the thread was its first pad's, and went with that.
  UPDATE threads t SET had_scratchpad = true WHERE t.owner_id = p_owner AND t.id = p_thread AND NOT t.had_scratchpad;
  v_is_first := FOUND;
  INSERT INTO scratchpads (id, owner_id, thread_id, meta_data, ttl_seconds, legacy_checked_at)
    VALUES (p_id, p_owner, p_thread, coalesce(p_meta, '{}'), p_ttl, CASE WHEN NOT v_is_first THEN now() END)
    RETURNING * INTO v_pad;
  INSERT INTO audit_log (id, owner_id, act, credential_id, actor_id, subject_id, details)
    VALUES (p_audit_id, p_owner, 'scratchpad.created', p_credential, p_actor, p_id, jsonb_build_object('threadId', p_thread));
  RETURN NEXT v_pad;
END $$;

-- As before, and for a thread with a pad: unless the caller says that it raises the fence in Redis before it commits
-- (p_fenced), nothing is written and no row is answered; it then comes back in a transaction.
DROP FUNCTION change_state(text, text, text, text, participant_states, text, text, text, text);
CREATE FUNCTION change_state(
  p_owner text, p_thread text, p_member text, p_participant text, p_to participant_states, p_actor text, p_id text,
  p_audit_id text, p_credential text, p_fenced boolean DEFAULT true
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
  IF NOT p_fenced AND EXISTS (SELECT 1 FROM scratchpads s WHERE s.owner_id = p_owner AND s.thread_id = p_thread) THEN
    RETURN;
  END IF;
  PERFORM tp_change_state(v_head, p_participant, p_to, p_actor, p_id);
  INSERT INTO audit_log (id, owner_id, act, credential_id, actor_id, subject_id, details)
    VALUES (p_audit_id, p_owner, CASE WHEN p_to = 'REMOVED' THEN 'participant.removed' ELSE 'participant.readded' END,
            p_credential, p_actor, p_participant, jsonb_build_object('threadId', p_thread));
  RETURN QUERY SELECT r.* FROM timeline_rows r
    WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = v_head.last_seq + 1;
END $$;

-- As before, and answers which pad went with the thread.
DROP FUNCTION delete_thread(text, text, text, text);
CREATE FUNCTION delete_thread(
  p_owner text, p_thread text, p_audit_id text, p_credential text, OUT members text[], OUT scratchpad_id text
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tp_lock_thread(p_owner, p_thread, NULL);
  SELECT s.id INTO scratchpad_id FROM scratchpads s WHERE s.owner_id = p_owner AND s.thread_id = p_thread;
  UPDATE threads t SET deleted_at = now(), set_hash = NULL WHERE t.owner_id = p_owner AND t.id = p_thread;
  DELETE FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_thread;
  DELETE FROM idempotency_records r WHERE r.owner_id = p_owner AND r.thread_id = p_thread;
  INSERT INTO audit_log (id, owner_id, act, credential_id, subject_id) VALUES (p_audit_id, p_owner, 'thread.deleted', p_credential, p_thread);
  members := ARRAY(SELECT m.participant_id FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_thread);
END $$;

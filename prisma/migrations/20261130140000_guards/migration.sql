-- What a hand at a console could still do to the record, and how what is deleted is emptied.

CREATE TRIGGER participants_no_truncate BEFORE TRUNCATE ON participants FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER credentials_no_truncate BEFORE TRUNCATE ON credentials FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER thread_links_no_truncate BEFORE TRUNCATE ON thread_links FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER idempotency_records_no_truncate BEFORE TRUNCATE ON idempotency_records FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- A head moves only with an event, from within the event's own trigger; else the next event would leave a gap.
-- The condition costs an append nothing: it is not a function of ours.
CREATE FUNCTION tp_refuse_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the head of a thread moves with its events alone' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER thread_heads_no_update BEFORE UPDATE ON thread_heads FOR EACH ROW
  WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION tp_refuse_head();
CREATE TRIGGER thread_heads_no_delete BEFORE DELETE ON thread_heads FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();

-- However a credential ends (or comes to end at another time), every process reads so in the log: also when a
-- row is changed or deleted by hand, or falls with its user or participant.
CREATE FUNCTION tp_log_ending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO revocation_log (credential_id) VALUES (OLD.id);
  RETURN NULL;
END $$;
CREATE TRIGGER credentials_log_revocation AFTER UPDATE ON credentials FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL AND (NEW.revoked_at IS NOT NULL OR NEW.expires_at IS DISTINCT FROM OLD.expires_at))
  EXECUTE FUNCTION tp_log_ending();
CREATE TRIGGER credentials_log_deletion AFTER DELETE ON credentials FOR EACH ROW
  WHEN (OLD.revoked_at IS NULL) EXECUTE FUNCTION tp_log_ending();

-- As before, but each batch is named by a bound or by places, not by a list that a plan could compare row by row: on
-- a table that was not analysed yet that took time with the square of the thread's length.
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
  DELETE FROM participants p WHERE p.owner_id = v_user.id AND p.id = ANY (ARRAY(
    SELECT b.id FROM participants b WHERE b.owner_id = v_user.id LIMIT p_limit));
  GET DIAGNOSTICS v_count = ROW_COUNT;
  IF v_count = 0 THEN
    DELETE FROM users u WHERE u.id = v_user.id;
    v_count := 1;
  END IF;
  RETURN v_count;
END $$;

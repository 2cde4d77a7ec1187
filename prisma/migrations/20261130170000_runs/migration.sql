-- CreateEnum
CREATE TYPE "run_statuses" AS ENUM ('QUEUED', 'IN_PROGRESS', 'INPUT_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED');

-- CreateEnum
CREATE TYPE "scratchpad_accesses" AS ENUM ('READ', 'APPEND', 'WRITE');

-- CreateTable
CREATE TABLE "runs" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "delegator_id" TEXT,
    "parent_run_id" TEXT,
    "root_run_id" TEXT NOT NULL,
    "conversation_thread_id" TEXT,
    "scratchpad_id" TEXT,
    "access" "scratchpad_accesses" NOT NULL,
    "pad_viewer_id" TEXT,
    "status" "run_statuses" NOT NULL DEFAULT 'QUEUED',
    "version" INTEGER NOT NULL DEFAULT 1,
    "input" JSONB,
    "result" JSONB,
    "error" TEXT,
    "meta_data" JSONB NOT NULL DEFAULT '{}',
    "tool_calls" INTEGER NOT NULL DEFAULT 0,
    "max_tool_calls" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "started_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "runs_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "runs_owner_id_participant_id_id_idx" ON "runs"("owner_id", "participant_id", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_delegator_id_id_idx" ON "runs"("owner_id", "delegator_id", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_parent_run_id_id_idx" ON "runs"("owner_id", "parent_run_id", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_conversation_thread_id_id_idx" ON "runs"("owner_id", "conversation_thread_id", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_scratchpad_id_id_idx" ON "runs"("owner_id", "scratchpad_id", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_status_id_idx" ON "runs"("owner_id", "status", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_participant_id_status_id_idx" ON "runs"("owner_id", "participant_id", "status", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_delegator_id_status_id_idx" ON "runs"("owner_id", "delegator_id", "status", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_conversation_thread_id_status_id_idx" ON "runs"("owner_id", "conversation_thread_id", "status", "id");

-- CreateIndex
CREATE INDEX "runs_owner_id_scratchpad_id_status_id_idx" ON "runs"("owner_id", "scratchpad_id", "status", "id");

-- CreateIndex
CREATE INDEX "runs_root_run_id_idx" ON "runs"("root_run_id");

-- CreateIndex
CREATE UNIQUE INDEX "runs_owner_id_id_key" ON "runs"("owner_id", "id");

-- CreateIndex
CREATE INDEX "credentials_run_id_idx" ON "credentials"("run_id");

-- AddForeignKey
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_owner_id_run_id_fkey" FOREIGN KEY ("owner_id", "run_id") REFERENCES "runs"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_owner_id_delegator_id_fkey" FOREIGN KEY ("owner_id", "delegator_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_owner_id_parent_run_id_fkey" FOREIGN KEY ("owner_id", "parent_run_id") REFERENCES "runs"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_owner_id_conversation_thread_id_fkey" FOREIGN KEY ("owner_id", "conversation_thread_id") REFERENCES "threads"("owner_id", "id") ON DELETE SET NULL ("conversation_thread_id") ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "runs" ADD CONSTRAINT "runs_owner_id_scratchpad_id_fkey" FOREIGN KEY ("owner_id", "scratchpad_id") REFERENCES "scratchpads"("owner_id", "id") ON DELETE SET NULL ("scratchpad_id") ON UPDATE CASCADE;

-- AlterTable
ALTER TABLE "credentials" ADD COLUMN     "is_delegators" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "made_through_id" TEXT;

-- CreateIndex
CREATE INDEX "credentials_made_through_id_idx" ON "credentials"("made_through_id");

-- AlterTable
ALTER TABLE "revocation_log" ADD COLUMN     "reason" TEXT;

-- ---------------------------------------------------------------------------------------------------------
-- Runs. Order of locks, for whatever changes a run: heads of threads first, then threads and scratchpads, then the first run of the
-- tree (of all trees that it comes to, by their ids), then the tree's other runs. Whoever holds a run's row waits for none of the
-- others.

-- Open is what has not finished. One open run for each worker and conversation.
ALTER TABLE runs ADD CONSTRAINT runs_finished_check
  CHECK ((finished_at IS NULL) = (status IN ('QUEUED', 'IN_PROGRESS', 'INPUT_REQUIRED')));
CREATE UNIQUE INDEX runs_open_key ON runs (owner_id, participant_id, conversation_thread_id) WHERE finished_at IS NULL;
CREATE INDEX runs_due_idx ON runs (expires_at) WHERE finished_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX runs_open_on_pad_idx ON runs (owner_id, scratchpad_id) WHERE finished_at IS NULL AND scratchpad_id IS NOT NULL;
CREATE TRIGGER runs_no_truncate BEFORE TRUNCATE ON runs FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- What a run as services and doors read it. A conversation that is deleted is none, also before it is emptied.
CREATE VIEW run_rows AS
SELECT r.id, r.owner_id, r.participant_id, r.delegator_id, r.parent_run_id,
  (SELECT h.thread_id FROM thread_heads h WHERE h.owner_id = r.owner_id AND h.thread_id = r.conversation_thread_id)
    AS conversation_thread_id, r.scratchpad_id,
  r.access::text AS access, r.pad_viewer_id, r.status::text AS status, r.version, r.input, r.result, r.error, r.meta_data,
  r.tool_calls, r.max_tool_calls,
  to_char(r.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
  to_char(r.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS started_at,
  to_char(r.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS finished_at,
  to_char(r.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS expires_at
FROM runs r;

-- Who works on what for whom does not change, and what has ended stays as it ended.
CREATE FUNCTION tp_guard_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.id, NEW.owner_id, NEW.participant_id, NEW.delegator_id, NEW.parent_run_id, NEW.root_run_id, NEW.access, NEW.pad_viewer_id)
     IS DISTINCT FROM
     (OLD.id, OLD.owner_id, OLD.participant_id, OLD.delegator_id, OLD.parent_run_id, OLD.root_run_id, OLD.access, OLD.pad_viewer_id)
     OR (NEW.conversation_thread_id IS NOT NULL AND NEW.conversation_thread_id IS DISTINCT FROM OLD.conversation_thread_id)
     OR (NEW.scratchpad_id IS NOT NULL AND NEW.scratchpad_id IS DISTINCT FROM OLD.scratchpad_id) THEN
    RAISE EXCEPTION 'the identity of a run does not change' USING ERRCODE = 'restrict_violation';
  END IF;
  IF OLD.finished_at IS NOT NULL AND (NEW.status, NEW.finished_at, NEW.result, NEW.error, NEW.tool_calls)
     IS DISTINCT FROM (OLD.status, OLD.finished_at, OLD.result, OLD.error, OLD.tool_calls) THEN
    RAISE EXCEPTION 'a run that has ended stays as it ended' USING ERRCODE = 'restrict_violation';
  END IF;
  NEW.version := OLD.version + 1;
  RETURN NEW;
END $$;
CREATE TRIGGER runs_guard BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION tp_guard_run();

-- However a run ends, its tokens end with it.
CREATE FUNCTION tp_end_run_tokens() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE credentials c SET revoked_at = clock_timestamp() WHERE c.run_id = NEW.id AND c.revoked_at IS NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER runs_end_tokens AFTER UPDATE OF finished_at ON runs FOR EACH ROW
  WHEN (OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL) EXECUTE FUNCTION tp_end_run_tokens();

-- ---------------------------------------------------------------------------------------------------------
-- Where a run may go.

-- Whether a deadline is over.
CREATE FUNCTION tp_is_over(p_expires timestamptz) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT p_expires IS NOT NULL AND p_expires <= clock_timestamp()
$$;

-- Where a run stands: one whose deadline is over has expired, whether or not that was written yet.
CREATE FUNCTION tp_run_status(p_run runs) RETURNS run_statuses LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN p_run.finished_at IS NULL AND tp_is_over(p_run.expires_at) THEN 'EXPIRED' ELSE p_run.status END
$$;

-- What somebody may say of a run that stands there. (It expires by itself.)
CREATE FUNCTION tp_run_ways(p_from run_statuses) RETURNS run_statuses[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_from
    WHEN 'QUEUED' THEN '{IN_PROGRESS,CANCELLED}'
    WHEN 'IN_PROGRESS' THEN '{INPUT_REQUIRED,COMPLETED,FAILED,CANCELLED}'
    WHEN 'INPUT_REQUIRED' THEN '{IN_PROGRESS,COMPLETED,FAILED,CANCELLED}'
    ELSE '{}' END::run_statuses[]
$$;

-- Refuses what a run cannot do where it stands: says where that is, and where it may go from there. p_why follows, if given.
CREATE FUNCTION tp_refuse_run(p_run runs, p_why text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_status run_statuses := tp_run_status(p_run);
  v_ways run_statuses[] := tp_run_ways(tp_run_status(p_run));
BEGIN
  PERFORM tp_fail('INVALID_TRANSITION',
    format('The run is %s: ', v_status)
      || CASE WHEN cardinality(v_ways) = 0 THEN 'it has ended, and stays so.'
         ELSE format('from there it may become %s.', regexp_replace(array_to_string(v_ways, ', '), ', (\w+)$', ' or \1')) END
      || coalesce(' ' || p_why, ''),
    jsonb_build_object('status', v_status, 'allowed', to_jsonb(v_ways)));
END $$;

-- ---------------------------------------------------------------------------------------------------------
-- For whoever records something of the platform's in a thread.

-- Appends a SystemEvent. p_run: the run in which it came about. Errors: NOT_FOUND.
CREATE FUNCTION append_system_event(
  p_owner text, p_thread text, p_id text, p_kind text, p_data jsonb, p_run text DEFAULT NULL
) RETURNS SETOF timeline_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_head thread_heads;
BEGIN
  v_head := tp_lock_thread(p_owner, p_thread, NULL);
  INSERT INTO events (owner_id, thread_id, seq, id, type, at, message_no, kind, data, run_id, mention_ids, source_ids, hidden_from)
    VALUES (p_owner, p_thread, v_head.last_seq + 1, p_id, 'SYSTEM', tp_next_at(v_head), v_head.message_count,
            p_kind, p_data, p_run, '{}', '{}', '{}');
  RETURN QUERY SELECT r.* FROM timeline_rows r
    WHERE r.owner_id = p_owner AND r.thread_id = p_thread AND r.seq = v_head.last_seq + 1;
END $$;

-- Counts a tool call of an open run, and in every run above it: whoever works for a run makes no call that it may not make itself.
-- The first starts a run that is queued. It takes runs' rows, so the head of a thread that the same transaction needs comes
-- before. Errors: NOT_FOUND, INVALID_TRANSITION (it has ended), LOOP_LIMIT.
CREATE FUNCTION tp_count_tool_call(p_owner text, p_run text) RETURNS SETOF run_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_run runs;
  v_root text;
  v_above runs;
BEGIN
  SELECT r.root_run_id INTO v_root FROM runs r WHERE r.owner_id = p_owner AND r.id = p_run AND r.id <> r.root_run_id;
  IF v_root IS NOT NULL THEN
    PERFORM 1 FROM runs r WHERE r.id = v_root FOR NO KEY UPDATE;
  END IF;
  UPDATE runs r SET
    tool_calls = r.tool_calls + 1,
    status = CASE WHEN r.status = 'QUEUED' THEN 'IN_PROGRESS' ELSE r.status END,
    started_at = coalesce(r.started_at, clock_timestamp())
    -- Open: so that it is found by its id, and not among all that are open.
    WHERE r.owner_id = p_owner AND r.id = p_run AND coalesce(r.finished_at, 'infinity') = 'infinity'
      AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp()) AND r.tool_calls < r.max_tool_calls;
  IF NOT FOUND THEN
    SELECT r.* INTO v_run FROM runs r WHERE r.owner_id = p_owner AND r.id = p_run;
    IF NOT FOUND THEN
      PERFORM tp_fail('NOT_FOUND', 'Run not found.');
    ELSIF cardinality(tp_run_ways(tp_run_status(v_run))) > 0 THEN
      PERFORM tp_fail('LOOP_LIMIT', 'The run has made as many tool calls as it may.', jsonb_build_object('limit', v_run.max_tool_calls));
    END IF;
    PERFORM tp_refuse_run(v_run, 'It makes no more tool calls.');
  END IF;
  IF v_root IS NOT NULL THEN
    -- Those above an open run are open: they take it along when they end, which waits for the first of the tree.
    FOR v_above IN
      WITH RECURSIVE above AS (
        SELECT r.parent_run_id AS id FROM runs r WHERE r.id = p_run
        UNION
        SELECT r.parent_run_id FROM above a JOIN runs r ON r.id = a.id WHERE r.parent_run_id IS NOT NULL)
      UPDATE runs r SET tool_calls = r.tool_calls + 1 WHERE r.id IN (SELECT a.id FROM above a) RETURNING r.*
    LOOP
      IF v_above.tool_calls > v_above.max_tool_calls THEN
        PERFORM tp_fail('LOOP_LIMIT', 'The run for which this one works has made as many tool calls as it may, with all that work for it.',
                        jsonb_build_object('limit', v_above.max_tool_calls));
      END IF;
    END LOOP;
  END IF;
  RETURN QUERY SELECT r.* FROM run_rows r WHERE r.id = p_run;
END $$;

-- ---------------------------------------------------------------------------------------------------------
-- Endings.

-- Ends those of these runs that are open, and as CANCELLED every open run below them: a child is no wider than its
-- parent. EXPIRED ends only what is due. Tells the worker of a run that was ended for it. Answers the ids of all that ended.
CREATE FUNCTION tp_end_runs(p_runs text[], p_status run_statuses, p_result jsonb, p_error text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  v_ended text[];
  v_below text[];
  v_run runs;
BEGIN
  PERFORM 1 FROM runs r WHERE r.id IN (SELECT t.root_run_id FROM runs t WHERE t.id = ANY (p_runs))
    ORDER BY r.id FOR NO KEY UPDATE;
  WITH ended AS (
    UPDATE runs r SET status = p_status, finished_at = clock_timestamp(), result = p_result, error = p_error
    WHERE r.id = ANY (p_runs) AND r.finished_at IS NULL AND (p_status <> 'EXPIRED' OR r.expires_at <= clock_timestamp())
    RETURNING r.id)
  SELECT coalesce(array_agg(e.id), '{}') INTO v_ended FROM ended e;
  WITH RECURSIVE below AS (
    SELECT c.id, c.owner_id FROM runs p JOIN runs c ON c.owner_id = p.owner_id AND c.parent_run_id = p.id WHERE p.id = ANY (v_ended)
    UNION
    SELECT c.id, c.owner_id FROM below p JOIN runs c ON c.owner_id = p.owner_id AND c.parent_run_id = p.id
  ), ended AS (
    UPDATE runs r SET status = 'CANCELLED', finished_at = clock_timestamp(), result = NULL,
      error = 'The run that delegated it has ended.'
    WHERE r.id IN (SELECT b.id FROM below b) AND r.finished_at IS NULL
    RETURNING r.id)
  SELECT coalesce(array_agg(e.id), '{}') INTO v_below FROM ended e;
  FOR v_run IN SELECT r.* FROM runs r WHERE r.id = ANY (v_ended || v_below) AND r.status IN ('CANCELLED', 'EXPIRED') ORDER BY r.id LOOP
    PERFORM tp_control(v_run.owner_id, v_run.participant_id, 'RUN_CANCELLED', v_run.conversation_thread_id, v_run.id, NULL, v_run.error);
  END LOOP;
  RETURN v_ended || v_below;
END $$;

-- Ends what is due, at most p_limit runs and what is below them. By a clock that an index can be asked with: what is not
-- due is not read.
CREATE FUNCTION expire_runs(p_limit integer) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  v_due text[];
BEGIN
  v_due := ARRAY(SELECT r.id FROM runs r WHERE r.finished_at IS NULL AND r.expires_at IS NOT NULL
    AND r.expires_at <= now() ORDER BY r.expires_at LIMIT p_limit);
  IF cardinality(v_due) = 0 THEN RETURN '{}'; END IF;
  RETURN tp_end_runs(v_due, 'EXPIRED', NULL, 'The deadline has passed.');
END $$;

-- Whoever is removed from a thread takes along the runs that it delegated on the thread's pad, in the same transaction.
CREATE FUNCTION tp_end_runs_of_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_runs text[];
BEGIN
  v_runs := ARRAY(SELECT r.id FROM scratchpads s JOIN runs r ON r.owner_id = s.owner_id AND r.scratchpad_id = s.id
    WHERE s.owner_id = NEW.owner_id AND s.thread_id = NEW.thread_id
      AND r.delegator_id = NEW.participant_id AND r.finished_at IS NULL);
  IF cardinality(v_runs) > 0 THEN
    PERFORM tp_end_runs(v_runs, 'CANCELLED', NULL, 'Whoever delegated it was removed.');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER thread_members_end_runs AFTER UPDATE OF state ON thread_members FOR EACH ROW
  WHEN (OLD.state = 'ACTIVE' AND NEW.state = 'REMOVED') EXECUTE FUNCTION tp_end_runs_of_removed();

-- A conversation that is deleted takes the run in it along, however it is deleted.
CREATE FUNCTION tp_end_runs_of_thread() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_runs text[];
BEGIN
  IF TG_OP = 'DELETE' THEN
    -- The row takes itself out of all runs that were ever in it, in whatever order they lie.
    PERFORM 1 FROM runs r WHERE r.id IN (
        SELECT t.root_run_id FROM runs t WHERE t.owner_id = OLD.owner_id AND t.conversation_thread_id = OLD.id)
      ORDER BY r.id FOR NO KEY UPDATE;
  END IF;
  v_runs := ARRAY(SELECT r.id FROM runs r
    WHERE r.owner_id = OLD.owner_id AND r.conversation_thread_id = OLD.id AND r.finished_at IS NULL);
  IF cardinality(v_runs) > 0 THEN
    PERFORM tp_end_runs(v_runs, 'CANCELLED', NULL, 'Its conversation was deleted.');
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER threads_end_runs_by_hand BEFORE DELETE ON threads FOR EACH ROW EXECUTE FUNCTION tp_end_runs_of_thread();
CREATE TRIGGER threads_end_runs AFTER UPDATE OF deleted_at ON threads FOR EACH ROW
  WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION tp_end_runs_of_thread();

-- A pad that is deleted is taken from its runs, in whatever order they lie: their trees are held before. If its thread goes with
-- it, that ends the runs that have it as their conversation next: theirs are held with them.
CREATE FUNCTION tp_lock_runs_of_scratchpad() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM runs r
    WHERE r.id IN (
      SELECT t.root_run_id FROM runs t WHERE t.owner_id = OLD.owner_id AND t.scratchpad_id = OLD.id
      UNION ALL
      SELECT t.root_run_id FROM runs t
        WHERE t.owner_id = OLD.owner_id AND t.conversation_thread_id = OLD.thread_id AND t.finished_at IS NULL)
    ORDER BY r.id FOR NO KEY UPDATE;
  RETURN OLD;
END $$;
CREATE TRIGGER scratchpads_lock_runs BEFORE DELETE ON scratchpads FOR EACH ROW EXECUTE FUNCTION tp_lock_runs_of_scratchpad();

-- ---------------------------------------------------------------------------------------------------------
-- What is done with runs: delegated, claimed, updated. Each is one round trip.

-- Whether p_viewer (null: the owner) has seen, and will see while it is active, all that p_participant sees of a thread.
CREATE FUNCTION tp_sees_as_much(p_owner text, p_thread text, p_viewer text, p_participant text) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT p_viewer IS NULL OR NOT EXISTS (
    SELECT 1 FROM visibility_windows w
    WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.participant_id = p_participant AND NOT EXISTS (
      SELECT 1 FROM visibility_windows v
      WHERE v.owner_id = p_owner AND v.thread_id = p_thread AND v.participant_id = p_viewer
        AND v.after_seq <= w.after_seq AND (v.end_seq IS NULL OR v.end_seq >= w.end_seq)))
$$;

-- Whether the token that goes to the delegator may speak as the worker. It must show nothing that the delegator would
-- not see itself: so not in a conversation that others are in, and not where the worker sees more of the scratchpad.
-- What is refused here is the worker's to claim. p_is_delegators: another holds it, also where the worker delegates to itself.
CREATE FUNCTION tp_delegator_may_hold(p_run runs, p_is_delegators boolean) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT NOT p_is_delegators OR (
    EXISTS (
      SELECT 1 FROM thread_members m JOIN participants p ON p.owner_id = m.owner_id AND p.id = m.participant_id
      WHERE m.owner_id = p_run.owner_id AND m.thread_id = p_run.conversation_thread_id
        AND p.kind = 'UNIT' AND p.handle = 'run-' || split_part(p_run.id, '_', 2))
    AND NOT EXISTS (
      SELECT 1 FROM scratchpads s WHERE s.owner_id = p_run.owner_id AND s.id = p_run.scratchpad_id
        AND NOT tp_sees_as_much(s.owner_id, s.thread_id,
          (SELECT CASE WHEN p_run.parent_run_id IS NULL THEN p_run.delegator_id ELSE
            (SELECT r.pad_viewer_id FROM runs r WHERE r.id = p_run.parent_run_id) END),
          p_run.pad_viewer_id)))
$$;

-- Whether somebody else than its worker holds a token of a run, or can be given one yet: until it is claimed, its delegator;
-- and whoever so holds a token of the run that delegates it.
CREATE FUNCTION tp_is_open_to_delegator(p_owner text, p_run text) RETURNS boolean LANGUAGE sql STABLE AS $$
  WITH RECURSIVE above AS (
    SELECT r.id, r.parent_run_id, r.delegator_id <> r.participant_id AS is_others FROM runs r
    WHERE r.owner_id = p_owner AND r.id = p_run
      AND NOT EXISTS (SELECT 1 FROM credentials c WHERE c.run_id = r.id AND c.label = 'claimed')
    UNION ALL
    SELECT r.id, r.parent_run_id, r.delegator_id <> r.participant_id FROM above a
    JOIN runs r ON r.owner_id = p_owner AND r.id = a.parent_run_id
    WHERE NOT a.is_others AND NOT EXISTS (SELECT 1 FROM credentials c WHERE c.run_id = r.id AND c.label = 'claimed'))
  SELECT coalesce(bool_or(a.is_others), false) FROM above a
$$;

-- A token of a run. It lives as long as the run may; of one that has ended or was claimed by another, or that its holder may
-- not have, it is dead from the beginning. What a delegator's token makes is a delegator's too, whoever works there, and
-- dead if that token is.
CREATE FUNCTION tp_issue_run_token(
  p_run runs, p_id text, p_label text, p_prefix text, p_hash text, p_audit_id text, p_credential text, p_actor text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_through credentials;
  v_is_delegators boolean;
BEGIN
  SELECT c.* INTO v_through FROM credentials c WHERE c.owner_id = p_run.owner_id AND c.id = p_credential AND c.kind = 'RUN_TOKEN';
  v_is_delegators := p_label = 'delegated'
    AND (coalesce(p_run.delegator_id <> p_run.participant_id, false) OR coalesce(v_through.is_delegators, false));
  INSERT INTO credentials (id, owner_id, kind, participant_id, run_id, label, prefix, hash, expires_at, is_delegators, made_through_id, revoked_at)
    VALUES (p_id, p_run.owner_id, 'RUN_TOKEN', p_run.participant_id, p_run.id, p_label, p_prefix, p_hash, p_run.expires_at,
            v_is_delegators, v_through.id,
            CASE WHEN p_run.finished_at IS NOT NULL OR v_through.revoked_at IS NOT NULL
                OR (p_label = 'delegated' AND (NOT tp_delegator_may_hold(p_run, v_is_delegators)
                OR EXISTS (SELECT 1 FROM credentials c WHERE c.run_id = p_run.id AND c.label = 'claimed')))
              THEN clock_timestamp() END);
  INSERT INTO audit_log (id, owner_id, act, credential_id, actor_id, subject_id, details)
    VALUES (p_audit_id, p_run.owner_id, 'credential.created', p_credential, p_actor, p_id,
            jsonb_build_object('kind', 'RUN_TOKEN', 'participantId', p_run.participant_id, 'runId', p_run.id));
END $$;

-- Delegates a run. p_delegator null: the owner. p_parent: delegated by that run's worker, in that run's bounds. p_pad null:
-- the parent's, else none. p_conversation null: a private thread of the worker and a fresh unit is opened, under p_ids.
-- p_ids: run, credential, thread, its opening, unit, two of the audit log. p_token: prefix and hash. A replay answers the
-- first run with this token, and ends the one that was answered before. p_is_refused: nothing but a replay is answered.
-- Errors: NOT_FOUND, PARTICIPANT_NOT_ACTIVE, FORBIDDEN, CONFLICT, INVALID_TRANSITION, BAD_USER_INPUT, IDEMPOTENCY_KEY_REUSED.
CREATE FUNCTION delegate_run(
  p_owner text, p_delegator text, p_worker text, p_pad text, p_access scratchpad_accesses, p_parent text, p_conversation text,
  p_input jsonb, p_meta jsonb, p_max_calls integer, p_expires_in integer, p_key text, p_hash text,
  p_ids text[], p_token text[], p_credential text, p_is_refused boolean
) RETURNS SETOF run_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_run runs;
  v_parent runs;
  v_first jsonb;
  v_delegator text := p_delegator;
  v_pad text := p_pad;
  v_pad_thread text;
  v_viewer text;
  v_state participant_states;
  v_access scratchpad_accesses;
  v_calls integer := coalesce(p_max_calls, 200);
  v_left integer;
  v_expires timestamptz;
  v_conversation text := p_conversation;
  v_open text;
BEGIN
  PERFORM 1 FROM users u WHERE u.id = p_owner AND u.deleted_at IS NULL FOR SHARE;
  IF NOT FOUND THEN
    PERFORM tp_fail('UNAUTHENTICATED', 'The credential has ended.');
  END IF;
  v_first := tp_replay(p_owner, 'delegateRun', coalesce(p_parent, ''), coalesce(p_delegator, ''), p_key, p_hash);
  IF v_first IS NOT NULL THEN
    -- As a claim does: of the tokens of one tree there is none that it does not see.
    PERFORM 1 FROM runs r
      WHERE r.id = (SELECT t.root_run_id FROM runs t WHERE t.owner_id = p_owner AND t.id = v_first ->> 'runId') FOR NO KEY UPDATE;
    SELECT r.* INTO v_run FROM runs r WHERE r.owner_id = p_owner AND r.id = v_first ->> 'runId' FOR SHARE;
    UPDATE credentials c SET revoked_at = clock_timestamp()
      WHERE c.owner_id = p_owner AND c.id IN (SELECT d.id FROM credentials d
        WHERE d.run_id = v_run.id AND d.label = 'delegated' AND d.revoked_at IS NULL);
    PERFORM tp_issue_run_token(v_run, p_ids[2], 'delegated', p_token[1], p_token[2], p_ids[6], p_credential, p_delegator);
    RETURN QUERY SELECT r.* FROM run_rows r WHERE r.id = v_run.id;
    RETURN;
  END IF;
  IF p_is_refused THEN
    PERFORM tp_fail('NOT_FOUND', 'Participant not found.');
  END IF;

  -- Heads before runs: what of the parent is read here cannot change but for its pad's deletion.
  IF p_parent IS NOT NULL THEN
    SELECT r.* INTO v_parent FROM runs r WHERE r.owner_id = p_owner AND r.id = p_parent;
    IF NOT FOUND OR (p_delegator IS NOT NULL AND p_delegator NOT IN (v_parent.participant_id, coalesce(v_parent.delegator_id, ''))) THEN
      PERFORM tp_fail('NOT_FOUND', 'Run not found.', '{"field":"parentRunId"}');
    END IF;
    v_delegator := v_parent.participant_id;
    IF p_delegator <> v_delegator THEN
      PERFORM tp_fail('FORBIDDEN', 'Only its worker delegates children of a run.');
    END IF;
    IF p_pad <> coalesce(v_parent.scratchpad_id, '') THEN
      PERFORM tp_fail('NOT_FOUND', 'Scratchpad not found.', '{"field":"scratchpadId"}');
    END IF;
    v_pad := v_parent.scratchpad_id;
  END IF;
  IF v_pad IS NOT NULL THEN
    SELECT s.thread_id INTO v_pad_thread FROM scratchpads s WHERE s.owner_id = p_owner AND s.id = v_pad;
    PERFORM 1 FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = v_pad_thread FOR NO KEY UPDATE;
    -- It stays until there is the run; whoever deletes it takes it before any run.
    PERFORM 1 FROM scratchpads s WHERE s.owner_id = p_owner AND s.id = v_pad FOR KEY SHARE;
    IF NOT FOUND THEN
      PERFORM tp_fail('NOT_FOUND', 'Scratchpad not found.', '{"field":"scratchpadId"}');
    END IF;
    -- Who must be active: whoever delegates, in a run of a run whom that one sees the pad through.
    v_viewer := CASE WHEN p_parent IS NULL THEN v_delegator ELSE v_parent.pad_viewer_id END;
    IF v_viewer IS NOT NULL THEN
      SELECT m.state INTO v_state FROM thread_members m
        WHERE m.owner_id = p_owner AND m.thread_id = v_pad_thread AND m.participant_id = v_viewer;
      IF NOT FOUND THEN
        PERFORM tp_fail('NOT_FOUND', 'Scratchpad not found.', '{"field":"scratchpadId"}');
      END IF;
      IF v_state <> 'ACTIVE' THEN
        PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in the thread of this scratchpad; only an active member may delegate on it.');
      END IF;
    END IF;
    IF EXISTS (SELECT 1 FROM thread_members m
               WHERE m.owner_id = p_owner AND m.thread_id = v_pad_thread AND m.participant_id = p_worker) THEN
      v_viewer := p_worker;
    END IF;
  ELSIF v_delegator IS NOT NULL AND p_parent IS NULL THEN
    PERFORM tp_fail('BAD_USER_INPUT', 'Name the scratchpad: a participant delegates work on one that it may write to.',
                    '{"field":"scratchpadId"}');
  END IF;
  PERFORM tp_require_participants(p_owner, array_remove(ARRAY[p_worker, v_delegator], NULL));
  IF v_delegator <> p_worker
     AND EXISTS (SELECT 1 FROM participants p WHERE p.owner_id = p_owner AND p.id = p_worker AND p.kind = 'HUMAN') THEN
    PERFORM tp_fail('BAD_USER_INPUT', 'A participant delegates to agents and units; ask a person in a message.', '{"field":"participantId"}');
  END IF;
  IF p_conversation IS NOT NULL THEN
    -- The thread itself: its deletion has the head, and waits for whoever has the thread.
    PERFORM 1 FROM threads t WHERE t.owner_id = p_owner AND t.id = p_conversation FOR KEY SHARE;
    PERFORM 1 FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_conversation;
    IF NOT FOUND OR (v_delegator IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_conversation AND m.participant_id = v_delegator
    )) THEN
      PERFORM tp_fail('NOT_FOUND', 'Thread not found.', '{"field":"conversationThreadId"}');
    END IF;
    IF EXISTS (SELECT 1 FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_conversation
                 AND m.participant_id = v_delegator AND m.state <> 'ACTIVE') THEN
      PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in this conversation; only an active member may give work in it.',
                      '{"field":"conversationThreadId"}');
    END IF;
    SELECT m.state INTO v_state FROM thread_members m
      WHERE m.owner_id = p_owner AND m.thread_id = p_conversation AND m.participant_id = p_worker;
    IF NOT FOUND THEN
      PERFORM tp_fail('BAD_USER_INPUT', 'The worker is no member of this conversation.', '{"field":"conversationThreadId"}');
    ELSIF v_state <> 'ACTIVE' THEN
      PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The worker is not active in this conversation.', '{"field":"conversationThreadId"}');
    END IF;
  END IF;

  v_access := coalesce(p_access, 'WRITE');
  v_expires := clock_timestamp() + p_expires_in * interval '1 second';
  IF p_parent IS NOT NULL THEN
    PERFORM 1 FROM runs r WHERE r.id = v_parent.root_run_id FOR NO KEY UPDATE;
    SELECT r.* INTO v_parent FROM runs r WHERE r.id = p_parent;
    IF v_parent.finished_at IS NOT NULL OR tp_is_over(v_parent.expires_at) THEN
      PERFORM tp_refuse_run(v_parent, 'It delegates no more.');
    END IF;
    v_access := coalesce(p_access, v_parent.access);
    IF v_access > v_parent.access THEN
      PERFORM tp_fail('FORBIDDEN', 'A run may do no more with its scratchpad than the run that delegates it.',
                      jsonb_build_object('field', 'scratchpadAccess', 'limit', v_parent.access));
    END IF;
    IF v_expires > v_parent.expires_at THEN
      PERFORM tp_fail('FORBIDDEN', 'A run may live no longer than the run that delegates it.', '{"field":"expiresInSeconds"}');
    END IF;
    v_expires := coalesce(v_expires, v_parent.expires_at);
    v_left := v_parent.max_tool_calls - v_parent.tool_calls;
    IF v_left < coalesce(p_max_calls, 1) THEN
      PERFORM tp_fail('FORBIDDEN', 'A run may make no more tool calls than the run that delegates it has left.',
                      jsonb_build_object('field', 'maxToolCalls', 'limit', v_left));
    END IF;
    v_calls := least(v_calls, v_left);
  END IF;

  IF v_conversation IS NULL THEN
    INSERT INTO participants (id, owner_id, kind, handle, display_name)
      VALUES (p_ids[5], p_owner, 'UNIT', 'run-' || split_part(p_ids[1], '_', 2), 'Run');
    SELECT t.thread_id INTO v_conversation FROM tp_ensure_thread(p_owner, ARRAY[p_worker, p_ids[5]], p_ids[3], p_ids[4], NULL, NULL) t;
  END IF;
  INSERT INTO runs (id, owner_id, participant_id, delegator_id, parent_run_id, root_run_id, conversation_thread_id, scratchpad_id,
                    access, pad_viewer_id, input, meta_data, max_tool_calls, expires_at)
    VALUES (p_ids[1], p_owner, p_worker, v_delegator, p_parent, coalesce(v_parent.root_run_id, p_ids[1]), v_conversation, v_pad,
            v_access, v_viewer, p_input,
            (coalesce(p_meta, '{}') - ARRAY['scratchpad_id', 'batfish_owner_user_id', 'scratch_pad_thread'])
              || jsonb_build_object('batfish_owner_user_id', p_owner)
              || CASE WHEN v_pad IS NULL THEN '{}' ELSE jsonb_build_object('scratchpad_id', v_pad, 'scratch_pad_thread', v_pad_thread) END,
            v_calls, v_expires)
    ON CONFLICT (owner_id, participant_id, conversation_thread_id) WHERE finished_at IS NULL DO NOTHING
    RETURNING * INTO v_run;
  IF v_run.id IS NULL THEN
    SELECT r.id INTO v_open FROM runs r WHERE r.owner_id = p_owner AND r.participant_id = p_worker
      AND r.conversation_thread_id = v_conversation AND r.finished_at IS NULL
      AND (v_delegator IS NULL OR v_delegator IN (r.participant_id, r.delegator_id));
    PERFORM tp_fail('CONFLICT', 'The worker has an open run in this conversation; one at a time.',
      jsonb_strip_nulls(jsonb_build_object('field', 'conversationThreadId', 'existingId', v_open)));
  END IF;
  PERFORM tp_issue_run_token(v_run, p_ids[2], 'delegated', p_token[1], p_token[2], p_ids[6], p_credential, v_delegator);
  INSERT INTO audit_log (id, owner_id, act, credential_id, actor_id, subject_id, details)
    VALUES (p_ids[7], p_owner, 'run.delegated', p_credential, v_delegator, v_run.id,
            jsonb_build_object('participantId', p_worker, 'scratchpadId', v_pad, 'access', v_access, 'parentRunId', p_parent));
  IF p_key IS NOT NULL THEN
    INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result)
      VALUES (p_owner, 'delegateRun', coalesce(p_parent, ''), coalesce(p_delegator, ''), p_key, p_hash, jsonb_build_object('runId', v_run.id));
  END IF;
  PERFORM tp_control(p_owner, p_worker, 'RUN_ASSIGNED', v_conversation, v_run.id);
  RETURN QUERY SELECT r.* FROM run_rows r WHERE r.id = v_run.id;
END $$;

-- A worker takes a queued run: one call wins, and what was issued before is over, with every token of another run that was
-- made through it; those runs stay. p_actor null: the owner, for the worker.
-- Errors: NOT_FOUND, FORBIDDEN, INVALID_TRANSITION.
CREATE FUNCTION claim_run(
  p_owner text, p_run text, p_actor text, p_ids text[], p_token text[], p_credential text
) RETURNS SETOF run_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_run runs;
BEGIN
  PERFORM 1 FROM runs r WHERE r.id = (SELECT t.root_run_id FROM runs t WHERE t.owner_id = p_owner AND t.id = p_run) FOR NO KEY UPDATE;
  SELECT r.* INTO v_run FROM runs r WHERE r.owner_id = p_owner AND r.id = p_run FOR NO KEY UPDATE;
  IF NOT FOUND OR p_actor NOT IN (v_run.participant_id, coalesce(v_run.delegator_id, '')) THEN
    PERFORM tp_fail('NOT_FOUND', 'Run not found.');
  END IF;
  IF p_actor <> v_run.participant_id THEN
    PERFORM tp_fail('FORBIDDEN', 'Only its worker claims a run.');
  END IF;
  IF tp_run_status(v_run) <> 'QUEUED' THEN
    PERFORM tp_refuse_run(v_run, 'Only one that is QUEUED can be claimed.');
  END IF;
  UPDATE runs r SET status = 'IN_PROGRESS', started_at = clock_timestamp() WHERE r.id = p_run RETURNING r.* INTO v_run;
  UPDATE credentials c SET revoked_at = clock_timestamp() WHERE c.owner_id = p_owner AND c.revoked_at IS NULL AND c.id = ANY (ARRAY(
    WITH RECURSIVE made AS (
      SELECT d.id FROM credentials d WHERE d.run_id = p_run
      UNION
      SELECT d.id FROM made m JOIN credentials d ON d.made_through_id = m.id)
    SELECT m.id FROM made m));
  PERFORM tp_issue_run_token(v_run, p_ids[1], 'claimed', p_token[1], p_token[2], p_ids[2], p_credential, p_actor);
  RETURN QUERY SELECT r.* FROM run_rows r WHERE r.id = p_run;
END $$;

-- Changes where a run stands, its deadline, or both. p_actor null: the owner. p_token_run: the run whose token asks.
-- Errors: NOT_FOUND, FORBIDDEN, INVALID_TRANSITION.
CREATE FUNCTION update_run(
  p_owner text, p_run text, p_actor text, p_token_run text, p_status run_statuses, p_result jsonb, p_error text, p_expires_in integer
) RETURNS SETOF run_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_run runs;
  v_ways run_statuses[];
  v_parent_expires timestamptz;
  v_expires timestamptz;
BEGIN
  PERFORM 1 FROM runs r WHERE r.id = (SELECT t.root_run_id FROM runs t WHERE t.owner_id = p_owner AND t.id = p_run) FOR NO KEY UPDATE;
  SELECT r.* INTO v_run FROM runs r WHERE r.owner_id = p_owner AND r.id = p_run FOR NO KEY UPDATE;
  IF NOT FOUND OR (p_token_run IS NULL AND p_actor NOT IN (v_run.participant_id, coalesce(v_run.delegator_id, '')))
     OR p_token_run NOT IN (v_run.id, coalesce(v_run.parent_run_id, '')) THEN
    PERFORM tp_fail('NOT_FOUND', 'Run not found.');
  END IF;
  v_ways := tp_run_ways(tp_run_status(v_run));
  IF p_status IN ('IN_PROGRESS', 'INPUT_REQUIRED', 'COMPLETED', 'FAILED') THEN
    IF p_actor IS DISTINCT FROM v_run.participant_id OR p_token_run <> v_run.id THEN
      PERFORM tp_fail('FORBIDDEN', 'Only its worker says so of a run.');
    END IF;
  END IF;
  IF (p_status = 'CANCELLED' OR p_expires_in IS NOT NULL)
     AND (p_token_run IS NOT NULL OR (p_actor IS NOT NULL AND p_actor IS DISTINCT FROM v_run.delegator_id)) THEN
    PERFORM tp_fail('FORBIDDEN', 'Only the user or whoever delegated it cancels a run or sets its deadline.');
  END IF;
  IF cardinality(v_ways) = 0 OR p_status <> ALL (v_ways) THEN
    PERFORM tp_refuse_run(v_run);
  END IF;

  IF p_expires_in IS NOT NULL THEN
    v_expires := clock_timestamp() + p_expires_in * interval '1 second';
    SELECT r.expires_at INTO v_parent_expires FROM runs r WHERE r.id = v_run.parent_run_id;
    IF v_expires > v_parent_expires THEN
      PERFORM tp_fail('FORBIDDEN', 'A run may live no longer than the run that delegates it.', '{"field":"expiresInSeconds"}');
    END IF;
    UPDATE runs r SET expires_at = v_expires WHERE r.id = p_run;
    UPDATE credentials c SET expires_at = v_expires WHERE c.run_id = p_run AND c.revoked_at IS NULL;
  END IF;
  IF p_status IN ('COMPLETED', 'FAILED', 'CANCELLED') THEN
    PERFORM tp_end_runs(ARRAY[p_run], p_status, p_result, p_error);
  ELSIF p_status IS NOT NULL THEN
    UPDATE runs r SET status = p_status, started_at = coalesce(r.started_at, clock_timestamp()), result = p_result WHERE r.id = p_run;
  END IF;
  RETURN QUERY SELECT r.* FROM run_rows r WHERE r.id = p_run;
END $$;

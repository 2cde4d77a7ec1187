-- CreateTable
CREATE TABLE "memory_heads" (
    "owner_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "last_number" INTEGER NOT NULL,
    "last_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "memory_heads_pkey" PRIMARY KEY ("owner_id","participant_id")
);

-- CreateTable
CREATE TABLE "memory_scopes" (
    "owner_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "scope" TEXT NOT NULL,
    "last_no" INTEGER NOT NULL,

    CONSTRAINT "memory_scopes_pkey" PRIMARY KEY ("owner_id","participant_id","scope")
);

-- CreateTable
CREATE TABLE "memory_entries" (
    "owner_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "number" INTEGER NOT NULL,
    "id" TEXT NOT NULL,
    "timestamp" TIMESTAMPTZ(6) NOT NULL,
    "scope" TEXT NOT NULL,
    "scope_no" INTEGER NOT NULL,
    "payload" JSONB,
    "bytes" INTEGER NOT NULL,
    "thread_id" TEXT,
    "thread_only" BOOLEAN,
    "thread_seq" INTEGER,
    "source_ids" TEXT[],
    "run_id" TEXT,
    "words" tsvector,

    CONSTRAINT "memory_entries_pkey" PRIMARY KEY ("owner_id","participant_id","number")
);

-- CreateIndex
CREATE UNIQUE INDEX "memory_entries_id_key" ON "memory_entries"("id");

-- CreateIndex
CREATE INDEX "memory_entries_owner_id_participant_id_scope_number_idx" ON "memory_entries"("owner_id", "participant_id", "scope", "number");

-- CreateIndex
CREATE INDEX "memory_entries_words_idx" ON "memory_entries" USING GIN ("words");

-- AddForeignKey
ALTER TABLE "memory_heads" ADD CONSTRAINT "memory_heads_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memory_scopes" ADD CONSTRAINT "memory_scopes_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "memory_heads"("owner_id", "participant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "memory_entries" ADD CONSTRAINT "memory_entries_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- ---------------------------------------------------------------------------------------------------------
-- What an entry is found by: its words, the values in it, its place in its scope's list.

CREATE FUNCTION tp_memory_list(p_participant text, p_scope text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT p_participant || ' ' || p_scope
$$;

CREATE FUNCTION tp_memory_words(p_participant text, p_scope text, p_scope_no integer, p_payload jsonb) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT concat_ws(' ',
    tp_place_marks(tp_memory_list(p_participant, p_scope), p_scope_no),
    (SELECT string_agg('''' || m || '''', ' ') FROM tp_value_marks(p_participant, p_payload) m),
    tp_vector_text(p_participant, (
      SELECT string_agg(s.value #>> '{}', E'\n') FROM jsonb_path_query(p_payload, 'strict $.**') s(value)
      WHERE jsonb_typeof(s.value) = 'string')))::tsvector
$$;

-- Words wait at the index's door for company, but not for long: a search reads all that waits.
ALTER INDEX memory_entries_words_idx SET (gin_pending_list_limit = 256);

CREATE TRIGGER memory_entries_no_truncate BEFORE TRUNCATE ON memory_entries FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER memory_heads_no_truncate BEFORE TRUNCATE ON memory_heads FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();
CREATE TRIGGER memory_scopes_no_truncate BEFORE TRUNCATE ON memory_scopes FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- A memory is not rewritten. Erasure alone may empty a payload.
CREATE TRIGGER memory_entries_no_update BEFORE UPDATE ON memory_entries FOR EACH ROW
  WHEN (NEW.payload IS NOT NULL OR NEW.words IS NOT NULL
    OR (NEW.owner_id, NEW.participant_id, NEW.number, NEW.id, NEW."timestamp", NEW.scope, NEW.scope_no, NEW.source_ids)
       IS DISTINCT FROM (OLD.owner_id, OLD.participant_id, OLD.number, OLD.id, OLD."timestamp", OLD.scope, OLD.scope_no, OLD.source_ids)
    OR (NEW.thread_id, NEW.thread_only, NEW.thread_seq, NEW.run_id)
       IS DISTINCT FROM (OLD.thread_id, OLD.thread_only, OLD.thread_seq, OLD.run_id))
  EXECUTE FUNCTION tp_refuse_update();

CREATE VIEW memory_rows AS
SELECT m.owner_id, m.participant_id, m.number, m.id,
  to_char(m."timestamp" AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "timestamp",
  m.payload, m.payload IS NULL AS is_erased, m.bytes, m.scope, m.thread_id, m.thread_only, m.thread_seq, m.source_ids, m.run_id
FROM memory_entries m;

-- The agent whose memory it is, or the error that says why there is none.
CREATE FUNCTION tp_require_agent(p_owner text, p_participant text) RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE v_kind participant_kinds;
BEGIN
  SELECT p.kind INTO v_kind FROM participants p WHERE p.owner_id = p_owner AND p.id = p_participant;
  IF v_kind IS NULL THEN
    PERFORM tp_fail('NOT_FOUND', 'Participant not found.');
  ELSIF v_kind = 'HUMAN' THEN
    PERFORM tp_fail('FORBIDDEN', 'Agents and units have a memory, humans have none.');
  END IF;
END $$;

-- Stores an entry. p_thread: where the agent works, as an active member; null: nowhere. The stamp is the thread's policy
-- at this moment. p_sources_seen: whether the agent may see each source. One lock per thread, then one per agent.
-- Errors: NOT_FOUND, IDEMPOTENCY_KEY_REUSED, FORBIDDEN, PARTICIPANT_NOT_ACTIVE.
CREATE FUNCTION store_memory(
  p_owner text, p_participant text, p_thread text, p_id text, p_payload jsonb, p_bytes integer,
  p_sources text[], p_sources_seen boolean, p_run text, p_key text, p_hash text
) RETURNS SETOF memory_rows
LANGUAGE plpgsql AS $$
DECLARE
  v_head thread_heads;
  v_first jsonb;
  v_only boolean;
  v_scope text := '';
  v_number integer;
  v_at timestamptz;
  v_no integer;
BEGIN
  IF p_thread IS NOT NULL THEN
    v_head := tp_lock_thread(p_owner, p_thread, p_participant);
  END IF;
  v_first := tp_replay(p_owner, 'storeMemory', coalesce(p_thread, ''), p_participant, p_key, p_hash);
  IF v_first IS NOT NULL THEN
    RETURN QUERY SELECT r.* FROM memory_rows r
      WHERE r.owner_id = p_owner AND r.participant_id = p_participant AND r.number = (v_first ->> 'number')::integer;
    RETURN;
  END IF;
  IF p_run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.owner_id = p_owner AND r.id = p_run
      AND r.finished_at IS NULL AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp())) THEN
    PERFORM tp_fail('UNAUTHENTICATED', 'The run has ended.');
  END IF;
  PERFORM tp_require_agent(p_owner, p_participant);
  IF p_thread IS NOT NULL THEN
    SELECT t.thread_only INTO v_only FROM threads t
      JOIN thread_members m ON m.owner_id = t.owner_id AND m.thread_id = t.id AND m.participant_id = p_participant
      WHERE t.owner_id = p_owner AND t.id = p_thread AND m.state = 'ACTIVE';
    IF NOT FOUND THEN
      PERFORM tp_fail('PARTICIPANT_NOT_ACTIVE', 'The participant is not active in this thread; only an active member may store memory.');
    END IF;
    v_scope := CASE WHEN v_only THEN p_thread ELSE '' END;
  END IF;
  IF NOT p_sources_seen THEN
    PERFORM tp_fail('NOT_FOUND', 'Source not found.', '{"field":"sourceIds"}');
  END IF;

  INSERT INTO memory_heads AS h (owner_id, participant_id, last_number, last_at)
    VALUES (p_owner, p_participant, 1, clock_timestamp())
    ON CONFLICT (owner_id, participant_id) DO UPDATE
      SET last_number = h.last_number + 1, last_at = greatest(clock_timestamp(), h.last_at + interval '1 microsecond')
    RETURNING h.last_number, h.last_at INTO v_number, v_at;
  INSERT INTO memory_scopes AS s (owner_id, participant_id, scope, last_no)
    VALUES (p_owner, p_participant, v_scope, 1)
    ON CONFLICT (owner_id, participant_id, scope) DO UPDATE SET last_no = s.last_no + 1
    RETURNING s.last_no INTO v_no;
  INSERT INTO memory_entries (owner_id, participant_id, number, id, "timestamp", scope, scope_no, payload, bytes,
                              thread_id, thread_only, thread_seq, source_ids, run_id, words)
    VALUES (p_owner, p_participant, v_number, p_id, v_at, v_scope, v_no, p_payload, p_bytes,
            p_thread, v_only, v_head.last_seq, p_sources, p_run, tp_memory_words(p_participant, v_scope, v_no, p_payload));
  IF p_key IS NOT NULL THEN
    INSERT INTO idempotency_records (owner_id, operation, target, actor, key, input_hash, result, thread_id)
      VALUES (p_owner, 'storeMemory', coalesce(p_thread, ''), p_participant, p_key, p_hash,
              jsonb_build_object('number', v_number), p_thread);
  END IF;
  RETURN QUERY SELECT r.* FROM memory_rows r
    WHERE r.owner_id = p_owner AND r.participant_id = p_participant AND r.number = v_number;
END $$;

-- Up to p_wanted entries of one scope, with numbers between the bounds (exclusive), that have p_terms and contain
-- p_match; the newest of them or, p_oldest, the oldest. The walk goes along the list in stretches, so that it reads about what it
-- finds, be the words rare or common: all that there is of what is rare, and of the others as much as is wanted.
CREATE FUNCTION tp_walk_memory(
  p_owner text, p_participant text, p_scope text, p_terms tsquery, p_match jsonb, p_rank tsquery,
  p_above bigint, p_below bigint, p_wanted integer, p_oldest boolean
) RETURNS TABLE (number integer, score integer)
LANGUAGE plpgsql STABLE ROWS 100 SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c_many CONSTANT integer := 8192;
  v_list text := tp_memory_list(p_participant, p_scope);
  v_low bigint := 1;
  v_high bigint;
  v_from bigint;
  v_to bigint;
  v_may_all boolean := p_terms IS NOT NULL;
  v_rest bigint;
  v_is_rest boolean;
  v_is_all boolean;
  v_size bigint;
  v_query tsquery;
  v_left integer := p_wanted;
  v_met integer := 0;
  v_seen bigint := 0;
  v_places tid[];
  v_found integer;
BEGIN
  IF p_below IS NULL THEN
    SELECT s.last_no INTO v_high FROM memory_scopes s
      WHERE s.owner_id = p_owner AND s.participant_id = p_participant AND s.scope = p_scope;
  ELSE
    SELECT m.scope_no INTO v_high FROM memory_entries m
      WHERE m.owner_id = p_owner AND m.participant_id = p_participant
        AND (m.scope, m.number) < (p_scope, p_below) AND (m.scope, m.number) > (p_scope, 0)
      ORDER BY m.scope DESC, m.number DESC LIMIT 1;
  END IF;
  IF p_above IS NOT NULL THEN
    SELECT m.scope_no INTO v_low FROM memory_entries m
      WHERE m.owner_id = p_owner AND m.participant_id = p_participant
        AND (m.scope, m.number) > (p_scope, p_above) AND (m.scope, m.number) < (p_scope, 2147483648)
      ORDER BY m.scope, m.number LIMIT 1;
  END IF;
  WHILE v_left > 0 AND v_low <= v_high LOOP
    v_rest := CASE WHEN v_may_all THEN v_high - v_low + 1 END;
    v_size := tp_step(v_left, v_rest, v_met, v_seen);
    LOOP
      v_is_rest := v_size > v_high - v_low;
      v_from := CASE WHEN p_oldest OR v_is_rest THEN v_low ELSE greatest(v_low, tp_boundary(v_high - v_size + 1, v_size)) END;
      v_to := CASE WHEN p_oldest AND NOT v_is_rest THEN least(v_high, tp_boundary(v_low + v_size, v_size) - 1) ELSE v_high END;
      v_is_all := v_is_rest AND v_may_all AND tp_is_rare(v_rest, v_met, v_seen);
      v_query := CASE WHEN v_is_all THEN p_terms ELSE coalesce(tp_stretch(v_list, v_from, v_to) && p_terms, tp_stretch(v_list, v_from, v_to)) END;
      v_places := NULL;
      EXIT WHEN NOT (v_is_all OR tp_is_risky(v_from, v_to, v_met));
      -- Where there may be many, the index is asked first, and once.
      v_places := ARRAY(SELECT m.ctid FROM memory_entries m WHERE m.words @@ v_query LIMIT c_many);
      EXIT WHEN cardinality(v_places) < c_many;
      v_may_all := false;
      v_size := CASE WHEN v_size > 131072 THEN 131072 ELSE 4096 END;
    END LOOP;
    RETURN QUERY
      SELECT f.number, CASE WHEN p_rank IS NULL THEN 0 ELSE least(round(ts_rank(f.words, p_rank, 1) * 1000000000), 2000000000)::integer END
      FROM (
        SELECT w.number, w.words FROM (
          -- By words alone: no other index is as good.
          SELECT m.owner_id, m.participant_id, m.scope, m.scope_no, m.number, m.payload, m.words FROM memory_entries m
          WHERE v_places IS NULL AND m.words @@ v_query
          UNION ALL
          SELECT m.owner_id, m.participant_id, m.scope, m.scope_no, m.number, m.payload, m.words FROM memory_entries m
          WHERE m.ctid = ANY (v_places) OFFSET 0) w
        WHERE w.owner_id = p_owner AND w.participant_id = p_participant AND w.scope = p_scope
          AND w.scope_no BETWEEN v_from AND v_to AND (p_match IS NULL OR w.payload @> p_match)
        ORDER BY CASE WHEN p_oldest THEN w.number ELSE -w.number END LIMIT v_left) f;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    v_left := v_left - v_found;
    v_met := v_met + v_found;
    v_seen := v_seen + v_to - v_from + 1;
    IF p_oldest THEN v_low := v_to + 1; ELSE v_high := v_from - 1; END IF;
  END LOOP;
END $$;

-- Up to p_limit numbers of entries of these scopes between the bounds, without ranking: the newest or the oldest.
CREATE FUNCTION tp_list_memory(
  p_owner text, p_participant text, p_scopes text[], p_terms tsquery, p_match jsonb,
  p_above bigint, p_below bigint, p_limit integer, p_oldest boolean
) RETURNS SETOF integer
LANGUAGE plpgsql STABLE ROWS 50 SET plan_cache_mode = auto AS $$
BEGIN
  IF p_match IS NOT NULL THEN
    RETURN QUERY SELECT w.number FROM unnest(p_scopes) AS s(scope)
      CROSS JOIN LATERAL tp_walk_memory(p_owner, p_participant, s.scope, p_terms, p_match, NULL, p_above, p_below, p_limit, p_oldest) w
      ORDER BY CASE WHEN p_oldest THEN w.number ELSE -w.number END LIMIT p_limit;
  ELSIF p_oldest THEN
    RETURN QUERY SELECT e.number FROM unnest(p_scopes) AS s(scope) CROSS JOIN LATERAL (
        SELECT m.number FROM memory_entries m
        WHERE m.owner_id = p_owner AND m.participant_id = p_participant
          AND (m.scope, m.number) > (s.scope, coalesce(p_above, 0)) AND (m.scope, m.number) < (s.scope, coalesce(p_below, 2147483648))
        ORDER BY m.scope, m.number LIMIT p_limit) e
      ORDER BY e.number LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT e.number FROM unnest(p_scopes) AS s(scope) CROSS JOIN LATERAL (
        SELECT m.number FROM memory_entries m
        WHERE m.owner_id = p_owner AND m.participant_id = p_participant
          AND (m.scope, m.number) > (s.scope, coalesce(p_above, 0)) AND (m.scope, m.number) < (s.scope, coalesce(p_below, 2147483648))
        ORDER BY m.scope DESC, m.number DESC LIMIT p_limit) e
      ORDER BY e.number DESC LIMIT p_limit;
  END IF;
END $$;

-- How many of these entries, from the first on, are of p_bytes together: at least one.
CREATE FUNCTION tp_memories_kept(p_owner text, p_participant text, p_numbers integer[], p_bytes integer) RETURNS integer
LANGUAGE sql STABLE AS $$
  SELECT count(*) FILTER (WHERE k.i = 1 OR k.bytes <= p_bytes)::integer FROM (
    -- OFFSET 0: each is looked up by its key, whatever else the agent has.
    SELECT n.i, sum(m.bytes) OVER (ORDER BY n.i) AS bytes FROM unnest(p_numbers) WITH ORDINALITY AS n(number, i)
    CROSS JOIN LATERAL (
      SELECT e.bytes FROM memory_entries e
      WHERE e.owner_id = p_owner AND e.participant_id = p_participant AND e.number = n.number OFFSET 0) m) k
$$;

-- A page of what an agent recalls in a thread, of which it must be a member. By words: those that have all of them or,
-- where none has, any; the best first, of the newest 2,000 up to the horizon. Without words: the newest first. p_after
-- and p_before: {horizon, score, number}. The page is cut where its payloads are more than p_bytes together. The first
-- row, without a number, says what lies before and behind. p_here_only: nothing that is recalled everywhere.
-- Errors: NOT_FOUND, FORBIDDEN.
CREATE FUNCTION recall_memory(
  p_owner text, p_participant text, p_thread text, p_query text, p_match jsonb,
  p_after bigint[], p_before bigint[], p_limit integer, p_backward boolean, p_bytes integer, p_here_only boolean
) RETURNS TABLE (place integer, has_previous boolean, has_next boolean, horizon bigint, score integer, number integer)
LANGUAGE plpgsql STABLE ROWS 50 SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_scopes text[] := CASE WHEN p_here_only THEN ARRAY[p_thread] ELSE ARRAY[p_thread, ''] END;
  v_marks tsquery;
  v_words tsquery;
  v_any tsquery;
  v_horizon bigint;
  v_numbers integer[];
  v_scores integer[];
  v_from integer;
  v_to integer;
  v_count integer;
  v_kept integer;
  v_previous boolean;
  v_next boolean;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM thread_heads h
      JOIN thread_members m ON m.owner_id = h.owner_id AND m.thread_id = h.thread_id AND m.participant_id = p_participant
      WHERE h.owner_id = p_owner AND h.thread_id = p_thread) THEN
    PERFORM tp_fail('NOT_FOUND', 'Thread not found.');
  END IF;
  PERFORM tp_require_agent(p_owner, p_participant);
  v_marks := (SELECT string_agg('''' || m || '''', ' & ')::tsquery FROM tp_value_marks(p_participant, p_match) m);
  v_words := tp_query(p_participant, p_query, false);
  v_horizon := coalesce(p_after[1], p_before[1],
    (SELECT h.last_number FROM memory_heads h WHERE h.owner_id = p_owner AND h.participant_id = p_participant), 0);

  IF v_words IS NULL THEN
    v_numbers := ARRAY(SELECT l FROM tp_list_memory(p_owner, p_participant, v_scopes, v_marks, p_match,
      p_before[3], p_after[3], p_limit + 1, p_backward) l);
    v_kept := tp_memories_kept(p_owner, p_participant, v_numbers[1:p_limit], p_bytes);
    IF p_backward THEN
      v_previous := v_kept < cardinality(v_numbers);
      v_next := p_before IS NOT NULL AND EXISTS (SELECT 1 FROM tp_list_memory(p_owner, p_participant, v_scopes, v_marks, p_match,
        NULL, coalesce(v_numbers[1], p_before[3] + 1), 1, false));
    ELSE
      v_next := v_kept < cardinality(v_numbers) OR (p_before IS NOT NULL AND EXISTS (
        SELECT 1 FROM tp_list_memory(p_owner, p_participant, v_scopes, v_marks, p_match, NULL, coalesce(v_numbers[v_kept], p_before[3] + 1), 1, false)));
      v_previous := p_after IS NOT NULL AND EXISTS (
        SELECT 1 FROM tp_list_memory(p_owner, p_participant, v_scopes, v_marks, p_match, coalesce(v_numbers[1], p_after[3] - 1), NULL, 1, true));
    END IF;
    RETURN QUERY SELECT 0, v_previous, v_next, v_horizon, 0, NULL::integer;
    RETURN QUERY SELECT CASE WHEN p_backward THEN v_kept + 1 - n.i::integer ELSE n.i::integer END, v_previous, v_next, v_horizon, 0, n.number
      FROM unnest(v_numbers[1:v_kept]) WITH ORDINALITY AS n(number, i);
    RETURN;
  END IF;

  v_any := tp_query(p_participant, p_query, true);
  FOR v_try IN 1 .. 2 LOOP
    SELECT array_agg(r.number ORDER BY r.score DESC, r.number DESC), array_agg(r.score ORDER BY r.score DESC, r.number DESC)
      INTO v_numbers, v_scores
      FROM (
        SELECT w.number, w.score FROM unnest(v_scopes) AS s(scope)
        CROSS JOIN LATERAL tp_walk_memory(p_owner, p_participant, s.scope,
          CASE WHEN v_marks IS NULL THEN v_words ELSE v_words && v_marks END, p_match, v_any, NULL, v_horizon + 1, 2000, false) w
        ORDER BY w.number DESC LIMIT 2000) r;
    EXIT WHEN v_numbers IS NOT NULL OR v_words = v_any;
    v_words := v_any;
  END LOOP;
  v_count := coalesce(cardinality(v_numbers), 0);
  SELECT coalesce(min(n.i) FILTER (WHERE p_after IS NULL OR (n.score, n.number) < (p_after[2], p_after[3])), v_count + 1),
         coalesce(max(n.i) FILTER (WHERE p_before IS NULL OR (n.score, n.number) > (p_before[2], p_before[3])), 0)
    INTO v_from, v_to FROM unnest(v_numbers, v_scores) WITH ORDINALITY AS n(number, score, i);
  IF p_backward THEN
    v_from := greatest(v_from, v_to - p_limit + 1);
  ELSE
    v_to := least(v_to, v_from + p_limit - 1);
  END IF;
  v_kept := tp_memories_kept(p_owner, p_participant,
    ARRAY(SELECT v_numbers[CASE WHEN p_backward THEN v_to - i ELSE v_from + i END] FROM generate_series(0, v_to - v_from) i), p_bytes);
  IF p_backward THEN v_from := v_to - v_kept + 1; ELSE v_to := v_from + v_kept - 1; END IF;
  v_previous := v_from > 1 AND v_count > 0;
  v_next := v_to < v_count;
  RETURN QUERY SELECT 0, v_previous, v_next, v_horizon, 0, NULL::integer;
  RETURN QUERY SELECT i - v_from + 1, v_previous, v_next, v_horizon, v_scores[i], v_numbers[i] FROM generate_series(v_from, v_to) i;
END $$;

-- Which of these entries there are to see for a viewer (null: the owner). For an agent its own: those that are
-- recalled everywhere (but p_here_only) and, where it works in a thread, in that thread.
CREATE FUNCTION visible_memories(p_owner text, p_viewer text, p_thread text, p_here_only boolean, p_ids text[]) RETURNS SETOF memory_rows
LANGUAGE sql STABLE ROWS 50 AS $$
  SELECT r.* FROM unnest(p_ids) AS i(id) JOIN memory_rows r ON r.id = i.id
  WHERE r.owner_id = p_owner AND (p_viewer IS NULL OR (r.participant_id = p_viewer AND (
    (r.scope = '' AND NOT p_here_only) OR (r.scope = p_thread AND EXISTS (
      SELECT 1 FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_thread)))))
$$;

-- Copies the next entries after p_after, up to p_until, of one agent's memory to another, with their stamps: as many as there
-- are ids for, and of p_bytes together (the first always). Answers the number of the last one.
CREATE FUNCTION copy_memory(
  p_owner text, p_from text, p_to text, p_after integer, p_until integer, p_bytes integer, p_ids text[]
) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE v_last integer;
BEGIN
  SELECT max(n.number) INTO v_last FROM (
    SELECT m.number, sum(m.bytes) OVER (ORDER BY m.number) AS bytes FROM memory_entries m
    WHERE m.owner_id = p_owner AND m.participant_id = p_from AND m.number > p_after
      AND m.number <= least(p_until, p_after + cardinality(p_ids))) n
  WHERE n.bytes <= p_bytes OR n.number = p_after + 1;
  INSERT INTO memory_entries (owner_id, participant_id, number, id, "timestamp", scope, scope_no, payload, bytes,
                              thread_id, thread_only, thread_seq, source_ids, run_id, words)
    SELECT p_owner, p_to, m.number, p_ids[m.number - p_after], m."timestamp", m.scope, m.scope_no, m.payload, m.bytes,
      m.thread_id, m.thread_only, m.thread_seq, m.source_ids, m.run_id, tp_memory_words(p_to, m.scope, m.scope_no, m.payload)
    FROM memory_entries m
    WHERE m.owner_id = p_owner AND m.participant_id = p_from AND m.number > p_after
      AND m.number <= v_last;
  INSERT INTO memory_heads AS h (owner_id, participant_id, last_number, last_at)
    SELECT p_owner, p_to, m.number, m."timestamp" FROM memory_entries m
    WHERE m.owner_id = p_owner AND m.participant_id = p_to ORDER BY m.number DESC LIMIT 1
    ON CONFLICT (owner_id, participant_id) DO UPDATE SET last_number = excluded.last_number, last_at = excluded.last_at;
  INSERT INTO memory_scopes AS s (owner_id, participant_id, scope, last_no)
    SELECT p_owner, p_to, m.scope, max(m.scope_no) FROM memory_entries m
    WHERE m.owner_id = p_owner AND m.participant_id = p_to AND m.number > p_after GROUP BY m.scope
    ON CONFLICT (owner_id, participant_id, scope) DO UPDATE SET last_no = excluded.last_no;
  RETURN v_last;
END $$;

-- A thread's memory policy, from this commit on; its agents are told. p_member: must be one, unless null.
CREATE FUNCTION set_memory_policy(p_owner text, p_thread text, p_member text, p_only boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tp_lock_thread(p_owner, p_thread, p_member);
  UPDATE threads t SET thread_only = p_only WHERE t.owner_id = p_owner AND t.id = p_thread AND t.thread_only <> p_only;
  IF FOUND THEN
    PERFORM tp_control(p_owner, m.participant_id, 'MEMORY_POLICY_CHANGED', p_thread) FROM thread_members m
      WHERE m.owner_id = p_owner AND m.thread_id = p_thread;
  END IF;
END $$;

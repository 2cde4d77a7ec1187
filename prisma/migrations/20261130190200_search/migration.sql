-- CreateTable
CREATE TABLE "message_words" (
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "number" BIGSERIAL NOT NULL,
    "words" tsvector NOT NULL,

    CONSTRAINT "message_words_pkey" PRIMARY KEY ("owner_id","thread_id","seq")
);

-- CreateIndex
CREATE INDEX "message_words_words_idx" ON "message_words" USING GIN ("words");

-- AddForeignKey
ALTER TABLE "message_words" ADD CONSTRAINT "message_words_owner_id_thread_id_seq_fkey" FOREIGN KEY ("owner_id", "thread_id", "seq") REFERENCES "message_bodies"("owner_id", "thread_id", "seq") ON DELETE CASCADE ON UPDATE CASCADE;

-- ---------------------------------------------------------------------------------------------------------
-- Messages are found by their words, made as those of memory are. Whoever was active when a message was appended sees it
-- for ever, and nobody else ever does: so the viewers stand among its words, and a search through windows is one of words.

CREATE TRIGGER message_words_no_update BEFORE UPDATE ON message_words FOR EACH ROW EXECUTE FUNCTION tp_refuse_update();
CREATE TRIGGER message_words_no_delete BEFORE DELETE ON message_words FOR EACH ROW EXECUTE FUNCTION tp_refuse_delete();
CREATE TRIGGER message_words_no_truncate BEFORE TRUNCATE ON message_words FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- An append adds to what waits at the index's door; what waits is little enough to be read by every search.
ALTER INDEX message_words_words_idx SET (gin_pending_list_limit = 512);

CREATE FUNCTION tp_viewer_mark(p_viewer text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT '''/@' || regexp_replace(p_viewer, '[^0-9a-z]', '', 'g') || ''''
$$;

CREATE FUNCTION tp_message_words(p_owner text, p_thread text, p_seq integer, p_number bigint, p_viewers text[], p_content text)
RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT concat_ws(' ',
    tp_place_marks(p_owner, p_number), tp_place_marks(p_thread, p_seq),
    (SELECT string_agg(tp_viewer_mark(v), ' ') FROM unnest(p_viewers) v),
    tp_vector_text(p_owner, p_content))::tsvector
$$;

-- The members who see position p_seq.
CREATE FUNCTION tp_viewers(p_owner text, p_thread text, p_seq integer) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT array_agg(w.participant_id) FROM visibility_windows w
  WHERE w.owner_id = p_owner AND w.thread_id = p_thread AND w.after_seq <= p_seq AND (w.end_seq IS NULL OR w.end_seq >= p_seq)
$$;

-- In the transaction of the message, whatever inserts it, and under its thread's lock.
CREATE FUNCTION tp_index_message() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_number bigint := nextval('message_words_number_seq');
BEGIN
  INSERT INTO message_words (owner_id, thread_id, seq, number, words)
    VALUES (NEW.owner_id, NEW.thread_id, NEW.seq, v_number,
      tp_message_words(NEW.owner_id, NEW.thread_id, NEW.seq, v_number, tp_viewers(NEW.owner_id, NEW.thread_id, NEW.seq), NEW.content));
  RETURN NULL;
END $$;
CREATE TRIGGER message_bodies_index AFTER INSERT ON message_bodies FOR EACH ROW EXECUTE FUNCTION tp_index_message();

-- Those that were there before.
INSERT INTO message_words (owner_id, thread_id, seq, number, words)
  SELECT m.owner_id, m.thread_id, m.seq, m.number,
    tp_message_words(m.owner_id, m.thread_id, m.seq, m.number, tp_viewers(m.owner_id, m.thread_id, m.seq), m.content)
  FROM (
    SELECT o.*, nextval('message_words_number_seq') AS number FROM (
      SELECT b.owner_id, b.thread_id, b.seq, b.content FROM message_bodies b
      JOIN events e ON e.owner_id = b.owner_id AND e.thread_id = b.thread_id AND e.seq = b.seq
      ORDER BY e.at, e.id) o) m;

-- The newest p_wanted messages with p_terms, of one thread or (null) of all, up to the horizon, with their scores: as
-- tp_walk_memory. p_viewer null: the owner.
CREATE FUNCTION tp_walk_messages(
  p_owner text, p_viewer text, p_thread text, p_terms tsquery, p_rank tsquery, p_horizon bigint, p_wanted integer
) RETURNS TABLE (number bigint, thread_id text, seq integer, score integer)
LANGUAGE plpgsql STABLE ROWS 100 SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  c_many CONSTANT integer := 8192;
  v_high bigint;
  v_from bigint;
  v_may_all boolean := true;
  v_is_all boolean;
  v_size bigint;
  v_terms tsquery := p_terms;
  v_query tsquery;
  v_left integer := p_wanted;
  v_met integer := 0;
  v_seen bigint := 0;
  v_places tid[];
  v_found integer;
BEGIN
  IF p_viewer IS NOT NULL THEN
    v_terms := tp_viewer_mark(p_viewer)::tsquery && p_terms;
  END IF;
  IF p_thread IS NULL THEN
    v_high := coalesce(p_horizon, (SELECT s.last_value FROM message_words_number_seq s));
  ELSE
    SELECT h.last_seq INTO v_high FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_thread;
  END IF;
  WHILE v_left > 0 AND v_high > 0 LOOP
    v_size := tp_step(v_left, CASE WHEN v_may_all THEN v_high END, v_met, v_seen);
    LOOP
      v_from := greatest(1, tp_boundary(v_high - v_size + 1, v_size));
      v_is_all := v_from = 1 AND v_may_all AND tp_is_rare(v_high, v_met, v_seen);
      -- Of what is rare, who sees it is looked at last.
      v_query := CASE WHEN v_is_all THEN p_terms ELSE tp_stretch(coalesce(p_thread, p_owner), v_from, v_high) && v_terms END;
      v_places := NULL;
      EXIT WHEN NOT (v_is_all OR tp_is_risky(v_from, v_high, v_met));
      v_places := ARRAY(SELECT m.ctid FROM message_words m WHERE m.words @@ v_query LIMIT c_many);
      EXIT WHEN cardinality(v_places) < c_many;
      v_may_all := false;
      v_size := CASE WHEN v_size > 131072 THEN 131072 ELSE 4096 END;
    END LOOP;
    RETURN QUERY
      SELECT f.number, f.thread_id, f.seq, least(round(ts_rank(f.words, p_rank, 1) * 1000000000), 2000000000)::integer
      FROM (
        SELECT w.number, w.thread_id, w.seq, w.words FROM (
          SELECT m.owner_id, m.thread_id, m.seq, m.number, m.words FROM message_words m
          WHERE v_places IS NULL AND m.words @@ v_query
          UNION ALL
          SELECT m.owner_id, m.thread_id, m.seq, m.number, m.words FROM message_words m
          WHERE m.ctid = ANY (v_places) OFFSET 0) w
        WHERE w.owner_id = p_owner AND (p_horizon IS NULL OR w.number <= p_horizon) AND (NOT v_is_all OR w.words @@ v_terms)
          AND CASE WHEN p_thread IS NULL
            THEN w.number BETWEEN v_from AND v_high AND EXISTS (
              SELECT 1 FROM thread_heads h WHERE h.owner_id = w.owner_id AND h.thread_id = w.thread_id)
            ELSE w.thread_id = p_thread AND w.seq BETWEEN v_from AND v_high END
        ORDER BY w.number DESC LIMIT v_left) f;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    v_left := v_left - v_found;
    v_met := v_met + v_found;
    v_seen := v_seen + v_high - v_from + 1;
    v_high := v_from - 1;
  END LOOP;
END $$;

-- The number of the message that a cursor names, if the viewer may see it.
CREATE FUNCTION tp_message_number(p_owner text, p_viewer text, p_id text, p_field text) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE v_number bigint;
BEGIN
  IF p_id IS NULL THEN RETURN NULL; END IF;
  SELECT w.number INTO v_number FROM events e
    JOIN message_words w ON w.owner_id = e.owner_id AND w.thread_id = e.thread_id AND w.seq = e.seq
    JOIN thread_heads h ON h.owner_id = e.owner_id AND h.thread_id = e.thread_id
    WHERE e.id = p_id AND e.owner_id = p_owner AND tp_visible(p_owner, e.thread_id, e.seq, '{}', p_viewer);
  IF v_number IS NULL THEN
    PERFORM tp_fail('INVALID_CURSOR', 'This cursor does not belong to this log, or lies beyond its end.', jsonb_build_object('field', p_field));
  END IF;
  RETURN v_number;
END $$;

-- A page of the messages with all words of p_query that a viewer (null: the owner) may see: the best first, of the newest
-- 2,000 up to the horizon, which is the newest message of the first page's. Cursors are {horizon, score, message}, by ids.
-- The first row, without a message, says what lies before and behind. Errors: NOT_FOUND, INVALID_CURSOR.
CREATE FUNCTION search_messages(
  p_owner text, p_viewer text, p_thread text, p_query text,
  p_after_horizon text, p_after_score bigint, p_after_id text, p_before_horizon text, p_before_score bigint, p_before_id text,
  p_limit integer, p_backward boolean, p_bytes integer
) RETURNS TABLE (place integer, has_previous boolean, has_next boolean, horizon text, score integer, thread_id text, seq integer)
LANGUAGE plpgsql STABLE ROWS 50 SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_after bigint := tp_message_number(p_owner, p_viewer, p_after_id, 'after');
  v_before bigint := tp_message_number(p_owner, p_viewer, p_before_id, 'before');
  v_horizon bigint := coalesce(
    tp_message_number(p_owner, p_viewer, p_after_horizon, 'after'), tp_message_number(p_owner, p_viewer, p_before_horizon, 'before'));
  v_words tsquery := tp_query(p_owner, p_query, false);
  v_numbers bigint[];
  v_threads text[];
  v_seqs integer[];
  v_scores integer[];
  v_newest integer;
  v_name text;
  v_from integer;
  v_to integer;
  v_count integer;
  v_kept integer;
BEGIN
  IF p_thread IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM thread_heads h WHERE h.owner_id = p_owner AND h.thread_id = p_thread AND (p_viewer IS NULL OR EXISTS (
      SELECT 1 FROM thread_members m WHERE m.owner_id = p_owner AND m.thread_id = p_thread AND m.participant_id = p_viewer))
  ) THEN
    PERFORM tp_fail('NOT_FOUND', 'Thread not found.');
  END IF;
  IF v_words IS NOT NULL THEN
    SELECT array_agg(w.number ORDER BY w.score DESC, w.number DESC), array_agg(w.thread_id ORDER BY w.score DESC, w.number DESC),
        array_agg(w.seq ORDER BY w.score DESC, w.number DESC), array_agg(w.score ORDER BY w.score DESC, w.number DESC)
      INTO v_numbers, v_threads, v_seqs, v_scores
      FROM tp_walk_messages(p_owner, p_viewer, p_thread, v_words, tp_query(p_owner, p_query, true), v_horizon, 2000) w;
  END IF;
  v_count := coalesce(cardinality(v_numbers), 0);
  v_name := coalesce(p_after_horizon, p_before_horizon);
  IF v_name IS NULL AND v_count > 0 THEN
    SELECT n.i INTO v_newest FROM unnest(v_numbers) WITH ORDINALITY AS n(number, i) ORDER BY n.number DESC LIMIT 1;
    SELECT e.id INTO v_name FROM events e WHERE e.owner_id = p_owner AND e.thread_id = v_threads[v_newest] AND e.seq = v_seqs[v_newest];
  END IF;
  SELECT coalesce(min(n.i) FILTER (WHERE v_after IS NULL OR (n.score, n.number) < (p_after_score, v_after)), v_count + 1),
         coalesce(max(n.i) FILTER (WHERE v_before IS NULL OR (n.score, n.number) > (p_before_score, v_before)), 0)
    INTO v_from, v_to FROM unnest(v_numbers, v_scores) WITH ORDINALITY AS n(number, score, i);
  IF p_backward THEN
    v_from := greatest(v_from, v_to - p_limit + 1);
  ELSE
    v_to := least(v_to, v_from + p_limit - 1);
  END IF;
  SELECT count(*) FILTER (WHERE k.i = 0 OR k.bytes <= p_bytes) INTO v_kept FROM (
    -- OFFSET 0: each is looked up by its key, whatever else there is.
    SELECT n.i, sum(coalesce(octet_length(b.content), 0) + coalesce(pg_column_size(b.data), 0)) OVER (ORDER BY n.i) AS bytes
    FROM (SELECT i, CASE WHEN p_backward THEN v_to - i ELSE v_from + i END AS at FROM generate_series(0, v_to - v_from) i) n
    LEFT JOIN LATERAL (
      SELECT m.content, m.data FROM message_bodies m
      WHERE m.owner_id = p_owner AND m.thread_id = v_threads[n.at] AND m.seq = v_seqs[n.at] OFFSET 0) b ON true) k;
  IF p_backward THEN v_from := v_to - v_kept + 1; ELSE v_to := v_from + v_kept - 1; END IF;
  RETURN QUERY SELECT 0, v_from > 1 AND v_count > 0, v_to < v_count, v_name, 0, NULL::text, NULL::integer;
  RETURN QUERY SELECT i - v_from + 1, false, false, v_name, v_scores[i], v_threads[i], v_seqs[i] FROM generate_series(v_from, v_to) i;
END $$;

-- Words. What is searched, of memory and of messages, stands in one tsvector per text, made here and never by the parser
-- of the database, whose words depend on its locale: words of every language, marks of JSON values, marks of place.
-- A mark begins with '/', which no word has. Words and values begin with whose they are: an agent's, or a tenant's. So what
-- is looked for is found among its own, however much others have of it.

-- A text in one way of writing: compatible forms, accents and case are folded. The case of letters beyond ASCII is
-- that of Unicode where this database knows it, whatever its locale.
DO $outer$
DECLARE v_collation text := coalesce(
  (SELECT quote_ident(c.collname) FROM pg_collation c
   WHERE c.collname IN ('pg_c_utf8', 'und-x-icu', 'C.utf8', 'C.UTF-8', 'en_US.utf8') AND c.collencoding IN (-1, 6)
     AND c.collnamespace = 'pg_catalog'::regnamespace
   ORDER BY array_position(ARRAY['pg_c_utf8', 'und-x-icu', 'C.utf8', 'C.UTF-8', 'en_US.utf8'], c.collname::text) LIMIT 1),
  '"default"');
BEGIN
  EXECUTE format($create$
    CREATE FUNCTION tp_fold(p_text text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $body$
      SELECT lower(CASE
        WHEN octet_length(p_text) = char_length(p_text) THEN p_text
        ELSE normalize(regexp_replace(normalize(p_text, NFKD), '[\u0300-\u036f]+', '', 'g'), NFKC)
      END COLLATE %s)
    $body$ $create$, v_collation);
END $outer$;

-- The words of a text, apart. Stretches in scripts that put no spaces between words (Han, Kana, Hangul, Thai, Lao,
-- Khmer, Myanmar) are words of their own. Separators are named, not letters: no locale is asked.
CREATE FUNCTION tp_spaced(p_text text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE v_text text := tp_fold(p_text);
BEGIN
  IF octet_length(v_text) = char_length(v_text) THEN
    RETURN regexp_replace(v_text, '[^a-z0-9]+', ' ', 'g');
  END IF;
  RETURN regexp_replace(
    regexp_replace(v_text,
      '[\u0001-\u002f\u003a-\u0060\u007b-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u0589\u05be\u05c0\u05c3\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u0e4f\u0e5a\u0e5b\u104a\u104b\u17d4-\u17da\u2000-\u206f\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u303d\u30a0\u30fb\ue000-\uf8ff\ufe00-\ufe6f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\ufff0-\uffff\U0001f000-\U0001faff]+',
      ' ', 'g'),
    '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+)',
    ' \1 ', 'g');
END $$;

-- A word as it is searched: English endings are left off (dogs, dog), longer ones are cut. This and the next are not STRICT,
-- so that they are taken into the statement that uses them: there is one call for each word of each message.
CREATE FUNCTION tp_stem(p_word text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN p_word ~ '^[a-z]{3,40}$' THEN coalesce((ts_lexize('english_stem', p_word))[1], p_word) ELSE left(p_word, 64) END
$$;

-- What a word is found by, and where in it that stands: itself and, of a stretch without spaces, each pair of neighbours and
-- each character. p_asked: what is looked for, which is the pairs, or the character that stands alone.
CREATE FUNCTION tp_word_lexemes(p_word text, p_asked boolean) RETURNS TABLE (lexeme text, place bigint) LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 2 AS $$
  SELECT tp_stem(p_word), 0::bigint WHERE ascii(p_word) < 3584
    OR p_word !~ '^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]'
  UNION ALL
  SELECT x.lexeme, c.i FROM (
    SELECT c.c, c.i, lead(c.c) OVER (ORDER BY c.i) AS next, count(*) OVER () AS length
    FROM string_to_table(p_word, NULL) WITH ORDINALITY AS c(c, i)
    WHERE ascii(p_word) >= 3584
      AND p_word ~ '^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]') c
  CROSS JOIN LATERAL (VALUES (c.c || c.next), (CASE WHEN c.length = 1 OR NOT p_asked THEN c.c END)) AS x(lexeme)
  WHERE x.lexeme IS NOT NULL
$$;

-- What is looked for by a text.
CREATE FUNCTION tp_asked_lexemes(p_text text) RETURNS SETOF text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 50 AS $$
  SELECT l.lexeme FROM string_to_table(tp_spaced(p_text), ' ') AS w(word)
  CROSS JOIN LATERAL tp_word_lexemes(w.word, true) AS l
  WHERE w.word <> ''
$$;

-- What the words of an agent, or of a tenant, begin with. A beginning that is shared is no harm: who uses it looks again.
CREATE FUNCTION tp_owned(p_of text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT left(md5(p_of), 6)
$$;

-- Lexemes of a text as the input of a tsvector; how often one occurs is kept, up to eight times. Each word is looked at once.
CREATE FUNCTION tp_vector_text(p_of text, p_text text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT string_agg('''' || tp_owned(p_of) || l.lexeme || '''' ||
    CASE WHEN l.n > 1 THEN ':' || left('1,2,3,4,5,6,7,8', 2 * least(l.n, 8)::integer - 1) ELSE '' END, ' ')
  FROM (
    -- A tsvector holds a megabyte: of texts that have more different words the last ones are left out.
    SELECT d.lexeme, d.n, sum(octet_length(d.lexeme) + CASE WHEN d.n > 1 THEN 30 ELSE 12 END) OVER (ORDER BY d.i, d.place) AS bytes
    FROM (SELECT x.lexeme, sum(w.n) AS n, min(w.i) AS i, min(x.place) AS place
          FROM (SELECT s.word, count(*) AS n, min(s.i) AS i
                FROM string_to_table(tp_spaced(p_text), ' ') WITH ORDINALITY AS s(word, i)
                WHERE s.word <> '' GROUP BY s.word) w
          CROSS JOIN LATERAL tp_word_lexemes(w.word, false) AS x GROUP BY x.lexeme) d
  ) l
  WHERE l.bytes < 900000
$$;

-- What is searched for, null where the text has no word: all of its words or, p_any, any of them. Small English words
-- (the, of) count only among nothing else.
CREATE FUNCTION tp_query(p_of text, p_text text, p_any boolean) RETURNS tsquery LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  WITH words AS (
    SELECT DISTINCT x.lexeme, coalesce(x.lexeme ~ '^[a-z]{1,40}$' AND ts_lexize('english_stem', x.lexeme) = '{}', false) AS is_small
    FROM tp_asked_lexemes(p_text) AS x(lexeme))
  SELECT string_agg('''' || tp_owned(p_of) || w.lexeme || '''', CASE WHEN p_any THEN ' | ' ELSE ' & ' END)::tsquery
  FROM (SELECT * FROM words LIMIT 1000) w
  WHERE NOT w.is_small OR NOT EXISTS (SELECT 1 FROM words o WHERE NOT o.is_small)
$$;

-- Marks of the values in a JSON: what contains another value has all of its marks. (Never the reverse: who uses them
-- looks again.) Numbers that are equal have one mark; where in a list a value stands does not matter.
CREATE FUNCTION tp_value_marks(p_of text, p_json jsonb) RETURNS SETOF text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 20 AS $$
  WITH RECURSIVE walk(path, value) AS (
    SELECT ''::text, p_json
    UNION ALL
    SELECT n.path, n.value FROM walk w CROSS JOIN LATERAL (
      SELECT w.path || '/' || o.key AS path, o.value
      FROM jsonb_each(CASE WHEN jsonb_typeof(w.value) = 'object' THEN w.value ELSE '{}' END) o
      UNION ALL
      SELECT w.path, a.value
      FROM jsonb_array_elements(CASE WHEN jsonb_typeof(w.value) = 'array' THEN w.value ELSE '[]' END) a(value)) n)
  SELECT DISTINCT '/=' || left(md5(p_of || w.path || '=' ||
    CASE WHEN jsonb_typeof(w.value) = 'number' THEN trim_scale((w.value #>> '{}')::numeric)::text ELSE w.value::text END), 8)
  FROM walk w WHERE jsonb_typeof(w.value) NOT IN ('object', 'array')
$$;

-- Where a text stands in a list of texts, three times: in the list, in 65,536 of it, in 4,096 of it. So a search can
-- walk along the list in steps that it chooses, whatever words it is for. A name that is shared is no harm: who uses
-- them looks again.
CREATE FUNCTION tp_place_marks(p_list text, p_no bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT format('''/%s'' ''/%s+%s'' ''/%s-%s''', n.name, n.name, to_hex(p_no >> 16), n.name, to_hex(p_no >> 12))
  FROM (SELECT left(md5(p_list), 12) AS name) n
$$;

-- The part [p_low, p_high] of a list, or somewhat more.
CREATE FUNCTION tp_stretch(p_list text, p_low bigint, p_high bigint) RETURNS tsquery LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (CASE
    WHEN (p_high >> 12) - (p_low >> 12) < 17 THEN
      (SELECT string_agg(format('''/%s-%s''', n.name, to_hex(b)), ' | ') FROM generate_series(p_low >> 12, p_high >> 12) b)
    WHEN (p_high >> 16) - (p_low >> 16) < 65 THEN
      (SELECT string_agg(format('''/%s+%s''', n.name, to_hex(b)), ' | ') FROM generate_series(p_low >> 16, p_high >> 16) b)
    ELSE format('''/%s''', n.name)
  END)::tsquery
  FROM (SELECT left(md5(p_list), 12) AS name) n
$$;

-- Whether so little is to be met in the p_rest positions that are left (null: not known) that it is rather read whole, by its
-- words alone, than along the list.
CREATE FUNCTION tp_is_rare(p_rest bigint, p_met integer, p_seen bigint) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(p_seen >= 65536 AND p_met * p_rest < 4096 * p_seen, false)
$$;

-- The length of the next stretch of a walk that wants p_left more, having met p_met in p_seen positions.
CREATE FUNCTION tp_step(p_left integer, p_rest bigint, p_met integer, p_seen bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT greatest(4096, CASE
    WHEN tp_is_rare(p_rest, p_met, p_seen) THEN p_rest
    WHEN p_met >= 8 THEN least(ceil(p_left::numeric * p_seen / p_met), p_seen * 32, 1048576)
    ELSE least(p_seen * 16, CASE WHEN p_seen < 65536 THEN 131072 ELSE 1048576 END)
  END)::bigint
$$;

-- The boundary of a stretch of this length that is nearest to a position: between, marks of place say nothing.
CREATE FUNCTION tp_boundary(p_no bigint, p_size bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN p_size < 65536 THEN p_no >> 12 << 12 ELSE (p_no + 32768) >> 16 << 16 END
$$;

-- Whether a stretch may hold many times what is wanted, for all that is known after p_met.
CREATE FUNCTION tp_is_risky(p_low bigint, p_high bigint, p_met integer) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT p_high - p_low > CASE WHEN p_met < 32 THEN 8192 ELSE 524288 END
$$;

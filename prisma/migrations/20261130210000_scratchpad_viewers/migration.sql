-- A participant's list of pads in its order, so that a page of it costs what the page has and not what the participant has.
-- CreateTable
CREATE TABLE "scratchpad_viewers" (
    "owner_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "scratchpad_id" TEXT NOT NULL,

    CONSTRAINT "scratchpad_viewers_pkey" PRIMARY KEY ("owner_id","participant_id","created_at","scratchpad_id")
);

-- CreateIndex
CREATE INDEX "scratchpad_viewers_owner_id_created_at_scratchpad_id_idx" ON "scratchpad_viewers"("owner_id", "created_at", "scratchpad_id");

-- CreateIndex
CREATE UNIQUE INDEX "scratchpads_owner_id_created_at_id_key" ON "scratchpads"("owner_id", "created_at", "id");

-- DropIndex
DROP INDEX "scratchpads_owner_id_created_at_id_idx";

-- AddForeignKey
ALTER TABLE "scratchpad_viewers" ADD CONSTRAINT "scratchpad_viewers_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "scratchpad_viewers" ADD CONSTRAINT "scratchpad_viewers_owner_id_created_at_scratchpad_id_fkey" FOREIGN KEY ("owner_id", "created_at", "scratchpad_id") REFERENCES "scratchpads"("owner_id", "created_at", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Who is in a thread is decided at its opening, and a pad is made later, under the thread's lock.
CREATE FUNCTION tp_show_scratchpads() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO scratchpad_viewers (owner_id, participant_id, created_at, scratchpad_id)
    SELECT s.owner_id, m.participant_id, s.created_at, s.id
    FROM made s JOIN thread_members m ON m.owner_id = s.owner_id AND m.thread_id = s.thread_id;
  RETURN NULL;
END $$;
CREATE TRIGGER scratchpads_show AFTER INSERT ON scratchpads REFERENCING NEW TABLE AS made
  FOR EACH STATEMENT EXECUTE FUNCTION tp_show_scratchpads();

INSERT INTO scratchpad_viewers (owner_id, participant_id, created_at, scratchpad_id)
  SELECT s.owner_id, m.participant_id, s.created_at, s.id
  FROM scratchpads s JOIN thread_members m ON m.owner_id = s.owner_id AND m.thread_id = s.thread_id
  ON CONFLICT DO NOTHING;
CREATE TRIGGER scratchpad_viewers_no_truncate BEFORE TRUNCATE ON scratchpad_viewers FOR EACH STATEMENT EXECUTE FUNCTION tp_refuse_truncate();

-- One event is looked for by its thread and position. No other index may begin with the thread: in plans that are made before anybody
-- has analysed the table, or of a thread that is newer than that, all of them cost the same, and by another one the whole thread is
-- read. So whatever else is looked for in a thread comes before it, and only messages with a key are in the index of keys.

CREATE UNIQUE INDEX "events_client_keys" ON "events"("owner_id", "thread_id", "sender_id", "client_key") WHERE "client_key" IS NOT NULL;
DROP INDEX "events_owner_id_thread_id_sender_id_client_key_key";

CREATE INDEX "events_owner_id_type_thread_id_seq_idx" ON "events"("owner_id", "type", "thread_id", "seq");
DROP INDEX "events_owner_id_thread_id_type_seq_idx";

CREATE INDEX "events_owner_id_sender_id_thread_id_seq_idx" ON "events"("owner_id", "sender_id", "thread_id", "seq");
DROP INDEX "events_owner_id_thread_id_sender_id_seq_idx";

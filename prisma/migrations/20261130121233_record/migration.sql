-- CreateEnum
CREATE TYPE "participant_kinds" AS ENUM ('HUMAN', 'AGENT', 'UNIT');

-- CreateEnum
CREATE TYPE "credential_kinds" AS ENUM ('API_KEY', 'PARTICIPANT_TOKEN', 'RUN_TOKEN');

-- CreateEnum
CREATE TYPE "participant_states" AS ENUM ('ACTIVE', 'REMOVED');

-- CreateEnum
CREATE TYPE "timeline_event_types" AS ENUM ('MESSAGE', 'PARTICIPANT_STATE_CHANGED', 'RETRACTION', 'SYSTEM');

-- CreateTable
CREATE TABLE "users" (
    "id" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(3),
    "idempotency_key" TEXT,
    "input_hash" TEXT,
    "first_key_id" TEXT,

    CONSTRAINT "users_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "participants" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "kind" "participant_kinds" NOT NULL,
    "handle" TEXT NOT NULL,
    "display_name" TEXT NOT NULL,
    "concurrent_threads" BOOLEAN NOT NULL DEFAULT true,
    "listed" BOOLEAN NOT NULL DEFAULT false,
    "tools" JSONB NOT NULL DEFAULT '[]',
    "meta_data" JSONB NOT NULL DEFAULT '{}',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "participants_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "credentials" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "kind" "credential_kinds" NOT NULL,
    "participant_id" TEXT,
    "run_id" TEXT,
    "label" TEXT,
    "prefix" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_used_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "credentials_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "revocation_log" (
    "id" BIGSERIAL NOT NULL,
    "xid" BIGINT NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint,
    "credential_id" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "revocation_log_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "tickets" (
    "hash" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "credential_id" TEXT NOT NULL,
    "act_as" TEXT,
    "operation_hash" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "opened" INTEGER NOT NULL DEFAULT 0,
    "alive_at" TIMESTAMPTZ(3),
    "start_thread_id" TEXT,
    "start_seq" INTEGER,

    CONSTRAINT "tickets_pkey" PRIMARY KEY ("hash")
);

-- CreateTable
CREATE TABLE "threads" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "set_hash" TEXT,
    "meta_data" JSONB NOT NULL DEFAULT '{}',
    "thread_only" BOOLEAN NOT NULL DEFAULT true,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deleted_at" TIMESTAMPTZ(3),

    CONSTRAINT "threads_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "thread_heads" (
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "last_seq" INTEGER NOT NULL,
    "last_at" TIMESTAMPTZ(6) NOT NULL,
    "activity" BIGINT NOT NULL,
    "message_count" INTEGER NOT NULL DEFAULT 0,
    "tail_hidden" BOOLEAN NOT NULL DEFAULT false,
    "agent_hops" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "thread_heads_pkey" PRIMARY KEY ("owner_id","thread_id")
);

-- CreateTable
CREATE TABLE "thread_members" (
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "state" "participant_states" NOT NULL DEFAULT 'ACTIVE',
    "since_seq" INTEGER NOT NULL DEFAULT 1,
    "since_at" TIMESTAMPTZ(6) NOT NULL,
    "frozen_activity" BIGINT,
    "closed_visible" INTEGER NOT NULL DEFAULT 0,
    "open_after_no" INTEGER NOT NULL DEFAULT 0,
    "sent_count" INTEGER NOT NULL DEFAULT 0,
    "ack_seq" INTEGER NOT NULL DEFAULT 0,
    "ack_visible" INTEGER NOT NULL DEFAULT 0,
    "ack_sent" INTEGER NOT NULL DEFAULT 0,
    "unread_retracted" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "thread_members_pkey" PRIMARY KEY ("owner_id","thread_id","participant_id")
);

-- CreateTable
CREATE TABLE "visibility_windows" (
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "participant_id" TEXT NOT NULL,
    "after_seq" INTEGER NOT NULL,
    "end_seq" INTEGER,
    "after_no" INTEGER NOT NULL,
    "visible_before" INTEGER NOT NULL,

    CONSTRAINT "visibility_windows_pkey" PRIMARY KEY ("owner_id","thread_id","participant_id","after_seq")
);

-- CreateTable
CREATE TABLE "events" (
    "thread_id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "owner_id" TEXT NOT NULL,
    "id" TEXT NOT NULL,
    "type" "timeline_event_types" NOT NULL,
    "at" TIMESTAMPTZ(6) NOT NULL,
    "message_no" INTEGER NOT NULL,
    "sender_id" TEXT,
    "sender_no" INTEGER,
    "agent_hops" INTEGER,
    "context" JSONB,
    "mention_ids" TEXT[],
    "source_ids" TEXT[],
    "run_id" TEXT,
    "client_key" TEXT,
    "input_hash" TEXT,
    "subject_id" TEXT,
    "to_state" "participant_states",
    "actor_id" TEXT,
    "target_seq" INTEGER,
    "reason" TEXT,
    "kind" TEXT,
    "data" JSONB,
    "related_thread_id" TEXT,
    "hidden_from" TEXT[],

    CONSTRAINT "events_pkey" PRIMARY KEY ("owner_id","thread_id","seq")
);

-- CreateTable
CREATE TABLE "message_bodies" (
    "thread_id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "owner_id" TEXT NOT NULL,
    "content" TEXT NOT NULL,
    "data" JSONB,

    CONSTRAINT "message_bodies_pkey" PRIMARY KEY ("owner_id","thread_id","seq")
);

-- CreateTable
CREATE TABLE "retracted_messages" (
    "thread_id" TEXT NOT NULL,
    "message_seq" INTEGER NOT NULL,
    "retraction_seq" INTEGER NOT NULL,
    "owner_id" TEXT NOT NULL,
    "sender_id" TEXT NOT NULL,

    CONSTRAINT "retracted_messages_pkey" PRIMARY KEY ("owner_id","thread_id","message_seq")
);

-- CreateTable
CREATE TABLE "thread_links" (
    "owner_id" TEXT NOT NULL,
    "earlier_id" TEXT NOT NULL,
    "later_id" TEXT NOT NULL,
    "earlier_seq" INTEGER NOT NULL,
    "later_seq" INTEGER NOT NULL,

    CONSTRAINT "thread_links_pkey" PRIMARY KEY ("earlier_id","later_id")
);

-- CreateTable
CREATE TABLE "idempotency_records" (
    "owner_id" TEXT NOT NULL,
    "operation" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "actor" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "input_hash" TEXT NOT NULL,
    "result" JSONB NOT NULL,
    "thread_id" TEXT,

    CONSTRAINT "idempotency_records_pkey" PRIMARY KEY ("owner_id","operation","target","actor","key")
);

-- CreateTable
CREATE TABLE "audit_log" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "act" TEXT NOT NULL,
    "credential_id" TEXT,
    "actor_id" TEXT,
    "subject_id" TEXT,
    "details" JSONB NOT NULL DEFAULT '{}',

    CONSTRAINT "audit_log_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "users_idempotency_key_key" ON "users"("idempotency_key");

-- CreateIndex
CREATE INDEX "users_created_at_id_idx" ON "users"("created_at", "id");

-- CreateIndex
CREATE INDEX "participants_owner_id_created_at_id_idx" ON "participants"("owner_id", "created_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "participants_owner_id_id_key" ON "participants"("owner_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "participants_owner_id_handle_key" ON "participants"("owner_id", "handle");

-- CreateIndex
CREATE UNIQUE INDEX "credentials_hash_key" ON "credentials"("hash");

-- CreateIndex
CREATE INDEX "credentials_owner_id_created_at_id_idx" ON "credentials"("owner_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "credentials_owner_id_participant_id_idx" ON "credentials"("owner_id", "participant_id");

-- CreateIndex
CREATE UNIQUE INDEX "credentials_owner_id_id_key" ON "credentials"("owner_id", "id");

-- CreateIndex
CREATE INDEX "revocation_log_xid_idx" ON "revocation_log"("xid");

-- CreateIndex
CREATE INDEX "tickets_expires_at_idx" ON "tickets"("expires_at");

-- CreateIndex
CREATE INDEX "threads_deleted_at_idx" ON "threads"("deleted_at");

-- CreateIndex
CREATE UNIQUE INDEX "threads_owner_id_id_key" ON "threads"("owner_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "threads_owner_id_set_hash_key" ON "threads"("owner_id", "set_hash");

-- CreateIndex
CREATE INDEX "thread_heads_owner_id_activity_thread_id_idx" ON "thread_heads"("owner_id", "activity", "thread_id");

-- CreateIndex
CREATE INDEX "thread_members_owner_id_participant_id_thread_id_idx" ON "thread_members"("owner_id", "participant_id", "thread_id");

-- CreateIndex
CREATE UNIQUE INDEX "events_id_key" ON "events"("id");

-- CreateIndex
CREATE INDEX "events_owner_id_thread_id_type_seq_idx" ON "events"("owner_id", "thread_id", "type", "seq");

-- CreateIndex
CREATE INDEX "events_owner_id_thread_id_sender_id_seq_idx" ON "events"("owner_id", "thread_id", "sender_id", "seq");

-- CreateIndex
CREATE UNIQUE INDEX "events_owner_id_thread_id_sender_id_client_key_key" ON "events"("owner_id", "thread_id", "sender_id", "client_key");

-- CreateIndex
CREATE INDEX "retracted_messages_owner_id_thread_id_retraction_seq_idx" ON "retracted_messages"("owner_id", "thread_id", "retraction_seq");

-- CreateIndex
CREATE INDEX "thread_links_later_id_idx" ON "thread_links"("later_id");

-- CreateIndex
CREATE INDEX "idempotency_records_thread_id_idx" ON "idempotency_records"("thread_id");

-- CreateIndex
CREATE INDEX "audit_log_owner_id_at_idx" ON "audit_log"("owner_id", "at");

-- AddForeignKey
ALTER TABLE "participants" ADD CONSTRAINT "participants_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "tickets" ADD CONSTRAINT "tickets_owner_id_credential_id_fkey" FOREIGN KEY ("owner_id", "credential_id") REFERENCES "credentials"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "threads" ADD CONSTRAINT "threads_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "thread_heads" ADD CONSTRAINT "thread_heads_owner_id_thread_id_fkey" FOREIGN KEY ("owner_id", "thread_id") REFERENCES "threads"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "thread_members" ADD CONSTRAINT "thread_members_owner_id_thread_id_fkey" FOREIGN KEY ("owner_id", "thread_id") REFERENCES "threads"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "thread_members" ADD CONSTRAINT "thread_members_owner_id_participant_id_fkey" FOREIGN KEY ("owner_id", "participant_id") REFERENCES "participants"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "visibility_windows" ADD CONSTRAINT "visibility_windows_owner_id_thread_id_participant_id_fkey" FOREIGN KEY ("owner_id", "thread_id", "participant_id") REFERENCES "thread_members"("owner_id", "thread_id", "participant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "events" ADD CONSTRAINT "events_owner_id_thread_id_fkey" FOREIGN KEY ("owner_id", "thread_id") REFERENCES "threads"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "events" ADD CONSTRAINT "events_owner_id_thread_id_sender_id_fkey" FOREIGN KEY ("owner_id", "thread_id", "sender_id") REFERENCES "thread_members"("owner_id", "thread_id", "participant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "events" ADD CONSTRAINT "events_owner_id_thread_id_subject_id_fkey" FOREIGN KEY ("owner_id", "thread_id", "subject_id") REFERENCES "thread_members"("owner_id", "thread_id", "participant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "events" ADD CONSTRAINT "events_owner_id_thread_id_actor_id_fkey" FOREIGN KEY ("owner_id", "thread_id", "actor_id") REFERENCES "thread_members"("owner_id", "thread_id", "participant_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "message_bodies" ADD CONSTRAINT "message_bodies_owner_id_thread_id_seq_fkey" FOREIGN KEY ("owner_id", "thread_id", "seq") REFERENCES "events"("owner_id", "thread_id", "seq") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "retracted_messages" ADD CONSTRAINT "retracted_messages_owner_id_thread_id_message_seq_fkey" FOREIGN KEY ("owner_id", "thread_id", "message_seq") REFERENCES "events"("owner_id", "thread_id", "seq") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "thread_links" ADD CONSTRAINT "thread_links_owner_id_earlier_id_fkey" FOREIGN KEY ("owner_id", "earlier_id") REFERENCES "threads"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "thread_links" ADD CONSTRAINT "thread_links_owner_id_later_id_fkey" FOREIGN KEY ("owner_id", "later_id") REFERENCES "threads"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "idempotency_records" ADD CONSTRAINT "idempotency_records_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "idempotency_records" ADD CONSTRAINT "idempotency_records_owner_id_thread_id_fkey" FOREIGN KEY ("owner_id", "thread_id") REFERENCES "threads"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

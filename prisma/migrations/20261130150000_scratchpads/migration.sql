-- AlterTable
ALTER TABLE "threads" ADD COLUMN     "had_scratchpad" BOOLEAN NOT NULL DEFAULT false;

-- CreateTable
CREATE TABLE "scratchpads" (
    "id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "meta_data" JSONB NOT NULL DEFAULT '{}',
    "ttl_seconds" INTEGER,
    "legacy_checked_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "scratchpads_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "scratchpad_purges" (
    "scratchpad_id" TEXT NOT NULL,
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "deleted_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "due_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "emptied_at" TIMESTAMPTZ(3),
    "attempts" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "scratchpad_purges_pkey" PRIMARY KEY ("scratchpad_id")
);

-- CreateTable
CREATE TABLE "scratchpad_fences" (
    "scratchpad_id" TEXT NOT NULL,
    "seq" INTEGER NOT NULL,
    "owner_id" TEXT NOT NULL,
    "thread_id" TEXT NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "attempts" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "scratchpad_fences_pkey" PRIMARY KEY ("scratchpad_id","seq")
);

-- CreateTable
CREATE TABLE "scratchpad_retimes" (
    "scratchpad_id" TEXT NOT NULL,
    "version" TEXT NOT NULL,
    "due_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "told_at" TIMESTAMPTZ(3),
    "attempts" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "scratchpad_retimes_pkey" PRIMARY KEY ("scratchpad_id")
);

-- CreateIndex
CREATE INDEX "scratchpads_owner_id_created_at_id_idx" ON "scratchpads"("owner_id", "created_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "scratchpads_owner_id_id_key" ON "scratchpads"("owner_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "scratchpads_owner_id_thread_id_key" ON "scratchpads"("owner_id", "thread_id");

-- CreateIndex
CREATE INDEX "scratchpad_purges_due_at_idx" ON "scratchpad_purges"("due_at");

-- CreateIndex
CREATE INDEX "scratchpad_fences_due_at_idx" ON "scratchpad_fences"("due_at");

-- CreateIndex
CREATE INDEX "scratchpad_retimes_due_at_idx" ON "scratchpad_retimes"("due_at");

-- AddForeignKey
ALTER TABLE "scratchpads" ADD CONSTRAINT "scratchpads_owner_id_fkey" FOREIGN KEY ("owner_id") REFERENCES "users"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "scratchpads" ADD CONSTRAINT "scratchpads_owner_id_thread_id_fkey" FOREIGN KEY ("owner_id", "thread_id") REFERENCES "threads"("owner_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

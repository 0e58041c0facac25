-- How often the client compacted the context in an iteration.

ALTER TABLE iterations ADD COLUMN compactions BIGINT NOT NULL DEFAULT 0;

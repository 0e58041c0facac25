-- The length of an iteration by a clock that nobody sets; NULL in records from before, whose moments tell it.

ALTER TABLE iterations ADD COLUMN duration_ms BIGINT;

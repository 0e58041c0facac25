-- The length of an iteration by a clock that is never set; NULL in older records, where the two moments give it.

ALTER TABLE iterations ADD COLUMN duration_ms BIGINT;

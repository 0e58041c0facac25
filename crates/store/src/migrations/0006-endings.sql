-- The signal that ended pitstop, and 1 if the end of an iteration cut a turn; NULL in records from before.

ALTER TABLE iterations ADD COLUMN signal TEXT;
ALTER TABLE iterations ADD COLUMN in_turn BIGINT;

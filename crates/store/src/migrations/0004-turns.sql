-- How many turns ended in an iteration; NULL in records from before.

ALTER TABLE iterations ADD COLUMN turns BIGINT;

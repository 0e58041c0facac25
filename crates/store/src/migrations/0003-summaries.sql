-- How an iteration's summary came about: by a model or not, its cost and time, why not.

ALTER TABLE iterations ADD COLUMN summary_made TEXT; -- JSON

-- What a session carries of its lineage, as it is now: every way of coming back to the session has it.

CREATE TABLE carried (
    session_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE, -- the last one that had the session
    written_at TEXT NOT NULL,
    state TEXT NOT NULL -- JSON
);

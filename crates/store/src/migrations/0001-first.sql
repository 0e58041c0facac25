-- One schema for SQLite and Postgres, so only types that both know: TEXT, BIGINT, DOUBLE PRECISION.
-- Moments are UTC text of fixed width (2026-11-21T07:51:44.123Z): their order as text is their order in time.

CREATE TABLE runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    project_hash TEXT NOT NULL,
    project_path TEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    pid_started TEXT NOT NULL,
    agent TEXT NOT NULL,
    version TEXT NOT NULL,
    task TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    end_reason TEXT
);

CREATE INDEX runs_by_project ON runs (project_hash, host, run_id);

CREATE TABLE iterations (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    iteration BIGINT NOT NULL,
    session_id TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    end_reason TEXT,
    tokens_input BIGINT NOT NULL,
    tokens_output BIGINT NOT NULL,
    summary TEXT,
    parent BIGINT,
    tokens_at_birth BIGINT,
    tokens_at_end BIGINT,
    cost_usd DOUBLE PRECISION,
    cause TEXT,
    reboot TEXT, -- JSON: how the reboot that began it went
    PRIMARY KEY (run_id, iteration)
);

CREATE INDEX iterations_by_session ON iterations (session_id);

CREATE TABLE checkpoints (
    id TEXT NOT NULL PRIMARY KEY,
    environment TEXT NOT NULL,
    task TEXT NOT NULL,
    context TEXT NOT NULL,
    next_steps TEXT NOT NULL, -- JSON: a list of texts
    tags TEXT NOT NULL, -- JSON: a list of texts
    state TEXT NOT NULL, -- JSON: the preserved state
    format BIGINT NOT NULL,
    created_at TEXT NOT NULL,
    project_hash TEXT NOT NULL,
    project_path TEXT NOT NULL,
    host TEXT NOT NULL,
    run_id TEXT, -- no reference: a checkpoint outlives the pruning of its run
    iteration BIGINT,
    session_id TEXT
);

CREATE INDEX checkpoints_by_environment ON checkpoints (environment, created_at);
CREATE INDEX checkpoints_by_project ON checkpoints (project_hash, host, created_at);

CREATE TABLE journal (
    reboot_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    iteration BIGINT NOT NULL,
    step TEXT NOT NULL,
    entry TEXT NOT NULL, -- JSON: all that recovery needs, the handoff with it
    written_at TEXT NOT NULL,
    closed_at TEXT,
    outcome TEXT
);

CREATE INDEX journal_by_run ON journal (run_id, closed_at);

CREATE TABLE agents (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    iteration BIGINT NOT NULL,
    pid BIGINT NOT NULL,
    pid_started TEXT NOT NULL,
    gone BIGINT NOT NULL, -- 1 once it is known to have ended
    PRIMARY KEY (run_id, pid, pid_started)
);

CREATE TABLE metrics (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    iteration BIGINT NOT NULL, -- 0: of the run as a whole
    name TEXT NOT NULL,
    measured_at TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (run_id, iteration, name, measured_at)
);

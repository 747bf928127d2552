-- A workspace of version 3, as Assay made it: what migrations start from. Never changed.
CREATE TABLE facts (
    name VARCHAR NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE bases (
    id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    description TEXT NOT NULL,
    embedder VARCHAR NOT NULL,
    dim INTEGER NOT NULL,
    created VARCHAR NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (name)
);

CREATE TABLE grants (
    label VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    PRIMARY KEY (label, name)
);

CREATE TABLE leftovers (
    document VARCHAR NOT NULL,
    base VARCHAR NOT NULL,
    PRIMARY KEY (document)
);

CREATE TABLE runs (
    id VARCHAR NOT NULL,
    who VARCHAR NOT NULL,
    started VARCHAR NOT NULL,
    delivered BOOLEAN NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE payloads (
    run VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE mentions (
    document VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (document, run, seq)
);

CREATE TABLE heads (
    n INTEGER NOT NULL,
    run VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    hash VARCHAR NOT NULL,
    prev VARCHAR NOT NULL,
    link VARCHAR NOT NULL,
    PRIMARY KEY (n),
    UNIQUE (prev)
);

CREATE TABLE spending (
    id INTEGER NOT NULL,
    who VARCHAR NOT NULL,
    run VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    day VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    calls INTEGER NOT NULL,
    reserved_tokens INTEGER NOT NULL,
    reserved_money FLOAT NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    money FLOAT NOT NULL,
    seconds FLOAT NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX spending_by_day ON spending (who, day);

CREATE INDEX spending_by_run ON spending (run);

CREATE TABLE threads (
    id VARCHAR NOT NULL,
    who VARCHAR NOT NULL,
    title TEXT NOT NULL,
    created VARCHAR NOT NULL,
    updated VARCHAR NOT NULL,
    PRIMARY KEY (id)
);

CREATE INDEX threads_by_person ON threads (who, updated);

CREATE TABLE documents (
    id VARCHAR NOT NULL,
    base VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    uri VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    why TEXT NOT NULL,
    digest VARCHAR NOT NULL,
    parser VARCHAR NOT NULL,
    recipe VARCHAR NOT NULL,
    bytes INTEGER NOT NULL,
    title TEXT NOT NULL,
    authors JSON NOT NULL,
    date VARCHAR,
    kind VARCHAR NOT NULL,
    language VARCHAR,
    abstract JSON,
    sections JSON NOT NULL,
    pages JSON NOT NULL,
    meta JSON NOT NULL,
    warnings JSON NOT NULL,
    characters INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    added VARCHAR NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(base) REFERENCES bases (id)
);

CREATE INDEX documents_by_place ON documents (base, uri);

CREATE INDEX documents_by_digest ON documents (base, digest);

CREATE TABLE records (
    run VARCHAR NOT NULL,
    seq INTEGER NOT NULL,
    at VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,
    prev VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    PRIMARY KEY (run, seq),
    FOREIGN KEY(run) REFERENCES runs (id)
);

CREATE TABLE turns (
    thread VARCHAR NOT NULL,
    n INTEGER NOT NULL,
    run VARCHAR NOT NULL,
    PRIMARY KEY (thread, n),
    FOREIGN KEY(thread) REFERENCES threads (id),
    UNIQUE (run),
    FOREIGN KEY(run) REFERENCES runs (id)
);

CREATE TABLE texts (
    document VARCHAR NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (document),
    FOREIGN KEY(document) REFERENCES documents (id) ON DELETE CASCADE
);

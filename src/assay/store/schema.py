"""The tables of a workspace's state."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    Index,
    MetaData,
    Table,
    UniqueConstraint,
    and_,
    insert,
    select,
    text,
)
from sqlalchemy.types import JSON, BigInteger, Boolean, Float, Integer, LargeBinary, String, Text

RIGHTS_RECORDED = "rights recorded"  # the fact since when each right has a record
VERSION = 15  # of the whole workspace; raise it when an older Assay could no longer read the state

Large = Integer().with_variant(BigInteger(), "postgresql")  # a number that 32 bits may not hold

schema = MetaData()


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, String, nullable=False) for name in names]


def _keys(*names: str) -> list[Column[str]]:
    return [Column(name, String, primary_key=True) for name in names]


facts = Table(  # single facts about the workspace: its version, its identity
    "facts", schema, Column("name", String, primary_key=True), Column("value", Text, nullable=False)
)

bases = Table(
    "bases",
    schema,
    Column("id", String, primary_key=True),
    *_texts("name", "owner"),
    Column("description", Text, nullable=False, default=""),
    Column("embedder", String, nullable=False, default=""),  # the embedder of the vectors in its index
    Column("dim", Integer, nullable=False, default=0),
    Column("created", String, nullable=False),
    Column("review", Boolean, nullable=False, default=False, server_default="0"),  # whether answers from it need one
    UniqueConstraint("owner", "name"),  # names are unique per owner only
)

grants = Table(  # the source of truth for access: which grantee (user:… or group:…) may read which label
    "grants", schema, *_keys("label", "name")
)

acceptances = Table(  # who accepted (or declined) a base that they may read; without a row it is only offered to them
    "acceptances",
    schema,
    Column("base", String, primary_key=True),
    Column("name", String, primary_key=True),  # user:… or group:…
    Column("accepted", Boolean, nullable=False),
)

lists = Table(  # locations with their own list of readers, which is the grants of `label`
    "lists",
    schema,
    Column("place", String, primary_key=True),  # digest of base and location: names do not outlive their document
    *_texts("base", "label"),
    Index("lists_by_base", "base"),
)

documents = Table(
    "documents",
    schema,
    Column("id", String, primary_key=True),
    Column("base", String, ForeignKey("bases.id"), nullable=False),
    *_texts("label", "uri"),
    Column("state", String, nullable=False),  # pending, ready, unreadable, replaced
    Column("status", String, nullable=False),  # the result of parsing: ingest.parsed.Status
    Column("why", Text, nullable=False, default=""),
    Column("digest", String, nullable=False),
    Column("parser", String, nullable=False, default=""),  # the parser version that produced its text
    Column("recipe", String, nullable=False, default=""),  # the splitter and embedder that produced its rows
    Column("bytes", Large, nullable=False, default=0),
    Column("title", Text, nullable=False, default=""),
    Column("authors", JSON, nullable=False, default=list),
    Column("date", String),
    Column("kind", String, nullable=False, default=""),
    Column("language", String),
    Column("abstract", JSON),
    Column("sections", JSON, nullable=False, default=list),
    Column("pages", JSON, nullable=False, default=list),
    Column("meta", JSON, nullable=False, default=dict),
    Column("warnings", JSON, nullable=False, default=list),
    Column("characters", Large, nullable=False, default=0),
    Column("passages", Integer, nullable=False, default=0),
    Column("added", String, nullable=False),
    Column("off", Boolean, nullable=False, default=False, server_default=text("FALSE")),  # kept, but not searched
    Column("tags", JSON, nullable=False, default=list, server_default=text("'[]'")),
    Index("documents_by_place", "base", "uri"),
    Index("documents_by_digest", "base", "digest"),
    Index(
        "documents_listed", "base", "state", "label", "added", "id", "passages", "off"
    ),  # covers all columns of a listing page
)

texts = Table(  # the only copy of a document's text
    "texts",
    schema,
    Column("document", String, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("text", Text, nullable=False),
    Column("scan", Text, nullable=False, default="", server_default=""),  # where the words are that OCR read
)

tables = Table(  # the tables and figures of documents that have any: offsets into the text, as JSON
    "tables",
    schema,
    Column("document", String, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("body", JSON, nullable=False),
    Column("labels", JSON),  # the words of captions and row labels (`tables/labels.py`)
    Column("figures", JSON),
)

leftovers = Table(  # documents whose rows must still be removed from the index
    "leftovers", schema, Column("document", String, primary_key=True), Column("base", String, nullable=False)
)

runs = Table(
    "runs",
    schema,
    Column("id", String, primary_key=True),
    *_texts("who", "started"),
    Column("delivered", Boolean, nullable=False, default=False),
    Column("gated", Boolean, nullable=False, default=False, server_default="0"),  # delivered only if approved
)

records = Table(  # the records of runs: a hash chain per run, and one over all records, by `n` and `link`
    "records",
    schema,
    Column("run", String, ForeignKey("runs.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    *_texts("at", "kind", "digest", "prev", "hash"),
    Column("n", Large, nullable=False),
    Column("link", String, nullable=False),
    Index("records_in_order", "n", unique=True),
)

payloads = Table(  # the content of records; separate, so that it can be erased while the chain stays valid
    "payloads",
    schema,
    Column("run", String, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("body", Text, nullable=False),
)

SAME_RECORD = and_(payloads.c.run == records.c.run, payloads.c.seq == records.c.seq)

mentions = Table(  # which documents a payload mentions
    "mentions",
    schema,
    *_keys("document", "run"),
    Column("seq", Integer, primary_key=True),
    Index("mentions_by_run", "run", "seq"),
)

seals = Table(  # signed heads of the chain of all records
    "seals",
    schema,
    Column("n", Large, primary_key=True, autoincrement=False),
    *_texts("link", "at"),
    Column("key", String, nullable=False),  # the public key
    Column("signature", String, nullable=False),
)

reviews = Table(  # answers that waited for review, each by its seal
    "reviews",
    schema,
    Column("id", Integer, primary_key=True),
    Column("run", String, ForeignKey("runs.id"), nullable=False),
    Column("seal", String, nullable=False),
    Column("who", String, nullable=False),  # the asker
    Column("state", String, nullable=False),  # waiting, approved, edited, rejected, delivered, superseded
    Column("reasons", JSON, nullable=False, default=list),
    Column("four_eyes", Boolean, nullable=False, default=False),
    Column("by", String, nullable=False, default=""),
    Column("note", Text, nullable=False, default=""),
    Column("created", String, nullable=False),
    Column("decided", String, nullable=False, default=""),
    Column("expires", String, nullable=False, default=""),  # of an approval
    Column("notified", String, nullable=False, default=""),  # when the notification was sent
    Index("reviews_by_run", "run"),
    Index("reviews_by_state", "state", "created"),
)

backups = Table(  # copies of the workspace elsewhere made with `assay backup`
    "backups", schema, Column("path", Text, primary_key=True), Column("at", String, nullable=False)
)

forecasts = Table(  # estimates of work and the actual amounts
    "forecasts",
    schema,
    Column("run", String, primary_key=True),
    Column("kind", String, nullable=False),  # ask, synthesise, add
    Column("who", String, nullable=False),
    Column("alike", String, nullable=False),  # the key of comparable work, such as a mode and its model
    Column("foreseen", JSON, nullable=False),
    Column("came", JSON(none_as_null=True)),
    Column("at", String, nullable=False),
    Index("forecasts_alike", "who", "kind", "alike", "at"),
)

spending = Table(  # spending on models: a row per request, reserved before it is sent and settled afterwards
    "spending",
    schema,
    Column("id", Integer, primary_key=True),
    *_texts("who", "run", "role", "model", "day"),
    Column("state", String, nullable=False),  # reserved, settled, lost, aside
    Column("calls", Integer, nullable=False),
    Column("reserved_tokens", Large, nullable=False),
    Column("reserved_money", Float, nullable=False),
    Column("tokens_in", Large, nullable=False),
    Column("tokens_out", Large, nullable=False),
    Column("money", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    Index("spending_by_run", "run"),
    Index("spending_by_day", "who", "day"),
    Index("spending_of_day", "day"),
)

threads = Table(  # conversations, each owned by one user
    "threads",
    schema,
    Column("id", String, primary_key=True),
    Column("who", String, nullable=False),
    Column("title", Text, nullable=False),
    *_texts("created", "updated"),
    Index("threads_by_person", "who", "updated"),
)

turns = Table(  # the runs of a conversation; a run itself knows only the conversation's id
    "turns",
    schema,
    Column("thread", String, ForeignKey("threads.id"), primary_key=True),
    Column("n", Large, primary_key=True),
    Column("run", String, ForeignKey("runs.id"), nullable=False, unique=True),
)

members = Table(  # users of a shared workspace; `groups` are those they belong to
    "members",
    schema,
    Column("name", String, primary_key=True),
    Column("groups", JSON, nullable=False, default=list),
    Column("admin", Boolean, nullable=False, default=False),
    Column("password", Text, nullable=False, default=""),  # salted hash; empty: no password sign-in
    Column("created", String, nullable=False),
)

keys = Table(  # API keys: only digests are stored, so that a reader of the database cannot use them
    "keys",
    schema,
    Column("digest", String, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("who", String, ForeignKey("members.name", ondelete="CASCADE"), nullable=False),
    Column("label", Text, nullable=False, default=""),
    Column("created", String, nullable=False),
    Column("used", String, nullable=False, default=""),
)

sessions = Table(  # browser sessions; by digest, like keys
    "sessions",
    schema,
    Column("digest", String, primary_key=True),
    Column("who", String, ForeignKey("members.name", ondelete="CASCADE"), nullable=False),
    *_texts("csrf", "created", "expires"),
)

identities = Table(  # subjects of OpenID providers, and whom each signs in
    "identities",
    schema,
    *_keys("issuer", "subject"),
    Column("id", String, nullable=False, unique=True),
    Column("who", String, ForeignKey("members.name", ondelete="CASCADE"), nullable=False),
    *_texts("created"),
)

sign_ins = Table(  # sign-ins on their way to a provider, and why they failed; browser and state by digest, like keys
    "sign_ins",
    schema,
    Column("browser", String, primary_key=True),
    *_texts("state", "nonce", "verifier", "who"),
    Column("problem", Text, nullable=False),
    *_texts("expires"),
)

jobs = Table(  # uploaded files to be ingested; their contents are stored as files until then
    "jobs",
    schema,
    Column("id", String, primary_key=True),
    Column("who", String, nullable=False),
    Column("groups", JSON, nullable=False, default=list),
    Column("base", String, nullable=False),  # its name
    Column("state", String, nullable=False),  # waiting, running, done, failed, cancelled
    Column("error", Text, nullable=False, default=""),
    Column("passages", Integer, nullable=False, default=0),
    Column("seconds", Float, nullable=False, default=0.0),
    *_texts("created", "updated"),
    Column("process", String, nullable=False, default="", server_default=""),  # that reads its files; empty if none
    Column("until", String, nullable=False, default="", server_default=""),  # when its lease runs out
    Index("jobs_by_person", "who", "created"),
    Index("jobs_by_state", "state"),
)

job_files = Table(
    "job_files",
    schema,
    Column("job", String, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("n", Large, primary_key=True),
    Column("name", Text, nullable=False),
    Column("bytes", Large, nullable=False),
    Column("outcome", String, nullable=False, default=""),
    Column("report", JSON, nullable=False, default=dict),
)

underway = Table(  # runs in progress on servers; one whose lease has run out is resumed by any server
    "underway",
    schema,
    Column("run", String, ForeignKey("runs.id"), primary_key=True),
    Column("who", String, nullable=False),
    Column("groups", JSON, nullable=False, default=list),
    Column("process", String, nullable=False, default="", server_default=""),  # that works on it; empty if none
    Column("until", String, nullable=False, default="", server_default=""),  # when its lease runs out
    Column("stop", Boolean, nullable=False, default=False, server_default=text("FALSE")),  # somebody wants it stopped
)

OWNED = (runs, threads, jobs, underway, spending, reviews, forecasts)  # rows of a person, by `who`

cache_schema = MetaData()

vectors = Table(  # embeddings by content, per owner; in a separate file, since they can be recomputed
    "vectors",
    cache_schema,
    *_keys("owner", "embedder", "digest"),
    Column("vector", LargeBinary, nullable=False),
    Column("used", Float, nullable=False, default=0.0),
)

vector_sources = Table(  # the documents whose text a vector was made of, whatever the size of passages was then
    "sources",
    cache_schema,
    *_keys("document", "digest"),
    Column("owner", String, nullable=False),
    Index("sources_by_owner", "owner", "digest"),
)


BATCH = 500  # rows at once


def copy_rows(source: Connection, target: Connection) -> dict[str, int]:
    """Copy the rows of all tables to another database, those that others refer to first. Returns their number by table."""
    copied: dict[str, int] = {}
    for table in schema.sorted_tables:
        copied[table.name] = 0
        for rows in source.execute(select(table)).mappings().partitions(BATCH):
            target.execute(insert(table), [dict(row) for row in rows])
            copied[table.name] += len(rows)
    return copied

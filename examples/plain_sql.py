#!/usr/bin/env python3
"""Requirements in the application's own SQLite tables, with jobq's tables in
the same database: a job is queued by the transaction that saves the row.

    python3 examples/plain_sql.py            # in a scratch folder
    python3 examples/plain_sql.py FOLDER     # in a folder of yours

The program jobq is the one that the variable JOBQ names, or the one on PATH.
What a program may do in jobq's tables is written at the top of schema.sql.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path

JOBQ = os.environ.get("JOBQ") or "jobq"


def jobq(db, *args):
    """Runs the program on the application's database; returns its JSON lines."""
    ran = subprocess.run([JOBQ, "--db", str(db), "--json", *args], capture_output=True, encoding="utf-8")
    if ran.returncode != 0:
        raise RuntimeError(f"jobq ended with {ran.returncode}: {ran.stderr.strip()}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def connect(db):
    # timeout: how long to wait while somebody else writes. isolation_level=None: the module begins
    # no transactions of its own; it would begin deferred ones.
    conn = sqlite3.connect(db, timeout=30, isolation_level=None)
    # In WAL mode readers and the one writer do not wait for each other; FULL: a COMMIT survives a power cut.
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA synchronous = FULL")
    return conn


@contextmanager
def transaction(conn):
    # IMMEDIATE waits for its turn, up to the timeout. A transaction that starts by reading
    # and then writes is refused at once if somebody else wrote in between.
    conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        conn.execute("COMMIT")
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")


def enqueue(conn, kind, payload):
    """Queues a job on the caller's transaction. jobq checks the row when it first sees it.

    While a job is unfinished, the same one again ends as cancelled, "duplicate of" the first;
    who wants both adds the column idempotency_key with the value ''.
    """
    job = str(uuid.uuid4())
    conn.execute("INSERT INTO jobs (id, type, payload) VALUES (?, ?, ?)", (job, kind, json.dumps(payload)))
    return job


def save(conn, name, title, text):
    """The row and what has to happen because of it, in one transaction."""
    with transaction(conn):
        companion = {"path": f"out/{name}.md", "content": f"# {title}\n\n{text}\n", "overwrite": True}
        extraction = {
            "prompt": f"List what can be tested in this requirement, as JSON:\n\n{text}",
            "targetPath": f"extracted/{name}.json",
            "requirementId": name,
        }
        jobs = [enqueue(conn, "create_file", companion), enqueue(conn, "claude_extraction", extraction)]
        conn.execute(
            "INSERT INTO requirements (id, title, text) VALUES (?, ?, ?) ON CONFLICT (id)"
            " DO UPDATE SET title = excluded.title, text = excluded.text, revision = revision + 1",
            (name, title, text),
        )
    return jobs


def story(folder):
    db = Path(folder) / "app.db"
    jobq(db, "init")  # jobq's tables, beside whatever else is in the file; repeating it changes nothing
    conn = connect(db)
    conn.execute(
        "CREATE TABLE IF NOT EXISTS requirements (id TEXT PRIMARY KEY, title TEXT NOT NULL,"
        " text TEXT NOT NULL CHECK (text <> ''), revision INTEGER NOT NULL DEFAULT 1)"
    )
    print("saved, with jobs", *save(conn, "REQ-1", "Invoices are numbered", "Every invoice has a number."))
    print("saved, with jobs", *save(conn, "REQ-1", "Invoices are numbered", "Numbers have no gaps – ever."))

    # A row that the application's own rules refuse takes its jobs with it.
    count = "SELECT count(*) FROM jobs"
    [before] = conn.execute(count).fetchone()
    try:
        save(conn, "REQ-2", "A requirement without text", "")
        sys.exit("a requirement without text was saved")
    except sqlite3.IntegrityError as refused:
        [after] = conn.execute(count).fetchone()
        print(f"rolled back: {refused}; jobs before: {before}, after: {after}")

    # Extractions need Claude Code and cost money: here they wait, and are never discarded.
    jobq(db, "worker", "--drain", "--types", "create_file")
    print("\nafter the worker:")
    for job in reversed(jobq(db, "list")):
        note = "  (waits for a worker that may run it)" if job["status"] == "pending" else ""
        print(f"  {job['id']}  {job['type']:<17}  {job['status']}{note}")
    print(f"\nout/REQ-1.md:\n{(db.parent / 'out/REQ-1.md').read_text('utf-8').rstrip()}")
    conn.close()


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    if len(sys.argv) > 1:
        story(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as scratch:
            story(scratch)

#!/usr/bin/env node
// Requirements in the application's own SQLite tables, with jobq's tables in the
// same database: a job is queued by the transaction that saves the row.
//
//     node examples/plain_sql.mjs            # in a scratch folder
//     node examples/plain_sql.mjs FOLDER     # in a folder of yours
//
// Needs Node 22.5 or newer (22.5 to 22.12 with --experimental-sqlite). The program
// jobq is the one that the variable JOBQ names, or the one on PATH. What a program
// may do in jobq's tables is written at the top of schema.sql.

import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const JOBQ = process.env.JOBQ || "jobq";

/** Runs the program on the application's database; returns its JSON lines. */
function jobq(db, ...args) {
  const ran = spawnSync(JOBQ, ["--db", db, "--json", ...args], { encoding: "utf8", maxBuffer: 2 ** 30 });
  if (ran.error) throw ran.error;
  if (ran.status !== 0) throw new Error(`jobq ended with ${ran.status ?? ran.signal}: ${ran.stderr.trim()}`);
  return ran.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

function connect(path) {
  const db = new DatabaseSync(path);
  // Without the first one a statement fails at once while somebody else writes. In WAL mode readers
  // and the one writer do not wait for each other; FULL: a COMMIT survives a power cut.
  db.exec("PRAGMA busy_timeout = 30000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  return db;
}

function transaction(db, work) {
  // IMMEDIATE waits for its turn, up to the timeout. A transaction that starts by reading
  // and then writes is refused at once if somebody else wrote in between.
  db.exec("BEGIN IMMEDIATE");
  try {
    const answer = work();
    db.exec("COMMIT");
    return answer;
  } catch (error) {
    try {
      db.exec("ROLLBACK");
    } catch {
      // Some errors, a full disk for one, have rolled back already.
    }
    throw error;
  }
}

/**
 * Queues a job on the caller's transaction. jobq checks the row when it first sees it.
 *
 * While a job is unfinished, the same one again ends as cancelled, "duplicate of" the first;
 * who wants both adds the column idempotency_key with the value ''.
 */
function enqueue(db, type, payload) {
  const id = randomUUID();
  db.prepare("INSERT INTO jobs (id, type, payload) VALUES (?, ?, ?)").run(id, type, JSON.stringify(payload));
  return id;
}

/** The row and what has to happen because of it, in one transaction. */
function save(db, id, title, text) {
  return transaction(db, () => {
    const companion = { path: `out/${id}.md`, content: `# ${title}\n\n${text}\n`, overwrite: true };
    const extraction = {
      prompt: `List what can be tested in this requirement, as JSON:\n\n${text}`,
      targetPath: `extracted/${id}.json`,
      requirementId: id,
    };
    const jobs = [enqueue(db, "create_file", companion), enqueue(db, "claude_extraction", extraction)];
    db.prepare(
      `INSERT INTO requirements (id, title, text) VALUES (?, ?, ?) ON CONFLICT (id)
       DO UPDATE SET title = excluded.title, text = excluded.text, revision = revision + 1`,
    ).run(id, title, text);
    return jobs;
  });
}

function story(folder) {
  const path = join(folder, "app.db");
  jobq(path, "init"); // jobq's tables, beside whatever else is in the file; repeating it changes nothing
  const db = connect(path);
  db.exec(
    `CREATE TABLE IF NOT EXISTS requirements (id TEXT PRIMARY KEY, title TEXT NOT NULL,
     text TEXT NOT NULL CHECK (text <> ''), revision INTEGER NOT NULL DEFAULT 1)`,
  );
  console.log("saved, with jobs", ...save(db, "REQ-1", "Invoices are numbered", "Every invoice has a number."));
  console.log("saved, with jobs", ...save(db, "REQ-1", "Invoices are numbered", "Numbers have no gaps – ever."));

  // A row that the application's own rules refuse takes its jobs with it.
  const count = () => db.prepare("SELECT count(*) AS jobs FROM jobs").get().jobs;
  const before = count();
  let refused;
  try {
    save(db, "REQ-2", "A requirement without text", "");
  } catch (error) {
    refused = error;
  }
  if (!/CHECK constraint/.test(refused?.message)) throw refused ?? new Error("a requirement without text was saved");
  console.log(`rolled back: ${refused.message}; jobs before: ${before}, after: ${count()}`);

  // Extractions need Claude Code and cost money: here they wait, and are never discarded.
  jobq(path, "worker", "--drain", "--types", "create_file");
  console.log("\nafter the worker:");
  for (const job of jobq(path, "list").reverse()) {
    const note = job.status === "pending" ? "  (waits for a worker that may run it)" : "";
    console.log(`  ${job.id}  ${job.type.padEnd(17)}  ${job.status}${note}`);
  }
  console.log(`\nout/REQ-1.md:\n${readFileSync(join(folder, "out/REQ-1.md"), "utf8").trimEnd()}`);
  db.close();
}

if (process.argv[2]) {
  story(process.argv[2]);
} else {
  const scratch = mkdtempSync(join(tmpdir(), "requirements-"));
  try {
    story(scratch);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

#!/usr/bin/env node
// A small application: requirements kept as JSON files. Each save also queues a
// readable companion file and an extraction, accepted with it as one.
//
//     node examples/requirements.mjs            # in a scratch folder
//     node examples/requirements.mjs FOLDER     # in a folder of yours
//
// The program jobq is the one that the variable JOBQ names, or the one on PATH.
// requirements.rs and requirements.py are the same application; all three leave
// the same files.

import { spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const JOBQ = process.env.JOBQ || "jobq";
const FILE = "data/REQ-1.json";

// The exit codes of jobq that an application acts upon.
const REFUSED = 4;
const OUTCOME_UNKNOWN = 6;

/** Somebody else changed the file, or is about to. Nothing has happened. */
class Refused extends Error {}

class Requirements {
  constructor(folder) {
    this.folder = folder;
  }

  /** Runs the program; returns its JSON lines. */
  async jobq(args, input) {
    const all = ["--root", this.folder, "--json", ...args];
    for (const wait of [100, 500, 2000, null]) {
      // The default of 1 MiB for what a program may print is little for a long list.
      const ran = spawnSync(JOBQ, all, { input, encoding: "utf8", maxBuffer: 2 ** 30 });
      // A program that ends before it has read all of its input has a status that says why.
      if (ran.error && ran.error.code !== "EPIPE") throw ran.error;
      if (ran.status === 0) {
        return ran.stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line));
      }
      if (ran.status === REFUSED) throw new Refused(ran.stderr.trim());
      if (ran.status !== OUTCOME_UNKNOWN || wait === null) {
        throw new Error(`jobq ended with ${ran.status ?? ran.signal}: ${ran.stderr.trim()}`);
      }
      // The disk failed in the moment of acceptance. The input has an id, so asking again does nothing twice.
      await sleep(wait);
    }
  }

  /** What a file holds, and what a save can expect to find there. */
  read(path) {
    try {
      // Value and hash are of the same bytes: between two reads somebody could save.
      const content = readFileSync(join(this.folder, path));
      return { value: JSON.parse(content), expect: createHash("sha256").update(content).digest("hex") };
    } catch (error) {
      if (error.code === "ENOENT") return { value: null, expect: "absent" };
      throw error;
    }
  }

  /** The file and what has to happen because of it, accepted as one. */
  async save(requirement, expect) {
    const { id, title, text } = requirement;
    const companion = { path: `out/${id}.md`, content: `# ${title}\n\n${text}\n`, overwrite: true };
    const extraction = {
      prompt: `List what can be tested in this requirement, as JSON:\n\n${text}`,
      targetPath: `extracted/${id}.json`,
      requirementId: id,
    };
    const document = {
      id: randomUUID(),
      writes: [{ path: FILE, json: requirement, expect }],
      jobs: [
        { type: "create_file", payload: companion },
        { type: "claude_extraction", payload: extraction },
      ],
    };
    const [answer] = await this.jobq(["commit"], JSON.stringify(document));
    return answer;
  }

  /** Reads, alters and saves; from the start again if somebody else is faster. */
  async change(alter) {
    let last;
    for (let tries = 0; tries < 100; tries += 1) {
      const { value, expect } = this.read(FILE);
      try {
        return await this.save(alter(value), expect);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        last = error;
        await sleep(10 + 90 * Math.random()); // not in step with whoever is at it too
      }
    }
    throw last;
  }
}

/** What an edit does, whoever makes it: one more sentence. */
const add = (sentence) => (old) =>
  old === null
    ? { id: "REQ-1", title: "Invoices are numbered", text: sentence, revision: 1 }
    : { ...old, text: `${old.text} ${sentence}`, revision: old.revision + 1 };

function tell(what, answer) {
  const later = answer.applied ? "" : `, in place later: ${answer.reason}`;
  console.log(`${what}: commit ${answer.id}, ${answer.jobs.length} jobs${later}`);
}

async function story(folder) {
  const app = new Requirements(folder);
  await app.jobq(["init"]); // repeating it changes nothing
  tell("saved", await app.change(add("Every invoice has a number.")));

  // Two windows show the same requirement. The left one saves first.
  const { value, expect } = app.read(FILE);
  tell("left window saved", await app.change(add("Numbers have no gaps – ever.")));
  const refusal = await app.save(add("Numbers never change.")(value), expect).then(
    () => new Error("the right window has overwritten what the left one saved"),
    (error) => error,
  );
  if (!(refusal instanceof Refused)) throw refusal;
  console.log(`right window refused: ${refusal.message}`);
  // What it lacked was a new read.
  tell("right window saved", await app.change(add("Numbers never change.")));

  // Extractions need Claude Code and cost money: here they wait, and are never discarded.
  await app.jobq(["worker", "--drain", "--types", "create_file"]);
  console.log("\nafter the worker:");
  for (const job of (await app.jobq(["list"])).reverse()) {
    const note = job.status === "pending" ? "  (waits for a worker that may run it)" : "";
    console.log(`  ${job.id}  ${job.type.padEnd(17)}  ${job.status}${note}`);
  }
  for (const name of [FILE, "out/REQ-1.md"]) {
    console.log(`\n${name}:\n${readFileSync(join(folder, name), "utf8").trimEnd()}`);
  }
}

if (process.argv[2]) {
  await story(process.argv[2]);
} else {
  const scratch = mkdtempSync(join(tmpdir(), "requirements-"));
  try {
    await story(scratch);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

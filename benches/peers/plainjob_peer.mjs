// plainjob on bun: each thread has its own connection, as its README has it for more than one worker.

import { mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import Database from "bun:sqlite";
import { JobStatus, bun, defineQueue, defineWorker } from "plainjob";

const LIMIT_S = 120;
// It polls once a second.
const PICKUP_LIMIT_S = 60;
const LEVELS = ["off", "normal", "full", "extra"];

const { values: args, positionals } = parseArgs({
  args: isMainThread ? process.argv.slice(2) : workerData.argv,
  allowPositionals: true,
  options: {
    folder: { type: "string" },
    count: { type: "string", default: "1000" },
    threads: { type: "string", default: "8" },
    concurrency: { type: "string", default: "8" },
    seconds: { type: "string", default: "20" },
    setting: { type: "string", default: "shipped" },
  },
});
const [operation] = positionals;
// Only what a peer made itself is removed.
const folder = join(args.folder ?? "", "peer");
const count = Number(args.count);
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
// The clock of the machine: the two processes compare it.
const now = () => performance.timeOrigin + performance.now();

function giveUp(why) {
  // A thread can only end itself.
  if (!isMainThread) return parentPort.postMessage({ why });
  console.error(`given up: ${why}`);
  process.exit(1);
}

function open() {
  const db = new Database(join(folder, "plainjob.db"), { strict: true });
  // It would print several lines for every job; failures are seen below.
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const queue = defineQueue({ connection: bun(db), logger });
  // It asks for NORMAL itself, so this must come after it.
  if (args.setting === "full") db.exec("PRAGMA synchronous = FULL");
  const { synchronous } = db.query("PRAGMA synchronous").get();
  const { journal_mode } = db.query("PRAGMA journal_mode").get();
  if (args.setting === "full" && synchronous !== 2) giveUp(`synchronous is ${synchronous}, not FULL`);
  return { queue, logger, pragmas: { synchronous: LEVELS[synchronous], journal_mode } };
}

const share = (all, threads, index) => Math.floor(all / threads) + (index < all % threads ? 1 : 0);

/** Starts so many threads of this file, lets them begin together, and waits until one or all say "done". */
async function withThreads(threads, all) {
  const gate = new Int32Array(new SharedArrayBuffer(8));
  const waiting = { ready: 0, done: 0 };
  const reached = { ready: Promise.withResolvers(), done: Promise.withResolvers() };
  for (let index = 0; index < threads; index++) {
    const worker = new Worker(import.meta.path, { workerData: { argv: process.argv.slice(2), threads, index, gate } });
    worker.on("error", (error) => giveUp(`a thread failed: ${error}`));
    worker.on("message", (word) => {
      if (word.why) giveUp(word.why);
      waiting[word] += 1;
      if (waiting[word] === (word === "done" && !all ? 1 : threads)) reached[word].resolve();
    });
  }
  await reached.ready.promise;
  const start = performance.now();
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
  await reached.done.promise;
  return (performance.now() - start) / 1000;
}

/** A call that the others kept out for the 5 s it waits is made again, as a caller would have to. */
function until(call) {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if (error.code !== "SQLITE_BUSY") throw error;
    }
  }
}

/** What a thread does: its share of the calls, or a worker until the last job is done. */
function thread() {
  const { threads, index, gate } = workerData;
  const { queue, logger } = open();
  const begin = () => {
    parentPort.postMessage("ready");
    Atomics.wait(gate, 0, 0);
  };
  if (operation === "enqueue") {
    const add = (times) => {
      for (let i = 0; i < times; i++) until(() => queue.add("noop", { n: 1 }));
    };
    add(share(Math.floor(count / 4), threads, index));
    begin();
    add(share(count, threads, index));
    parentPort.postMessage("done");
  } else {
    // Called when the job is stored as done.
    const onCompleted = () => {
      if (Atomics.add(gate, 1, 1) + 1 === count) parentPort.postMessage("done");
    };
    // So it is when the end of a job could not be stored because the others kept it out for 5 s.
    const onFailed = (job, error) => giveUp(`job ${job.id} is stored as failed: ${error}`);
    const worker = defineWorker("noop", async () => {}, { queue, logger, onCompleted, onFailed });
    begin();
    worker.start().catch((error) => giveUp(`a worker failed: ${error}`));
  }
}

function report(pragmas, figures) {
  console.log(JSON.stringify({ operation, ...figures, ...pragmas }));
  process.exit(0);
}

async function workerProcess() {
  const command = [process.execPath, "--no-install", import.meta.path, ...process.argv.slice(2)];
  command[command.indexOf(operation)] = "worker";
  const child = Bun.spawn(command, { stdin: "pipe", stdout: "pipe" });
  const lines = readLines(child.stdout);
  if ((await lines.next()).value !== "ready") giveUp("the worker did not start");
  return { child, lines };
}

async function* readLines(stream) {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const parts = (rest + decoder.decode(chunk)).split("\n");
    rest = parts.pop();
    yield* parts;
  }
}

async function pickup(queue, pragmas) {
  const { child, lines } = await workerProcess();
  const waits = [];
  const end = performance.now() + PICKUP_LIMIT_S * 1000;
  while (waits.length < count && (!waits.length || performance.now() < end)) {
    await sleep(20);
    queue.add("noop", { n: 1 });
    const returned = now();
    const { value, done } = await lines.next();
    if (done) giveUp("the worker ended");
    waits.push(Math.max(0, Number(value) - returned));
  }
  child.kill();
  waits.sort((a, b) => a - b);
  const at = (part) => Number(waits[Math.min(waits.length - 1, Math.floor(waits.length * part))].toFixed(3));
  report(pragmas, { count: waits.length, p50_ms: at(0.5), p99_ms: at(0.99) });
}

/** Milliseconds all threads of a process have run for. */
function cpuMs(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce((sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]), 0) / 1e6;
}

async function idle(pragmas) {
  const { child } = await workerProcess();
  await sleep(1000);
  const before = cpuMs(child.pid);
  const seconds = Math.min(Number(args.seconds), LIMIT_S - 10);
  await sleep(seconds * 1000);
  const used = cpuMs(child.pid) - before;
  child.kill();
  report(pragmas, { seconds, cpu_ms: Number(used.toFixed(1)) });
}

function worker() {
  const { queue, logger } = open();
  // It lives as long as the process that started it.
  process.stdin.on("end", () => process.exit(0)).resume();
  defineWorker("noop", async () => console.log(String(now())), { queue, logger }).start();
  console.log("ready");
}

async function main() {
  if (!args.folder || !["shipped", "full"].includes(args.setting)) giveUp("--folder F and --setting shipped or full are needed");
  if (operation === "worker") return worker();
  setTimeout(() => giveUp(`${operation} took longer than ${LIMIT_S} s`), LIMIT_S * 1000);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { queue, pragmas } = open();
  if (operation === "enqueue") {
    const seconds = await withThreads(Number(args.threads), true);
    const stored = queue.countJobs();
    if (stored !== count + Math.floor(count / 4)) giveUp(`${stored} jobs are stored`);
    report(pragmas, { count, seconds });
  } else if (operation === "drain") {
    queue.addMany("noop", Array.from({ length: count }, (_, n) => ({ n })));
    const seconds = await withThreads(Number(args.concurrency), false);
    const done = queue.countJobs({ status: JobStatus.Done });
    if (done !== count) giveUp(`${done} jobs are stored as done`);
    report(pragmas, { count, seconds });
  } else if (operation === "pickup") await pickup(queue, pragmas);
  else if (operation === "idle") await idle(pragmas);
  else giveUp("the operation is enqueue, drain, pickup or idle");
}

if (isMainThread) await main();
else thread();

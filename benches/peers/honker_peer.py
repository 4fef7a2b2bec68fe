"""honker, a queue with its own SQLite connection behind a Python module."""

import asyncio
import os
import time

import honker

import common

args = common.arguments(
    ["shipped", "full"],
    ack_batch={"type": int, "default": 1},
    watcher={"choices": ["poll", "kernel"], "default": "poll"},
)


def open_queue():
    # "kernel" is refused by the wheel as it ships; the installer builds one that has it.
    backend = "kernel" if args.watcher == "kernel" else None
    db = honker.open(os.path.join(args.folder, "honker.db"), watcher_backend=backend)
    if args.setting == "full":
        # All writes go through one connection, which is only lent inside a transaction, where the level cannot be
        # changed. So that transaction is ended here and another begun for the module to end.
        with db.transaction() as tx:
            tx.execute("COMMIT")
            tx.execute("PRAGMA synchronous = FULL")
            tx.execute("BEGIN IMMEDIATE")
    return db, db.queue("bench")


def pragmas(db):
    with db.transaction() as tx:
        found = tx.query("PRAGMA synchronous")[0]["synchronous"], tx.query("PRAGMA journal_mode")[0]["journal_mode"]
    if args.setting == "full" and found[0] != 2:
        common.give_up(f"synchronous is {found[0]}, not FULL")
    return found


def enqueue():
    db, queue = open_queue()
    one = lambda: queue.enqueue({"n": 1})
    common.from_threads(args.threads, args.count // 4, one)
    seconds = common.from_threads(args.threads, args.count, one)
    stored = db.query("SELECT count(*) AS n FROM _honker_live")[0]["n"]
    if stored != args.count + args.count // 4:
        common.give_up(f"{stored} jobs are stored")
    common.report("enqueue", pragmas(db), count=args.count, seconds=seconds)


async def one_by_one(queue, worker, acknowledged):
    # As its worker does it: one transaction to claim a job and one to acknowledge it.
    async for job in queue.claim(worker):
        acknowledged(job.ack())


async def in_batches(queue, worker, acknowledged):
    while jobs := queue.claim_batch(worker, args.ack_batch):
        acknowledged(queue.ack_batch([job.id for job in jobs], worker))


async def work(queue):
    """Drains with so many workers on one loop, as its own `run_workers` does; the time of the last acknowledgement."""
    end = asyncio.get_running_loop().create_future()
    left = args.count

    def acknowledged(jobs):
        nonlocal left
        left -= jobs
        if left == 0:
            end.set_result(time.perf_counter())

    way = one_by_one if args.ack_batch == 1 else in_batches
    workers = asyncio.gather(*(way(queue, f"worker-{i}", acknowledged) for i in range(args.concurrency)))
    # Those that find nothing more wait for updates, for ever.
    await asyncio.wait([workers, end], return_when=asyncio.FIRST_COMPLETED)
    if not end.done():
        workers.result()
        common.give_up(f"{left} jobs not acknowledged")
    return end.result()


def drain():
    db, queue = open_queue()
    with db.transaction() as tx:
        for n in range(args.count):
            queue.enqueue({"n": n}, tx=tx)
    start = time.perf_counter()
    # Not `asyncio.run`, which would end the waiting workers first, with much noise.
    seconds = asyncio.new_event_loop().run_until_complete(work(queue)) - start
    # An acknowledged job is a deleted row.
    live = db.query("SELECT count(*) AS n FROM _honker_live")[0]["n"]
    dead = db.query("SELECT count(*) AS n FROM _honker_dead")[0]["n"]
    if live or dead:
        common.give_up(f"{live} jobs are still stored, {dead} as dead")
    common.report("drain", pragmas(db), count=args.count, seconds=seconds)


async def worker(queue):
    claims = queue.claim("worker")
    common.say("ready")
    async for job in claims:
        common.handler_starts()
        job.ack()


match args.operation:
    case "enqueue":
        enqueue()
    case "drain":
        drain()
    case "pickup":
        db, queue = open_queue()
        common.pickup(args.count, lambda: queue.enqueue({"n": 1}), pragmas(db))
    case "idle":
        db, _ = open_queue()
        found = pragmas(db)
        db.close()
        common.idle(args.seconds, found)
    case "worker":
        asyncio.run(worker(open_queue()[1]))
# Threads of the module that wait for updates do not end by themselves.
os._exit(0)

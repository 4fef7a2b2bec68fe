"""huey with its SQLite storage: one connection per process behind a lock, jobs pickled."""

import logging
import os
import threading
import time

from huey import SqliteHuey
from huey.signals import SIGNAL_COMPLETE

import common

# It ships without asking for a level, which leaves the one SQLite was built with. "off" is its own weaker setting.
FSYNC = {"shipped": {}, "full": {"fsync": True}, "off": {"fsync": False}}

args = common.arguments(list(FSYNC))
logging.disable(logging.INFO)
huey = SqliteHuey("bench", filename=os.path.join(args.folder, "huey.db"), **FSYNC[args.setting])


@huey.task()
def noop():
    if args.operation == "worker":
        common.handler_starts()


def pragmas():
    ask = lambda name: huey.storage.sql(f"PRAGMA {name}", results=True)[0][0]
    found = ask("synchronous"), ask("journal_mode")
    if args.setting == "full" and found[0] != 2:
        common.give_up(f"synchronous is {found[0]}, not FULL")
    return found


def enqueue():
    common.from_threads(args.threads, args.count // 4, noop)
    seconds = common.from_threads(args.threads, args.count, noop)
    stored = huey.storage.queue_size()
    if stored != args.count + args.count // 4:
        common.give_up(f"{stored} jobs are stored")
    common.report("enqueue", pragmas(), count=args.count, seconds=seconds)


def fill(count):
    """It has no call for many at once; what it would store goes in as one transaction."""
    rows = [("bench", huey.serialize_task(noop.s())) for _ in range(count)]
    with huey.storage.db(commit=True) as cursor:
        cursor.executemany("INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)", rows)


def drain():
    fill(args.count)
    done = threading.Event()
    lock = threading.Lock()
    left = args.count

    @huey.signal(SIGNAL_COMPLETE)
    def completed(signal, task):
        nonlocal left
        with lock:
            left -= 1
            if left == 0:
                done.set()

    consumer = huey.create_consumer(workers=args.concurrency)
    start = time.perf_counter()
    consumer.start()
    done.wait()
    seconds = time.perf_counter() - start
    consumer.stop(graceful=True)
    # It deletes a job before it runs it, and stores nothing for one that returns nothing.
    waiting = huey.storage.queue_size()
    if waiting:
        common.give_up(f"{waiting} jobs are still stored")
    common.report("drain", pragmas(), count=args.count, seconds=seconds)


match args.operation:
    case "enqueue":
        enqueue()
    case "drain":
        drain()
    case "pickup":
        common.pickup(args.count, noop, pragmas())
    case "idle":
        common.idle(args.seconds, pragmas())
    case "worker":
        huey.create_consumer(workers=1).start()
        common.say("ready")
        threading.Event().wait()

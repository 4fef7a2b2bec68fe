"""What the Python peers share: the command line, the line they print, the time limit, and the two measurements that
need a worker in a second process."""

import argparse
import faulthandler
import json
import os
import shutil
import subprocess
import sys
import threading
import time

LIMIT_S = 120
# A peer that polls once a second would need hours for what another does in seconds.
PICKUP_LIMIT_S = 60
NAMES = {0: "off", 1: "normal", 2: "full", 3: "extra"}


def arguments(settings, **more):
    """The command line, after starting the clock that ends the program when it hangs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("operation", choices=["enqueue", "drain", "pickup", "idle", "worker"])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--setting", choices=settings, default="shipped")
    for name, options in more.items():
        parser.add_argument("--" + name.replace("_", "-"), **options)
    args = parser.parse_args()
    # Only what a peer made itself is removed.
    args.folder = os.path.join(args.folder, "peer")
    # A worker lives as long as the process that started it.
    if args.operation == "worker":
        threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
    else:
        # Says where every thread is and exits with 1, even when one of them sits on Python's lock.
        faulthandler.dump_traceback_later(LIMIT_S, exit=True)
        shutil.rmtree(args.folder, ignore_errors=True)
        os.makedirs(args.folder)
    return args


def give_up(why):
    print(f"given up: {why}", file=sys.stderr, flush=True)
    os._exit(1)


def report(operation, pragmas, **figures):
    """One line of JSON. `pragmas` are the two that were read back from the connection that did the work."""
    synchronous, journal_mode = pragmas
    line = {"operation": operation, **figures, "synchronous": NAMES[synchronous], "journal_mode": journal_mode}
    print(json.dumps(line), flush=True)


def from_threads(threads, count, call):
    """Calls `call` `count` times from so many threads; how long that took."""
    ready = threading.Barrier(threads + 1)

    def run(share):
        ready.wait()
        try:
            for _ in range(share):
                call()
        except Exception as error:
            give_up(f"a thread failed: {error!r}")

    shares = [count // threads + (i < count % threads) for i in range(threads)]
    running = [threading.Thread(target=run, args=[share]) for share in shares]
    for thread in running:
        thread.start()
    # Last to come, so that none starts before the clock.
    while ready.n_waiting < threads:
        time.sleep(0.001)
    start = time.perf_counter()
    ready.wait()
    for thread in running:
        thread.join()
    return time.perf_counter() - start


def worker_process():
    """This program again, as a worker that says "ready" when it waits and then the time at which each handler starts."""
    command = list(sys.argv)
    command[next(i for i, word in enumerate(command) if word in ("pickup", "idle"))] = "worker"
    child = subprocess.Popen([sys.executable, "-B", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if child.stdout.readline() != b"ready\n":
        give_up("the worker did not start")
    return child


def say(word):
    """One whole line in one write, from whatever thread the handler runs in."""
    os.write(1, f"{word}\n".encode())


def handler_starts():
    # The clock of the whole machine: the two processes compare it.
    say(time.monotonic_ns())


def pickup(count, enqueue, pragmas):
    child = worker_process()
    # Lets it come to rest after its start.
    time.sleep(0.5)
    waits = []
    end = time.monotonic() + PICKUP_LIMIT_S
    while len(waits) < count and (not waits or time.monotonic() < end):
        time.sleep(0.02)
        enqueue()
        returned = time.monotonic_ns()
        started = child.stdout.readline()
        if not started:
            give_up("the worker ended")
        waits.append(max(0, int(started) - returned) / 1e6)
    child.kill()
    waits.sort()
    report("pickup", pragmas, count=len(waits), p50_ms=round(waits[len(waits) // 2], 3),
           p99_ms=round(waits[min(len(waits) - 1, len(waits) * 99 // 100)], 3))


def idle(seconds, pragmas):
    child = worker_process()
    time.sleep(1)
    before = cpu_ns(child.pid)
    time.sleep(min(seconds, LIMIT_S - 10))
    used = cpu_ns(child.pid) - before
    child.kill()
    report("idle", pragmas, seconds=seconds, cpu_ms=round(used / 1e6, 1))


def cpu_ns(pid):
    """Nanoseconds all threads of a process have run for; finer than the ticks of `stat`."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as stat:
            total += int(stat.read().split()[0])
    return total

#!/usr/bin/env python3
"""A small application: requirements kept as JSON files. Each save also queues
a readable companion file and an extraction, accepted with it as one.

    python3 examples/requirements.py            # in a scratch folder
    python3 examples/requirements.py FOLDER     # in a folder of yours

The program jobq is the one that the variable JOBQ names, or the one on PATH.
requirements.rs and requirements.mjs are the same application; all three leave
the same files.
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

JOBQ = os.environ.get("JOBQ") or "jobq"
FILE = "data/REQ-1.json"

# The exit codes of jobq that an application acts upon.
REFUSED, OUTCOME_UNKNOWN = 4, 6


class Refused(Exception):
    """Somebody else changed the file, or is about to. Nothing has happened."""


class Requirements:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.jobq("init")  # repeating it changes nothing

    def jobq(self, *args, text=None):
        """Runs the program; returns its JSON lines."""
        command = [JOBQ, "--root", str(self.folder), "--json", *args]
        for wait in (0.1, 0.5, 2, None):
            ran = subprocess.run(command, input=text, capture_output=True, encoding="utf-8")
            if ran.returncode == 0:
                return [json.loads(line) for line in ran.stdout.splitlines()]
            if ran.returncode == REFUSED:
                raise Refused(ran.stderr.strip())
            if ran.returncode != OUTCOME_UNKNOWN or wait is None:
                raise RuntimeError(f"jobq ended with {ran.returncode}: {ran.stderr.strip()}")
            # The disk failed in the moment of acceptance. The text has an id, so asking again does nothing twice.
            time.sleep(wait)

    def read(self, path):
        """What a file holds, and what a save can expect to find there."""
        try:
            content = (self.folder / path).read_bytes()
        except FileNotFoundError:
            return None, "absent"
        # Value and hash are of the same bytes: between two reads somebody could save.
        return json.loads(content), hashlib.sha256(content).hexdigest()

    def save(self, requirement, expect):
        """The file and what has to happen because of it, accepted as one."""
        name, text = requirement["id"], requirement["text"]
        companion = {"path": f"out/{name}.md", "content": f"# {requirement['title']}\n\n{text}\n", "overwrite": True}
        extraction = {
            "prompt": f"List what can be tested in this requirement, as JSON:\n\n{text}",
            "targetPath": f"extracted/{name}.json",
            "requirementId": name,
        }
        document = {
            "id": str(uuid.uuid4()),
            "writes": [{"path": FILE, "json": requirement, "expect": expect}],
            "jobs": [
                {"type": "create_file", "payload": companion},
                {"type": "claude_extraction", "payload": extraction},
            ],
        }
        # The file gets its strings as they are spelled here: umlauts as umlauts, not as \u escapes.
        [answer] = self.jobq("commit", text=json.dumps(document, ensure_ascii=False))
        return answer

    def change(self, alter):
        """Reads, alters and saves; from the start again if somebody else is faster."""
        for _ in range(100):
            value, expect = self.read(FILE)
            try:
                return self.save(alter(value), expect)
            except Refused as refused:
                last = refused
                time.sleep(random.uniform(0.01, 0.1))  # not in step with whoever is at it too
        raise last


def add(sentence):
    """What an edit does, whoever makes it: one more sentence."""

    def alter(old):
        if old is None:
            return {"id": "REQ-1", "title": "Invoices are numbered", "text": sentence, "revision": 1}
        return {**old, "text": f"{old['text']} {sentence}", "revision": old["revision"] + 1}

    return alter


def tell(what, answer):
    later = "" if answer["applied"] else f", in place later: {answer['reason']}"
    print(f"{what}: commit {answer['id']}, {len(answer['jobs'])} jobs{later}")


def story(folder):
    app = Requirements(folder)
    tell("saved", app.change(add("Every invoice has a number.")))

    # Two windows show the same requirement. The left one saves first.
    value, expect = app.read(FILE)
    tell("left window saved", app.change(add("Numbers have no gaps – ever.")))
    try:
        app.save(add("Numbers never change.")(value), expect)
        sys.exit("the right window has overwritten what the left one saved")
    except Refused as refused:
        print(f"right window refused: {refused}")
    # What it lacked was a new read.
    tell("right window saved", app.change(add("Numbers never change.")))

    # Extractions need Claude Code and cost money: here they wait, and are never discarded.
    app.jobq("worker", "--drain", "--types", "create_file")
    print("\nafter the worker:")
    for job in reversed(app.jobq("list")):
        note = "  (waits for a worker that may run it)" if job["status"] == "pending" else ""
        print(f"  {job['id']}  {job['type']:<17}  {job['status']}{note}")
    for name in (FILE, "out/REQ-1.md"):
        print(f"\n{name}:\n{(app.folder / name).read_text('utf-8').rstrip()}")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    if len(sys.argv) > 1:
        story(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as scratch:
            story(scratch)

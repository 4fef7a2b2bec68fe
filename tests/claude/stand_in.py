#!/usr/bin/env python3
"""Stands in for Claude Code: `claude -p --output-format json`, with the prompt on stdin.

Each call takes the next word of the file `CLAUDE_STAND_IN`/script (the last one stays) and behaves as it says. What
it was called with goes to `calls.jsonl` beside it, so that tests see what a real one would have seen.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time


def answer(text, **fields):
    """What a run that went well prints."""
    result = {"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "session-1",
              "total_cost_usd": 0.25, "usage": {"input_tokens": 10, "output_tokens": 20}, "num_turns": 1,
              "duration_ms": 1200, "duration_api_ms": 1100, "permission_denials": []}
    return {**result, **fields}


def failure(status, text, **fields):
    """What a run that failed prints; it has cost something all the same."""
    return answer(text, is_error=True, api_error_status=status, total_cost_usd=0.5, **fields)


def say(value):
    print(json.dumps(value))


def next_word(folder):
    script = folder / "script"
    words = script.read_text().split()
    if len(words) > 1:
        script.write_text(" ".join(words[1:]))
    return words[0]


def spawn_grandchild(folder):
    """A process of its own session that keeps our output open; nobody has asked for it."""
    code = "import os, sys, time; os.setsid(); open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", code, str(folder / "grandchild.new")])
    while not (folder / "grandchild.new").exists() or not (folder / "grandchild.new").read_text():
        time.sleep(0.01)
    (folder / "grandchild.new").rename(folder / "grandchild")


def main():
    folder = pathlib.Path(os.environ["CLAUDE_STAND_IN"])
    prompt = sys.stdin.read()
    call = {"argv": sys.argv[1:], "env": dict(os.environ), "stdin": prompt, "cwd": os.getcwd()}
    with open(folder / "calls.jsonl", "a") as calls:
        calls.write(json.dumps(call) + "\n")
    word = next_word(folder)
    if word == "success":
        print("a warning nobody asked for")
        say(answer(f"the answer to: {prompt}"))
    elif word == "json":
        say(answer('Sure:\n{"a": 1}' if "prose" in prompt else '```json\n{"a": 1}\n```'))
    elif word == "prose":
        say(answer("I would rather not."))
    elif word == "overloaded":
        say(failure(529, "API Error: 529 Overloaded"))
        sys.exit(1)
    elif word == "limited":
        say(failure(429, "API Error: 429 rate_limit_error, retry after 30 seconds"))
        sys.exit(1)
    elif word == "unauthorised":
        say(failure(401, "Invalid API key · Please run /login"))
        sys.exit(1)
    elif word == "exit":
        print("something went wrong\x1b[31m", file=sys.stderr)
        sys.exit(3)
    elif word == "echo":
        print(prompt)
        print(prompt, file=sys.stderr)
        sys.exit(1)
    elif word == "part":
        print(f"input was: {prompt[:40]}...", file=sys.stderr)
        sys.exit(1)
    elif word == "blame":
        say(failure(None, f"while answering: {prompt}"))
        sys.exit(1)
    elif word == "update":
        print("update check: HTTP 404", file=sys.stderr)
        say(failure(None, "Execution error"))
        sys.exit(1)
    elif word == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe\x00{]garbage\x1b[2J\n")
    elif word == "half":
        text = json.dumps(answer("half an answer"))
        sys.stdout.write(text[: len(text) // 2])
    elif word == "nothing":
        pass
    elif word == "signal":
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "huge":
        line = "x" * (1 << 20) + "\n"
        for _ in range(64):
            sys.stdout.write(line)
            sys.stderr.write(line)
        say(answer("after all that"))
    elif word == "grandchild":
        spawn_grandchild(folder)
        say(answer("with company"))
    elif word == "hang":
        spawn_grandchild(folder)
        (folder / "hangs").write_text(str(os.getpid()))
        time.sleep(600)
    else:
        sys.exit(f"no such behaviour: {word}")


main()

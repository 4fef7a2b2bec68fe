#!/usr/bin/env python3
"""Checks docs/spec-coverage.md: every file and every test that it names exists, and every requirement that is said to be
met names both. Prints what is wrong and fails."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/spec-coverage.md"
STATES = ("yes", "differs", "untested", "not yet", "out")
DOCUMENTS = ("000", "001", "002", "003", "004")


def rows():
    """(line number, cells) of every requirement."""
    for number, line in enumerate(PAGE.read_text("utf-8").splitlines(), 1):
        if re.match(r"\| 00\d ", line):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


def missing_test(name):
    """Why this test is none, if so: `file::function`, or a whole file of tests."""
    file, _, function = name.partition("::")
    path = ROOT / file
    if not path.is_file():
        return f"no file {file}"
    if not function:
        return None
    text = path.read_text("utf-8")
    if "tests/conformance/" in file:
        # Generic over the store; they are tests by being listed.
        suite = (ROOT / "tests/conformance/suite.rs").read_text("utf-8")
        group = re.search(rf"\b{path.stem}:([^;]*);", suite)
        listed = group is not None and function in group[1].split()
        return None if listed and re.search(rf"\bfn {function}\b", text) else f"no test {function} in {file}"
    # With other attributes in between, perhaps.
    found = re.search(rf"#\[test\]\s*(?:#\[[^\n]*\]\s*)*fn {function}\(", text)
    if found and "#[ignore" in found[0]:
        return f"{function} in {file} is not run"
    return None if found else f"no test {function} in {file}"


def faults(cells):
    if len(cells) != 5:
        yield f"has {len(cells)} columns instead of 5"
        return
    state, code, tests = cells[2:]
    word = next((word for word in STATES if re.match(rf"{word}(: |$)", state)), None)
    if word is None:
        yield f"has a state that is not known: {state}"
    if word == "differs" and ": " not in state:
        yield "differs without saying how"
    code, tests = re.findall(r"`([^`]+)`", code), re.findall(r"`([^`]+)`", tests)
    if word in ("yes", "differs", "untested") and not code:
        yield "names no code"
    if word in ("yes", "differs") and not tests:
        yield "names no test"
    if word in ("not yet", "out") and (code or tests):
        yield "names code or tests, but is not there"
    yield from (f"no file {file}" for file in code if not (ROOT / file).is_file())
    yield from filter(None, map(missing_test, tests))


def main():
    wrong, seen, counts = [], set(), dict.fromkeys(STATES, 0)
    for number, cells in rows():
        wrong += [f"{PAGE.relative_to(ROOT)}:{number}: {cells[0]} {fault}" for fault in faults(cells)]
        if (key := tuple(cells[:2])) in seen:
            wrong.append(f"{PAGE.relative_to(ROOT)}:{number}: {cells[0]} is there twice")
        seen.add(key)
        for word in STATES:
            counts[word] += len(cells) == 5 and cells[2].startswith(word)
    wrong += [f"no requirement of {name} is listed" for name in DOCUMENTS if not any(key[0].startswith(name) for key in seen)]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(seen)} requirements: " + ", ".join(f"{count} {word}" for word, count in counts.items()))


if __name__ == "__main__":
    main()

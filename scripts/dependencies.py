#!/usr/bin/env python3
"""Are the dependencies in Cargo.lock such as we may use? Part of check.sh; needs no network once they are fetched.

- Each has a licence that deny.toml allows, and deny.toml allows none that nobody needs.
- None says that it needs a newer Rust than Cargo.toml promises (`rust-version`). One that says nothing is taken as it is.
- None comes from elsewhere than the registry.
"""

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def needed(expression, allowed):
    """The allowed licences by which an SPDX expression can be met, the first way that works; None if there is no way.

    >>> needed("MIT OR Apache-2.0", {"Apache-2.0"})
    {'Apache-2.0'}
    >>> sorted(needed("(MIT OR GPL-3.0) AND Unicode-3.0", {"MIT", "Unicode-3.0"}))
    ['MIT', 'Unicode-3.0']
    >>> needed("Apache-2.0 AND GPL-3.0", {"Apache-2.0"}) is None
    True
    >>> needed("MIT/Apache-2.0", {"MIT"})
    {'MIT'}
    >>> needed("GPL-3.0 WITH Classpath-exception-2.0 OR ISC", {"ISC", "GPL-3.0"})
    {'ISC'}
    """
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    tree, rest = either(words)
    if rest:
        raise ValueError(f"not an SPDX expression: {expression}")
    return tree(allowed)


def either(words):
    first, words = both(words)
    ways = [first]
    while words and words[0] == "OR":
        way, words = both(words[1:])
        ways.append(way)
    return lambda allowed: next((met for way in ways if (met := way(allowed)) is not None), None), words


def both(words):
    first, words = one(words)
    parts = [first]
    while words and words[0] == "AND":
        part, words = one(words[1:])
        parts.append(part)

    def all_met(allowed):
        met = [part(allowed) for part in parts]
        return None if None in met else set().union(*met)

    return all_met, words


def one(words):
    if words[0] == "(":
        tree, words = either(words[1:])
        return tree, words[1:]
    name, words = words[0], words[1:]
    if words and words[0] == "WITH":
        name, words = f"{name} WITH {words[1]}", words[2:]
    return lambda allowed: {name} if name in allowed else None, words


def version(text):
    """
    >>> version("1.89") == version("1.89.0") < version("1.89.1") < version("1.100")
    True
    """
    parts = [int(part) for part in text.split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def wrong(packages, allowed):
    """A line for each thing that is not as it should be."""
    (ours,) = (package for package in packages if package["name"] == "jobq")
    promised = ours["rust_version"]
    used = set()
    for package in packages:
        name = f"{package['name']} {package['version']}"
        met = needed(package["license"] or "none", allowed)
        if met is None:
            yield f"{name}: its licence is {package['license']}, which deny.toml does not allow"
        used |= met or set()
        if version(package["rust_version"] or "1.0") > version(promised):
            yield f"{name}: needs Rust {package['rust_version']}, and Cargo.toml promises {promised}"
        if package["source"] and not package["source"].startswith("registry+"):
            yield f"{name}: comes from {package['source']}"
    for licence in sorted(allowed - used):
        yield f"deny.toml: allows {licence}, which nobody needs"


def main():
    if doctest.testmod().failed:
        return 1
    listed = re.search(r"^allow = \[(.*?)\]", (ROOT / "deny.toml").read_text(), re.DOTALL | re.MULTILINE)
    allowed = set(re.findall(r'"([^"]+)"', listed[1]))
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    lines = list(wrong(packages, allowed))
    print("\n".join(lines) or f"{len(packages)} packages: licences, sources and the Rust that they need are in order")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every public type, trait and function of the library has an example where readers look for it.

usage: cargo doc --no-deps --lib --features testing,tokio && python3 scripts/documented.py [target/doc/jobq]

Looks at the pages that rustdoc has made. A page needs an example, with the item itself or with one of its methods;
each verb of `Queue` needs one of its own. `cargo test --doc` runs them all, so none is out of date.

Not looked at: whether an example is a good one; methods of other types one by one; constants and type aliases; and
what is below `store`, `liveness` and `effects` and not exported at the top: that is for those who write a store or a
worker of their own.
"""

import pathlib
import re
import sys

KINDS = re.compile(r"^(struct|enum|trait|fn|macro)\.")
INNER = {"store", "liveness", "effects"}
# Methods of `Queue` that only tell where something is.
PLACES = {"owners_folder", "root", "state_folder", "database", "types", "store"}
# rustdoc has a word in the first class for blocks that are not to be compiled and run, except for `no_run`.
EXAMPLE = re.compile(r'<div class="example-wrap"><pre class="rust rust-example-rendered"')
METHOD = re.compile(r'<section id="method\.(\w+)" class="method">')
IMPLEMENTED = '<h2 id="trait-implementations"'


def exported():
    """The names that lib.rs exports from inner modules."""
    text = pathlib.Path(__file__).parent.parent.joinpath("src/lib.rs").read_text(encoding="utf-8")
    lists = re.findall(r"pub use (\w+)::\{([^}]*)\}", text)
    return {name.strip() for module, names in lists if module in INNER for name in names.split(",")}


def bare_verbs(page):
    """Methods of the type that have no example of their own."""
    own = page.split(IMPLEMENTED)[0]
    parts = METHOD.split(own)[1:]
    named = zip(parts[::2], parts[1::2])
    return [name for name, text in named if name not in PLACES and not EXAMPLE.search(text)]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/doc/jobq")
    top = exported()
    looked_at, bare = 0, []
    for place in sorted(folder.rglob("*.html")):
        if not KINDS.match(place.name):
            continue
        path = place.relative_to(folder)
        name = path.name.split(".")[1]
        text = place.read_text(encoding="utf-8")
        # Private modules have pages that only lead to the public one.
        if '<meta http-equiv="refresh"' in text or (path.parts[0] in INNER and name not in top | {"Store"}):
            continue
        looked_at += 1
        full = "::".join(["jobq", *path.parts[:-1], name])
        if not EXAMPLE.search(text):
            bare.append(full)
        if full == "jobq::Queue":
            verbs = bare_verbs(text)
            bare += [f"{full}::{verb}" for verb in verbs]
    if looked_at < 50 or not top:
        sys.exit(f"only {looked_at} pages below {folder}: run cargo doc first")
    for name in bare:
        print(f"no example: {name}")
    if bare:
        sys.exit(f"{len(bare)} without an example; {looked_at} public items were looked at")
    print(f"{looked_at} public items, each with an example")


main()

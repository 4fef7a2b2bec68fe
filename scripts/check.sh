#!/usr/bin/env bash
# Everything CI runs, from any folder. Stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."

need() {
    command -v "$1" >/dev/null || { echo "missing: $1 ($2)" >&2; exit 1; }
}
need cargo "install Rust 1.89 or newer"
need cc "install a C compiler, for example the Debian package gcc"
need python3 "install the Debian package python3: plain-SQL tests use it"

step() {
    printf '\n== %s\n' "$*"
    "$@"
}

step cargo fmt --check
step cargo clippy --all-targets -- -D warnings
step cargo clippy --lib --no-default-features --features bundled -- -D warnings
step cargo test --lib --bins --tests
step cargo test --doc
step env RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
step cargo run --quiet --example custom_handler
step cargo bench --bench commit -- --short
step cargo bench --bench core -- --short
step cargo bench --bench worker -- --short

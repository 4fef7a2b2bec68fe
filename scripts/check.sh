#!/usr/bin/env bash
# Everything CI runs, from any folder. Stops at the first failure.
set -euo pipefail
cd "$(dirname "$0")/.."

need() {
    command -v "$1" >/dev/null || { echo "missing: $1 ($2)" >&2; exit 1; }
}
# Debian packages that tests use, by the program each brings: installed if that can be done here, or named.
packages=()
command -v strace >/dev/null || packages+=(strace)
command -v tmux >/dev/null || packages+=(tmux)
# Power cuts need root; without it they are skipped, loudly.
if [ "$(id -u)" = 0 ]; then
    command -v mkfs.xfs >/dev/null || packages+=(xfsprogs)
    command -v mkfs.btrfs >/dev/null || packages+=(btrfs-progs)
fi
! command -v python3 >/dev/null || python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
if [ ${#packages[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing: ${packages[*]}"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
    else
        echo "missing: ${packages[*]} (as root: apt-get install ${packages[*]}; crashes, AWS and terminals are tested with it)" >&2
        exit 1
    fi
fi
need cargo "install Rust 1.89 or newer"
need cc "install a C compiler, for example the Debian package gcc"
need python3 "install the Debian package python3: plain-SQL tests use it"

# Examples in Node need one with node:sqlite. Where the one on PATH has none, npm may have one, as a bare binary; without
# either those tests are skipped, loudly.
fetch_node() {
    local tools="${CARGO_TARGET_DIR:-target}/tools" has_sqlite="require('node:sqlite')"
    [ -z "${JOBQ_TEST_NODE:-}" ] || return 0
    local node
    for node in node "$tools/node_modules/.bin/node"; do
        ! "$node" -e "$has_sqlite" 2>/dev/null || return 0
    done
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        echo "!!! no node with node:sqlite and no npm to fetch one: some examples will be SKIPPED" >&2
        return 0
    fi
    local package
    package="node-$(node -p 'process.platform + "-" + process.arch')@22"
    timeout 300 npm install --fetch-retries 1 --prefix "$tools" --no-save --no-audit --no-fund --ignore-scripts "$package" >&2 \
        || echo "!!! npm could not fetch $package: some examples will be SKIPPED" >&2
}

# sync_aws is tested against ministack, an AWS-compatible server from PyPI, in an environment of its own.
ministack=1.5.33
fetch_ministack() {
    local tools="${CARGO_TARGET_DIR:-target}/tools/ministack"
    [ -z "${JOBQ_TEST_MINISTACK:-}" ] || return 0
    [ "$(cat "$tools/version" 2>/dev/null)" != "$ministack" ] || return 0
    rm -rf "$tools"
    if python3 -m venv "$tools" >&2 \
        && timeout 600 "$tools/bin/pip" install --quiet --disable-pip-version-check "ministack==$ministack" >&2; then
        # Last, so that one that was left half-way is made anew.
        echo "$ministack" >"$tools/version"
    else
        rm -rf "$tools"
        echo "!!! ministack $ministack could not be installed (python3 with venv, 3.10 or newer): sync_aws will be SKIPPED" >&2
    fi
}

step() {
    printf '\n== %s\n' "$*"
    "$@"
}

step cargo fmt --all --check
step cargo clippy --all-targets -- -D warnings
step cargo clippy --package faultlab --all-targets -- -D warnings
step cargo clippy --lib --no-default-features --features bundled -- -D warnings
step cargo test --no-default-features --features bundled,cli --test lean
step fetch_node
step fetch_ministack
step cargo test --lib --bins --tests
step cargo test --package faultlab
step cargo run --quiet --package faultlab -- all --short
step cargo test --doc
step env RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
step cargo run --quiet --example custom_handler
step cargo run --quiet --example requirements
# That they run, not how fast: so nothing has to be built once more for speed.
step cargo bench --profile dev --bench speed -- --short

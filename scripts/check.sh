#!/usr/bin/env bash
# Everything CI runs, from any folder. Stops at the first failure.
#
#   bash scripts/check.sh           what it needs is installed (on Debian, as root) or named
#   bash scripts/check.sh --tools   only that
#   bash scripts/check.sh --oldest  only whether it compiles with the oldest Rust that is promised
set -euo pipefail
cd "$(dirname "$0")/.."
# Of everything that is built once, parts for building it again would be kept: a third of the target folder.
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"
case "${1:-}" in
    '' | --tools | --oldest) ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac

# Told at once and once more at the end, so that green is not taken for more than it is. (Tests do the same.)
skipped() {
    printf '%s\n' "!!! SKIPPED: $*" >&2
    [ -z "${JOBQ_TEST_SKIPPED:-}" ] || printf '%s\n' "!!! SKIPPED: $*" >>"$JOBQ_TEST_SKIPPED"
}

# All that is missing is told at once.
missing=()
cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
    || missing+=("Rust 1.89 or newer with rustfmt and clippy (https://rustup.rs; rustup component add rustfmt clippy)")
# The lint for it knows the standard library and not the language, so the compiler itself has the last word, where it is.
oldest() {
    local rust
    rust=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    if rustup run "$rust" cargo --version >/dev/null 2>&1; then
        CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/rust-$rust" rustup run "$rust" cargo check --locked --all-features
    else
        skipped "Rust $rust is not here (rustup toolchain install $rust --profile minimal); only lints and what dependencies say of themselves tell that it is enough"
    fi
}
[ "${1:-}" != --oldest ] || { oldest; exit; }
# Debian packages, by the program each brings.
lacking() {
    packages=()
    command -v cc >/dev/null || packages+=(gcc libc6-dev)
    if ! command -v python3 >/dev/null; then
        packages+=(python3 python3-venv)
    elif ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        packages+=(python3-venv)
    fi
    command -v strace >/dev/null || packages+=(strace)
    command -v sqlite3 >/dev/null || packages+=(sqlite3)
    command -v tmux >/dev/null || packages+=(tmux)
    command -v groff >/dev/null || packages+=(groff-base)
    # Power cuts and files that cannot be changed need root; without it they are skipped, loudly.
    if [ "$(id -u)" = 0 ]; then
        command -v chattr >/dev/null || packages+=(e2fsprogs)
        command -v mkfs.xfs >/dev/null || packages+=(xfsprogs)
        command -v mkfs.btrfs >/dev/null || packages+=(btrfs-progs)
    fi
    [ ${#packages[@]} -gt 0 ]
}
if lacking && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing: ${packages[*]}"
    apt-get update -qq || echo "apt-get update failed; perhaps the packages are known all the same" >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" || true
fi
# What counts is what is there then, whoever was to bring it.
! lacking || missing+=("${packages[*]} (on Debian, as root: apt-get install ${packages[*]})")
if [ ${#missing[@]} -gt 0 ]; then
    printf 'missing: %s\n' "${missing[@]}" >&2
    exit 1
fi
[ "${1:-}" != --tools ] || { echo "all that is needed is there"; exit 0; }

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
        echo "there is no node with node:sqlite and no npm to fetch one" >&2
        return 0
    fi
    local package
    package="node-$(node -p 'process.platform + "-" + process.arch')@22"
    timeout 300 npm install --fetch-retries 1 --prefix "$tools" --no-save --no-audit --no-fund --ignore-scripts "$package" >&2 \
        || echo "npm could not fetch $package" >&2
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
        echo "ministack $ministack could not be installed (python3 with venv, 3.10 or newer)" >&2
    fi
}

# What is in the package builds by itself, and nothing is warned of. It has no address yet, hence `--no-metadata`.
package() {
    local log="${CARGO_TARGET_DIR:-target}/package.log"
    CARGO_TERM_COLOR=never cargo package --no-metadata --allow-dirty 2>&1 | tee "$log"
    if grep -q '^warning' "$log"; then
        echo "the package is not clean: see the warnings above" >&2
        return 1
    fi
}

# Packagers run the tests from there: their pages must not lead to what it does not have.
packaged_pages() {
    local version
    version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
    tar -xzf "${CARGO_TARGET_DIR:-target}/package/jobq-$version.crate" -C "$scratch"
    CARGO_TARGET_DIR=$(cd "${CARGO_TARGET_DIR:-target}" && pwd) \
        cargo test --locked --quiet --manifest-path "$scratch/jobq-$version/Cargo.toml" --test readme links
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export JOBQ_TEST_SKIPPED="$scratch/skipped"

step() {
    printf '\n== %s\n' "$*"
    "$@"
}

# All tests, documents and examples are built with the same features, and so once.
all=(--features testing,tokio)

step python3 scripts/check_coverage.py
step python3 scripts/dependencies.py
step cargo fmt --all --check
step cargo clippy --all-targets --all-features -- -D warnings
step cargo clippy --package faultlab --all-targets -- -D warnings
for features in bundled bundled,testing bundled,tokio bundled,cli; do
    step cargo clippy --lib --no-default-features --features "$features" -- -D warnings
done
step oldest
step cargo test --no-default-features --features bundled,cli --test lean
step bash scripts/demo.sh
step fetch_node
step fetch_ministack
step cargo test "${all[@]}" --lib --bins --tests --example application_test
step cargo test "${all[@]}" --doc
# Pages of items that are gone would be looked at, too.
step rm -rf "${CARGO_TARGET_DIR:-target}/doc/jobq"
step env RUSTDOCFLAGS="-D warnings" cargo doc --no-deps "${all[@]}"
step python3 scripts/documented.py "${CARGO_TARGET_DIR:-target}/doc/jobq"
for example in custom_handler requirements application_test async_handler; do
    step cargo run --quiet "${all[@]}" --example "$example"
done
# That they run, not how fast: so nothing has to be built once more for speed.
step cargo bench "${all[@]}" --profile dev --bench speed -- --short
step cargo test --package faultlab
step cargo run --quiet --package faultlab -- all --short
step package
step packaged_pages
step cargo install --path . --locked --debug --force --quiet --root "${CARGO_TARGET_DIR:-target}/installed"
if [ -s "$JOBQ_TEST_SKIPPED" ]; then
    printf '\n== green, but for what could not be tested here:\n'
    sort -u "$JOBQ_TEST_SKIPPED"
else
    printf '\n== green\n'
fi

#!/usr/bin/env bash
# Installs the peers of the benchmark into a folder and writes there, as peers.json, which of them run here and how:
#
#   bash benches/peers/install.sh DIR
#
# A peer that cannot be had is skipped, loudly; that is never an error. Done again, it only looks whether all is there.
# It needs what we need (Rust, a C compiler, Python) and Node with npm; CARGO_BUILD_JOBS says how many builds at once.
set -euo pipefail

honker=0.2.4
huey=3.5.4
bun=1.4.4
plainjob=0.0.14

[ $# = 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"
dir=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
manifest=()

skip() {
    echo "!!! $1 is SKIPPED: $2" >&2
}

# Words as a JSON array of strings.
json() {
    local word out=()
    for word; do
        word=${word//\\/\\\\}
        out+=("\"${word//\"/\\\"}\"")
    done
    local IFS=,
    echo "[${out[*]}]"
}

# peer NAME VERSION ACKNOWLEDGES CONCURRENCY SETTINGS OPERATIONS COMMAND...
# Into the manifest goes what has just worked: each setting is tried with a few jobs.
peer() {
    local name=$1 version=$2 acknowledges=$3 concurrency=$4 operations=$6 works=() setting fields
    local -a settings=($5)
    shift 6
    for setting in "${settings[@]}"; do
        if timeout 60 "$@" "${operations%% *}" --folder "$dir/check" --count 4 --threads 2 --concurrency 2 \
            --setting "$setting" >"$dir/check.log" 2>&1; then
            works+=("$setting")
        else
            skip "$name with the setting $setting" "it was tried and failed: $(tail -n 3 "$dir/check.log")"
        fi
    done
    rm -rf "$dir/check" "$dir/check.log"
    [ ${#works[@]} -gt 0 ] || return 0
    # shellcheck disable=SC2086 # Operations are words.
    fields=("$(json "$name")" "$(json "$version")" "$(json "$acknowledges")" "$(json $operations)")
    manifest+=("$(printf '{"name":%s,"version":%s,"acknowledges":%s,"concurrency":%s,"operations":%s,"settings":%s,"command":%s}' \
        "${fields[0]:1:-1}" "${fields[1]:1:-1}" "${fields[2]:1:-1}" "$concurrency" "${fields[3]}" \
        "$(json "${works[@]}")" "$(json "$@")")")
}

# environment FOLDER: a Python of its own.
environment() {
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
    fi
    [ -x "$1/bin/pip" ] || python3 -m venv "$1"
}

# pip FOLDER PACKAGE VERSION OPTIONS...: the version is noted last, so that one left half-way is installed anew.
pip() {
    local folder=$1 package=$2 version=$3
    shift 3
    [ "$(cat "$folder/$package.version" 2>/dev/null)" != "$version" ] || return 0
    environment "$folder" \
        && timeout 900 "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" "$package==$version" \
        && echo "$version" >"$folder/$package.version"
}

python_peers() {
    local python=("$dir/python/bin/python" -B)
    if pip "$dir/python" honker "$honker" >&2; then
        peer honker "$honker" "one by one" 1 "shipped full" "enqueue drain pickup idle" \
            "${python[@]}" "$here/honker_peer.py"
        peer honker-batch50 "$honker" "in batches of 50" 1 "shipped full" drain \
            "${python[@]}" "$here/honker_peer.py" --ack-batch 50
    else
        skip honker "pip could not install honker $honker"
    fi
    # The wheel has no kernel watcher; its source says how to build one that has. pip's cache does not tell the two apart.
    if pip "$dir/python-kernel" honker "$honker" --no-cache-dir --no-binary honker \
        --config-settings "build-args=--features kernel-watcher,bundled-sqlite" >&2; then
        peer honker-kernel "$honker" "one by one" 1 "shipped full" "pickup idle" \
            "$dir/python-kernel/bin/python" -B "$here/honker_peer.py" --watcher kernel
    else
        skip honker-kernel "pip could not build honker $honker with its kernel watcher"
    fi
    if pip "$dir/python" huey "$huey" >&2; then
        peer huey "$huey" "one by one, before it is run" 1 "shipped full off" "enqueue drain pickup idle" \
            "${python[@]}" "$here/huey_peer.py"
    else
        skip huey "pip could not install huey $huey"
    fi
}

# bun's package only links to its program after a script; the program itself is in a package for this kind of machine.
find_bun() {
    local program
    for program in "$dir"/npm/node_modules/@oven/*/bin/bun; do
        ! "$program" --version >/dev/null 2>&1 || { echo "$program"; return 0; }
    done
    return 1
}

node_peers() {
    local program wanted="bun@$bun plainjob@$plainjob"
    if ! command -v npm >/dev/null; then
        skip plainjob "there is no npm"
        return 0
    fi
    # shellcheck disable=SC2086 # Two words.
    if [ "$(cat "$dir/npm/versions" 2>/dev/null)" != "$wanted" ] && ! { timeout 600 npm install --prefix "$dir/npm" \
        --no-save --no-audit --no-fund --ignore-scripts --loglevel error $wanted >&2 && echo "$wanted" >"$dir/npm/versions"; }; then
        skip plainjob "npm could not install $wanted"
    elif ! program=$(find_bun); then
        skip plainjob "npm has no bun that runs on this machine"
    else
        peer plainjob "$plainjob on bun $bun" "one by one" 1 "shipped full" "enqueue drain pickup idle" \
            env "NODE_PATH=$dir/npm/node_modules" "$program" --no-install "$here/plainjob_peer.mjs"
    fi
}

# rust_peer FOLDER CRATE ACKNOWLEDGES CONCURRENCY SETTINGS OPERATIONS
rust_peer() {
    local manifest_path="$here/rust/$1/Cargo.toml" version
    version=$(sed -n "s/^$2 = \"=\(.*\)\"/\1/p" "$manifest_path")
    if timeout 3000 cargo build --quiet --release --locked --manifest-path "$manifest_path" --target-dir "$dir/target" >&2; then
        peer "$2" "$version" "$3" "$4" "$5" "$6" "$dir/target/release/$1-peer"
    else
        skip "$2" "cargo could not build it"
    fi
}

if command -v python3 >/dev/null; then python_peers; else skip "honker and huey" "there is no python3"; fi
node_peers
if command -v cargo >/dev/null; then
    rust_peer effectum effectum "what has ended meanwhile, together" 200 "shipped shipped-wal full" "enqueue drain"
    rust_peer apalis apalis-sqlite "what has ended meanwhile, together" 8 "shipped full" "enqueue drain pickup idle"
else
    skip "effectum and apalis-sqlite" "there is no cargo"
fi

# Whole or not at all.
{
    echo "["
    for ((i = 0; i < ${#manifest[@]}; i++)); do
        [ $((i + 1)) = ${#manifest[@]} ] && end="" || end=","
        echo "  ${manifest[i]}$end"
    done
    echo "]"
} >"$dir/peers.json.new"
mv "$dir/peers.json.new" "$dir/peers.json"
echo "${#manifest[@]} ways of running peers are in $dir/peers.json"

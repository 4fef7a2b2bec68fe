#!/usr/bin/env bash
# All faults, in full: some 50 minutes on two cores, as root. What CI runs of it is in check.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends strace xfsprogs btrfs-progs >/dev/null || true
fi
cargo run --quiet -p faultlab -- all "$@"
cargo test --quiet --test hostile -- --nocapture
bash scripts/mutants.sh

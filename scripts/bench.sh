#!/usr/bin/env bash
# The whole benchmark beside other queues, some 25 minutes: installs them into a scratch folder, measures everything in
# one run, and puts table and plots into docs/. Arguments go to the benchmark: `--short`, or the names of some parts.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch="$(pwd)/target/peers"
bash benches/peers/install.sh "$scratch"
cargo bench --bench speed -- --peers "$scratch" --json "$scratch/figures.jsonl" "$@"
case " $* " in
    "  ") ;;
    *) echo "not all of it was measured: docs/performance.md stays as it is"; exit 0 ;;
esac
[ -x "$scratch/report/bin/python" ] || python3 -m venv "$scratch/report"
"$scratch/report/bin/pip" install --quiet --disable-pip-version-check "matplotlib==3.10.*"
"$scratch/report/bin/python" benches/report.py "$scratch/figures.jsonl" docs

#!/usr/bin/env bash
# What jobq is for, end to end, in a folder of its own: a commit of files and jobs, a worker that is killed half-way, another
# that goes on, and a disk that is compared with what the jobs left on it. Every command is real, and so is what it prints;
# the demo stops with an error as soon as something is not as it says.
#
#   bash scripts/demo.sh            builds jobq first (without AWS, which is most of the build)
#     --release                     builds it for speed
#     --jobq PROGRAM                builds nothing and uses this one
#     --keep                        leaves the folder, and says where it is
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)

profile=() program='' keep=''
while [ $# -gt 0 ]; do
    case $1 in
        --release) profile=(--release) ;;
        --keep) keep=yes ;;
        --jobq) program=${2:?--jobq needs a program}; shift ;;
        *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done

bold='' dim='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1;36m' dim=$'\e[2m' plain=$'\e[0m'; fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
stop() { printf '\ndemo: %s\n' "$*" >&2; exit 1; }
# run CODE COMMAND: shows the command and what it prints; anything but this exit code ends the demo.
run() {
    local code=0
    show "$2"
    eval "$2" 2>&1 || code=$?
    [ "$code" = 0 ] || printf '%s(exit code %s)%s\n' "$dim" "$code" "$plain"
    [ "$code" = "$1" ] || stop "that should have ended with exit code $1, and ended with $code"
}
# holds WHAT COMMAND: what is told has to be so.
holds() { eval "$2" >/dev/null || stop "this is not so: $1"; }
# await WHAT COMMAND: what a worker does takes as long as it takes, but not for ever.
await() {
    local end=$((SECONDS + 60))
    until eval "$2" >/dev/null 2>&1; do
        kill -0 "$worker" 2>/dev/null || stop "the worker has ended by itself:"$'\n'"$(tail -n 5 worker.log)"
        [ $SECONDS -lt $end ] || stop "waited a minute in vain for this: $1"$'\n'"$(tail -n 5 worker.log)"
        sleep 0.05
    done
}
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; }
# start_worker OPTIONS: in the background.
start_worker() {
    show "jobq worker ${*:+$* }> worker.log &"
    jobq worker "$@" >worker.log 2>&1 &
    worker=$!
}
# end_worker SIGNAL CODE: what it is told, and how it ends then.
end_worker() {
    local code=0
    show "kill -$1 $worker"
    kill "-$1" "$worker"
    wait "$worker" 2>/dev/null || code=$?
    worker=''
    [ "$code" = "$2" ] || stop "the worker should have ended with exit code $2, and ended with $code"
}
# in_status STATUS: how many jobs.
in_status() { jobq list --status "$1" --json | grep -c . || true; }

if [ -z "$program" ]; then
    command -v cargo >/dev/null || stop "missing: cargo (install Rust 1.89 or newer)"
    command -v cc >/dev/null || stop "missing: cc (install a C compiler, for example the Debian package gcc; SQLite is compiled in)"
    echo "building jobq; the first time that takes a minute or two"
    built=$(cd "$repository" && cargo build ${profile[@]+"${profile[@]}"} --locked --bin jobq --no-default-features \
        --features bundled,cli --message-format json-render-diagnostics) || stop "cargo could not build jobq"
    program=$(printf '%s\n' "$built" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
fi
[ -x "$program" ] || stop "$program is not a program"
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")

folder=$(mktemp -d "${TMPDIR:-/tmp}/jobq-demo.XXXXXX") || stop "no temporary folder can be made"
worker=''
finish() {
    [ -z "$worker" ] || kill -9 "$worker" 2>/dev/null || true
    if [ -n "$keep" ]; then
        printf '\nkept: %s\n' "$folder"
    else
        # What a killed worker had started is dead within two seconds; until then it may be writing here.
        for _ in 1 2 3 4 5; do rm -rf "$folder" 2>/dev/null && break || sleep 1; done
    fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
mkdir "$folder/bin" "$folder/shop"
ln -s "$program" "$folder/bin/jobq"
export PATH="$folder/bin:$PATH"
unset JOBQ_DB
# Findings are printed; that they are logged as well would only be in the way here.
export JOBQ_LOG=error
cd "$folder/shop"

say "1. A shop keeps its invoices as JSON files. Its folder becomes a queue:"
run 0 'jobq init'

say "2. A program is a kind of job. This one sends a mail; the mail server is a file that knows mails by key:"
mkdir -p .jobq/handlers
cat >.jobq/handlers/send_mail <<'HANDLER'
#!/bin/sh
read -r mail
echo "attempt $JOBQ_ATTEMPT of $mail" >>handler.log
grep -q "$JOBQ_IDEMPOTENCY_KEY" sent.log || echo "$JOBQ_IDEMPOTENCY_KEY $mail" >>sent.log
# The worst moment for a crash: the mail is out, and nobody has been told. For Ben it lasts until there is an answer.
case $mail in *ben@*) until [ -e answer ]; do sleep 0.1; : >waiting; done ;; esac
HANDLER
chmod +x .jobq/handlers/send_mail
: >sent.log
run 0 'cat .jobq/handlers/send_mail'

say "3. Three invoices, with a text to print and a mail for each, are accepted as one:"
cat >commit.json <<'COMMIT'
{"writes": [
  {"path": "data/1.json", "json": {"to": "ada", "total": 12}, "expect": "absent"},
  {"path": "data/2.json", "json": {"to": "ben", "total": 34}, "expect": "absent"},
  {"path": "data/3.json", "json": {"to": "cem", "total": 56}, "expect": "absent"}],
 "jobs": [
  {"type": "create_file", "payload": {"path": "print/1.txt", "content": "Ada owes 12\n"}},
  {"type": "send_mail", "payload": {"to": "ada@example.org", "invoice": 1}},
  {"type": "create_file", "payload": {"path": "print/2.txt", "content": "Ben owes 34\n"}},
  {"type": "send_mail", "payload": {"to": "ben@example.org", "invoice": 2}},
  {"type": "create_file", "payload": {"path": "print/3.txt", "content": "Cem owes 56\n"}},
  {"type": "send_mail", "payload": {"to": "cem@example.org", "invoice": 3}}]}
COMMIT
run 0 'cat commit.json'
run 0 'jobq commit commit.json'
run 0 'ls data'
holds "the files are there, and six jobs wait" '[ -s data/1.json ] && [ -s data/2.json ] && [ -s data/3.json ] && [ "$(in_status pending)" = 6 ]'

say "   The same again is refused as a whole: the files are there now, so no job is queued either."
run 4 'jobq commit commit.json'
holds "it is still six jobs" '[ "$(in_status pending)" = 6 ]'

say "4. A worker runs one job after the other. Ben's mail is out, his job not yet done: the worker is killed."
start_worker --concurrency 1
# A worker claims short jobs ahead. Ben's job waits, so the worker has seen that it is long and has let go of the others.
await "the worker has sent Ben's mail, and his job is the only one that runs" \
    '[ -e waiting ] && [ "$(in_status claimed)" = 1 ]'
end_worker KILL 137
run 0 'jobq list'
holds "the dead worker has one job, and two wait" '[ "$(in_status claimed) $(in_status pending)" = "1 2" ]'
: >answer

say "5. The next worker sees that the first is dead, takes its job back and does what is left:"
start_worker
await "all is completed" '[ "$(in_status completed)" = 7 ]'
end_worker TERM 0
ben=$(sed -n '/ben@/{s/ .*//p;q;}' sent.log)
run 0 'jobq list'
run 0 "jobq events $ben"
holds "Ben's job has used two attempts, the others one" '[ "$(jobq list --json | grep -o "\"attempts\":[0-9]*" | sort | uniq -c | tr -s " \n" " ")" = " 6 \"attempts\":1 1 \"attempts\":2 " ]'

say "6. Ben's handler ran twice, with the same key. So the mail server could tell: three mails, not four."
run 0 'cat handler.log'
run 0 'cat sent.log'
holds "the handler ran four times, twice for Ben" '[ "$(grep -c . handler.log) $(grep -c ben@ handler.log)" = "4 2" ]'
holds "three mails were sent, one to each" '[ "$(grep -o "[a-z]*@" sent.log | sort | tr -d "\n")" = "ada@ben@cem@" ]'

say "7. Does the disk hold what the jobs left there?"
run 0 'jobq reconcile'
holds "each text was written once" \
    '[ "$(for n in 1 2 3; do jobq blame print/$n.txt --json | grep -c .; done | tr -d "\n")" = 111 ]'

say "8. Somebody edits a file by hand and deletes another. The same question again:"
run 0 'echo "Ben owes nothing" > print/2.txt; rm print/3.txt'
run 1 'jobq reconcile'
holds "both findings are told, and no other" \
    '[ "$({ jobq reconcile --json || true; } | grep -o "\"finding\":\"[a-z_]*\"" | sort | tr -d "\n")" = "\"finding\":\"changed\"\"finding\":\"missing\"" ]'
run 0 'jobq blame print/2.txt'

say "9. jobq reports and does not fix, unless it is told to. A repair is a job like any other:"
run 1 'jobq reconcile --requeue --yes'
run 0 'jobq worker --drain > worker.log'
run 0 'jobq reconcile'
run 0 'cat print/2.txt print/3.txt'
holds "the texts are what they were" '[ "$(cat print/2.txt print/3.txt)" = $'"'"'Ben owes 34\nCem owes 56'"'"' ]'

say "All of it was as told. What is promised, under which faults, and how that is tested: docs/guarantees.md"

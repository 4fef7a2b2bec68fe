#!/bin/sh
# jobq on a disk that fails: the answer to the first commit is lost after it was
# accepted, that to the second before; then all is well. Each is noted.
case " $* " in *" commit "*) ;; *) exec "$JOBQ_REAL" "$@" ;; esac
calls=0
[ ! -e "$JOBQ_CALLS" ] || calls=$(wc -l <"$JOBQ_CALLS")
case $((calls)) in
0) echo "lost after" >>"$JOBQ_CALLS" && "$JOBQ_REAL" "$@" >/dev/null && exit 6 ;;
1) echo "lost before" >>"$JOBQ_CALLS" && exit 6 ;;
*) echo "told" >>"$JOBQ_CALLS" && exec "$JOBQ_REAL" "$@" ;;
esac

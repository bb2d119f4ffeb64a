# What every task of a drill runs. Each attempt writes a file of marks, one line each, that no other task writes:
#
#	<time in ns> <what> <run> <task> <attempt> <claim> <node> <pid>
#
# start, tick (still alive), child (a process that it left in the background), term (SIGTERM arrived), fail, end; and
# overlap: a process of an earlier claim was alive when this one started.
#
# Settings, from the environment of the task: CHAOS_DIR; CHAOS_TICKS, how many ticks to work; CHAOS_TICK, the length of
# one in seconds; CHAOS_GATE, a file that must exist before the task ends; CHAOS_TREE, leave processes that are hard to
# end; CHAOS_FAILS, number of attempts that fail.
file="$CHAOS_DIR/marks/$SWITCHYARD_RUN_ID.$SWITCHYARD_TASK"
claim=${SWITCHYARD_CLAIM##*/c}

mark() {
	# A signal to the group ends date as well.
	until now=$(date +%s%N) && [ -n "$now" ]; do :; done
	echo "$now $1 $SWITCHYARD_RUN_ID $SWITCHYARD_TASK $SWITCHYARD_ATTEMPT $claim $SWITCHYARD_NODE ${2:-$$}" >>"$file"
}

case $1 in
child)
	mark child
	exec sleep 1000
	;;
deaf)
	trap '' TERM
	mark child
	while :; do sleep 1; done
	;;
esac

if [ -e "$file" ]; then
	while read -r _ what run task _ old _ pid; do
		case $what in
		start | child)
			# The claim in the environment tells the process from another that got its number later.
			if [ "$old" != "$claim" ] && tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "SWITCHYARD_CLAIM=$run/$task/c$old"; then
				mark overlap "$pid"
			fi
			;;
		esac
	done <"$file"
fi

trap 'mark term; exit 143' TERM
mark start
if [ -n "$CHAOS_TREE" ]; then
	sh "$CHAOS_DIR/task.sh" deaf &
	setsid sh "$CHAOS_DIR/task.sh" child &
	(setsid sh -c 'sh "$CHAOS_DIR/task.sh" child &' &)
fi
n=0
while [ "$n" -lt "${CHAOS_TICKS:-0}" ] || { [ -n "$CHAOS_GATE" ] && [ ! -e "$CHAOS_GATE" ]; }; do
	sleep "${CHAOS_TICK:-0.1}"
	mark tick
	n=$((n + 1))
done
if [ "$SWITCHYARD_ATTEMPT" -lt "${CHAOS_FAILS:-0}" ]; then
	mark fail
	exit 3
fi
mark end
echo "by $SWITCHYARD_NODE $claim"

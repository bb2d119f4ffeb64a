# What every task of a drill runs. Each attempt writes a file of marks, one line each, that no other task or instance writes:
#
#	<seconds since boot> <what> <run> <task or instance> <attempt> <claim> <node> <pid> <ticks>
#
# start, tick (still alive), child (a process that it left in the background), term (SIGTERM arrived), fail, end; and
# overlap: a process of an earlier claim was alive when this one started. The claim is that of SWITCHYARD_CLAIM without
# the run: all instances of a batch have the same. In a container, it is the name of the container and 0.
#
# Settings, from the environment of the task: CHAOS_DIR; CHAOS_TICKS, how many ticks to work; CHAOS_TICK, the length of
# one in seconds; CHAOS_GATE, a file that must exist before the task ends; CHAOS_TREE, leave processes that are hard to
# end; CHAOS_DEAF, go on after SIGTERM; CHAOS_FAILS, number of attempts that fail; CHAOS_ONCE, a file without which the
# task fails, after it has made it; CHAOS_COUNTS, go on from the tick that the checkpoint names.
name=${SWITCHYARD_TASK_ID##*/}
file="$CHAOS_DIR/marks/$SWITCHYARD_RUN_ID.$name"
claim=${SWITCHYARD_CLAIM#*/}
claim=${claim:-$HOSTNAME/c0}
n=0

mark() {
	# It is the same in containers, and no process has to be started for it.
	read -r now _ </proc/uptime
	echo "$now $1 $SWITCHYARD_RUN_ID $name $SWITCHYARD_ATTEMPT $claim $SWITCHYARD_NODE ${2:-$$} $n" >>"$file"
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
	while read -r _ what run task _ old _ pid _; do
		case $what in
		start | child)
			# The claim in the environment tells the process from another that got its number later.
			if [ "$old" != "$claim" ] && { environ=$(tr '\0' '\n' <"/proc/$pid/environ"); } 2>/dev/null &&
				[ "$(echo "$environ" | sed -n 's,^SWITCHYARD_CLAIM=[^/]*/,,p')" = "$old" ] &&
				echo "$environ" | grep -Fxq "SWITCHYARD_TASK_ID=$run/$task"; then
				mark overlap "$pid"
			fi
			;;
		esac
	done <"$file"
fi

trap 'mark term; [ -n "$CHAOS_DEAF" ] || exit 143' TERM
if [ -n "$CHAOS_COUNTS" ] && [ -s "$SWITCHYARD_CHECKPOINT" ]; then
	read -r n <"$SWITCHYARD_CHECKPOINT"
fi
mark start
if [ -n "$CHAOS_TREE" ]; then
	sh "$CHAOS_DIR/task.sh" deaf &
	setsid sh "$CHAOS_DIR/task.sh" child &
	(setsid sh -c 'sh "$CHAOS_DIR/task.sh" child &' &)
fi
while [ "$n" -lt "${CHAOS_TICKS:-0}" ] || { [ -n "$CHAOS_GATE" ] && [ ! -e "$CHAOS_GATE" ]; }; do
	sleep "${CHAOS_TICK:-0.1}"
	n=$((n + 1))
	mark tick
	if [ -n "$CHAOS_COUNTS" ]; then
		# Whoever reads it must not find half of it.
		echo "$n" >"$SWITCHYARD_LOCAL_TEMP_DIR/count"
		mv "$SWITCHYARD_LOCAL_TEMP_DIR/count" "$SWITCHYARD_CHECKPOINT"
	fi
done
if [ "$SWITCHYARD_ATTEMPT" -lt "${CHAOS_FAILS:-0}" ] || { [ -n "$CHAOS_ONCE" ] && [ ! -e "$CHAOS_ONCE" ]; }; then
	mark fail
	[ -z "$CHAOS_ONCE" ] || : >"$CHAOS_ONCE"
	exit 3
fi
mark end
echo "by $SWITCHYARD_NODE ${claim##*/c}"

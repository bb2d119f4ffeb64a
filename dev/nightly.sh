#!/usr/bin/env bash
# Runs what takes too long for every change: dev/nightly.sh [-d LENGTH-OF-THE-SOAK] [-o FOLDER] [PART...]
#
#	soak         random runs under random faults, 30m by default
#	chaos        every scenario of dev/chaos at full length
#	long         the tests named TestLong..., those of engines and Kubernetes too
#	kubernetes   the tests that need the Kubernetes of dev/kubetest
#	properties   the properties of the cores of runs and of placement, with many cases
#	fuzz         every fuzz target
#	race         all tests under the race detector
#	upgrades     this tree takes over the state of an earlier one
#
# Without PART, all of these run. The part core is what CI runs: the checks that have found faults, in at most 5 minutes on
# two cores. Engines, Kubernetes and sandboxes need root; CONTRIBUTING.md says what to install.
#
# Each part prints one line. FOLDER (a temporary folder by default) gets its output, and what a failed part leaves: the folders
# of clusters, and inputs of fuzzing and properties.
set -uo pipefail
length=30m folder=
while getopts d:o: option; do
	case $option in
	d) length=$OPTARG ;;
	o) folder=$OPTARG ;;
	*) echo "usage: dev/nightly.sh [-d LENGTH-OF-THE-SOAK] [-o FOLDER] [PART...]" >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
all=(soak chaos long kubernetes properties fuzz race upgrades)
[ $# -gt 0 ] || set -- "${all[@]}"
for name; do
	[[ " ${all[*]} core " == *" $name "* ]] || { echo "no part is called $name; the parts are: ${all[*]} core" >&2; exit 2; }
done
[ -n "$folder" ] || folder=$(mktemp -d /tmp/switchyard-nightly-XXXXXX)
mkdir -p "$folder" || exit 2
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.." || exit 2
# After Ctrl-C, no further part begins.
trap 'exit 130' INT
export GOFLAGS="${GOFLAGS:-} -count=1"
tags="engines kubernetes"
failed=0

# part NAME COMMAND... runs a part and prints its line. A test that no longer exists is a failure in the core.
part() {
	local name=$1 result=ok began=$SECONDS
	shift
	mkdir -p "$folder/$name"
	"$@" >"$folder/$name.log" 2>&1 </dev/null || result=FAILED
	case $name in core-*) ! grep -q 'no tests to run\|no fuzz tests to fuzz' "$folder/$name.log" || result=FAILED ;; esac
	if [ $result = ok ]; then
		rm -rf "${folder:?}/$name"
	else
		failed=1
		git ls-files --others '*/testdata/fuzz/*' '*/testdata/rapid/*' | xargs -r cp --parents -t "$folder/$name"
	fi
	printf '%-22s %-6s %5d s\n' "$name" $result $((SECONDS - began))
}

kubernetes() { go run ./dev/kubetest/build && dev/tagged.sh kubernetes -timeout 60m; }

# TestLongFailure runs the scenarios of chaos once more, and TestLongUpgrade is the part upgrades.
long() {
	go run ./dev/kubetest/build &&
		SWITCHYARD_LONG=1 go test -timeout 60m -tags "$tags" -run '^TestLong' -skip '^TestLong(Failure|Upgrade)$' ./...
}

properties() {
	go test ./workflows/core/dag -timeout 1h -rapid.checks=500000 &&
		go test ./activities/placement -timeout 3h -rapid.checks=100000 \
			-run 'AgainstModel|BreakNoRule|NeverBlockForever|AreWholeInAllHistories|GivesTheSameOrder|ConvergeToWeights' &&
		go test ./activities/store -timeout 1h -rapid.checks=2000 -run 'BehavesAsAMap|OrderOfALog'
}

race() { go run ./dev/kubetest/build && go test -timeout 90m -race -tags "$tags" ./...; }

# longTests "PACKAGES" NAME... runs long tests by the rest of their names. One that does not exist is an error.
longTests() {
	local packages name
	read -ra packages <<<"$1"
	shift
	for name; do
		git grep -q "^func TestLong$name(" || { echo "TestLong$name does not exist"; return 1; }
	done
	local IFS='|'
	SWITCHYARD_LONG=1 go test -timeout 30m -tags "$tags" -run "^TestLong($*)\$" "${packages[@]}"
}

# chaos PART [FLAG|SCENARIO]... breaks clusters; a part keeps the folders of those in which a check failed.
chaos() {
	local part=$1
	shift
	go run ./dev/chaos -dir "$folder/$part" "$@"
}

core() {
	# A node that was kept from one request of a shape stayed closed to the next one.
	part core-placement go test ./activities/placement -rapid.checks=1000 -run 'AgainstModel|BreakNoRule'
	# A condition switched off the protection against failed parents; the last failure of an instance was no dead letter.
	part core-dag go test ./workflows/core/dag -rapid.checks=5000
	# A line of nvidia-smi about a GPU without a name was a GPU.
	# An attempt ran on after its task had started elsewhere, when a server had lost its newest seconds twice.
	part core-lease go test ./activities/taskrunner -rapid.checks=20000 -run TaskNeverRunsTwice
	part core-fuzz go test ./workers/node -run '^$' -fuzz '^FuzzParseGPUs$' -fuzztime 10000x -fuzzminimizetime 100x
	local faults=(
		# Odd names and bytes in requests were faults of the gateway.
		DrawnRequestsGetDocumentedAnswers
		# Text that is not valid UTF-8 failed workflow tasks; an update of the context that did not fit was lost.
		WorkflowsSurviveStrayMessages
		# An attempt that could not be detached kept its run from continuing.
		DeadNodeHarmsNoOtherAttempt
		# A run whose state could not be saved in time left its attempts detached.
		ChildThatIsSlowToStopDelaysNothingElse
	)
	tags='' part core-long longTests "./gateway ./workers ./workflows/run" "${faults[@]}"
	part core-build go build -o "$folder/switchyard" .
	# Nodes whose store was away were refused as strangers, and a store that went away was created again in its place.
	part core-store chaos core-store -binary "$folder/switchyard" -scale fast store-away
	# A killed worker forgot results that waited for the gateway; a program that ended by itself counted as stopped by a drain;
	# a task whose record was stored was lost.
	part core-soak chaos core-soak -binary "$folder/switchyard" -scale fast -soak 45s -seed 4242
	rm "$folder/switchyard"
}

for name; do
	case $name in
	soak) part soak chaos soak -soak "$length" ;;
	chaos) part chaos chaos chaos ;;
	long | kubernetes | properties | race) part "$name" "$name" ;;
	fuzz) part fuzz dev/fuzz.sh 50000x ;;
	upgrades) part upgrades longTests ./dev/e2e Upgrade ;;
	core) core ;;
	esac
done
echo "output and failures: $folder"
exit $failed

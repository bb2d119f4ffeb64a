package store

import (
	"fmt"
	"strconv"
	"strings"
)

// The keys of a run, all of them below runs/<run>/:
//
//	status/<generation>                          its status when it had ended
//	carry/<generation>.<n>                       state left by its n-th execution
//	results/<task>.<generation>.<attempt>        result record of an attempt
//	logs/<task>/<attempt>.<claim>.<chunk>        a chunk of what a dispatch printed
//	events/<generation>.<n>                      n-th stored part of its events
//	purged/<generation>.<task>                   mark of a dead letter that is off the list
//
// Run ids hold no slash, task names neither slash nor dot. Results lie side by
// side because in a folder a directory for each costs as much as the record;
// logs have a directory a task because they are listed by task.

const runsPrefix = "runs/"

// RunPrefix is how all keys of a run start.
func RunPrefix(run string) string { return runsPrefix + run + "/" }

// StatusKey is the key of a v1.StatusResponse: the status that a run ended with.
func StatusKey(run string, generation int32) string {
	return RunPrefix(run) + "status/" + itoa(generation)
}

// CarryKey is the key of a v1.RunCarry: the state that the n-th execution of a
// run left to the next.
func CarryKey(run string, generation, n int32) string {
	return RunPrefix(run) + "carry/" + itoa(generation) + "." + itoa(n)
}

// ResultKey is the key of the result record of an attempt.
func ResultKey(run string, generation int32, task string, attempt int32) string {
	return RunPrefix(run) + "results/" + segment(task) + "." + itoa(generation) + "." + itoa(attempt)
}

// LogsPrefix is how the keys of all logs of a task start.
func LogsPrefix(run, task string) string {
	return RunPrefix(run) + "logs/" + segment(task) + "/"
}

// LogPrefix is how the keys of the log of one dispatch of a task start.
func LogPrefix(run, task string, attempt, claim int32) string {
	return LogsPrefix(run, task) + itoa(attempt) + "." + itoa(claim) + "."
}

// LogChunkKey is the key of a chunk, numbered from 0, of the log of a dispatch.
func LogChunkKey(run, task string, attempt, claim int32, chunk int64) string {
	// Eight digits keep the chunks in order for whoever looks at a folder.
	return LogPrefix(run, task, attempt, claim) + fmt.Sprintf("%08d", chunk)
}

// EventsKey is the key of a v1.EventPart: the n-th part, from 0, of the events
// of a generation of a run.
func EventsKey(run string, generation, n int32) string {
	// Six digits keep the parts in order in a list.
	return EventsPrefix(run, generation) + fmt.Sprintf("%06d", n)
}

// EventsPrefix is how the keys of the events of a generation start.
func EventsPrefix(run string, generation int32) string {
	return RunPrefix(run) + "events/" + itoa(generation) + "."
}

// PurgedKey is the key of the mark that takes the dead letter
// of a task in a generation off the list.
func PurgedKey(run string, generation int32, task string) string {
	return RunPrefix(run) + "purged/" + itoa(generation) + "." + segment(task)
}

// ParseLogChunkKey is the inverse of LogChunkKey.
func ParseLogChunkKey(key string) (run, task string, attempt, claim int32, chunk int64, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 5 {
		return "", "", 0, 0, 0, false
	}
	numbers := strings.Split(parts[4], ".")
	if len(numbers) != 3 {
		return "", "", 0, 0, 0, false
	}
	a, errA := strconv.ParseUint(numbers[0], 10, 31)
	c, errC := strconv.ParseUint(numbers[1], 10, 31)
	n, errN := strconv.ParseUint(numbers[2], 10, 63)
	run, task, attempt, claim, chunk = parts[1], unsegment(parts[3]), int32(a), int32(c), int64(n)
	if errA != nil || errC != nil || errN != nil || key != LogChunkKey(run, task, attempt, claim, chunk) {
		return "", "", 0, 0, 0, false
	}
	return run, task, attempt, claim, chunk, true
}

// A folder's bucket takes "__0x" in a key for an escape sequence of its own,
// and then does not find in a list what it has stored. A task may be called
// that; none has a dot in its name.
const (
	escapeLike = "__0x"
	defused    = "__.0x"
)

func segment(task string) string   { return strings.ReplaceAll(task, escapeLike, defused) }
func unsegment(part string) string { return strings.ReplaceAll(part, defused, escapeLike) }

func itoa(n int32) string { return strconv.Itoa(int(n)) }

package storekey

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// NodeValue is a kind of value that nodes store for the attempts that they run. All other values of a run belong to the
// control process and the gateway.
type NodeValue int

// The kinds of values of nodes.
const (
	// ResultValue is the result record of an attempt, stored once the attempt has completed.
	ResultValue NodeValue = iota + 1
	// BatchValue is the record of a batch, which grows with the batch.
	BatchValue
	// CheckpointValue is the newest checkpoint of a dispatch.
	CheckpointValue
	// JournalValue is an entry of a journal or another value of the journal.
	JournalValue
	// LogChunkValue is a chunk of a log, which is stored once.
	LogChunkValue
	// ArtifactValue is the manifest of an artifact, which is stored once.
	ArtifactValue
	// DraftValue names chunks on which the upload of an artifact relies.
	DraftValue
)

// Patterns of the names of runs and chains, and of tasks or their instances, in keys of nodes.
var (
	nodeRun  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._-]*$`) })
	nodeTask = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}(\[[0-9]{1,10}\])?$`) })
)

// NodeKey identifies what a node stores under a key.
type NodeKey struct {
	Kind NodeValue
	// Run and Chain are those of the attempt. Task is its task, without the number of an instance.
	Run, Chain, Task string
}

// ParseNode returns what a node stores under a key from an untrusted source. It returns an error if Check does, or if
// nodes have no such key.
func ParseNode(key string) (NodeKey, error) {
	if err := Check(key); err != nil {
		return NodeKey{}, err
	}
	run, rest, _ := SplitRun(key)
	chain, rest, _ := strings.Cut(rest, "/")
	folder, rest, _ := strings.Cut(rest, "/")
	found := func(kind NodeValue, name string) (NodeKey, error) {
		task, _, _, _ := ParseBatchName(name)
		task, _, _ = ParseInstanceName(task)
		return NodeKey{kind, run, chain, task}, nil
	}
	if home := run + "/" + chain; nodeRun().MatchString(run) && nodeRun().MatchString(chain) {
		switch folder {
		case "results":
			if task, generation, attempt, ok := parseAttempt(rest); ok && key == Result(home, generation, task, attempt) {
				return found(ResultValue, task)
			}
		case "checkpoints":
			if task, generation, claim, ok := parseAttempt(rest); ok && key == Checkpoint(home, generation, task, claim) {
				return found(CheckpointValue, task)
			}
		case "journal":
			if j, rest, ok := ParseJournal(key); ok && isJournalKey(j, key, rest) {
				return found(JournalValue, j.Task)
			}
		case "batches":
			if task, ok := batchOfNode(home, key, rest); ok {
				return found(BatchValue, task)
			}
		case artifactsFolder:
			if task, ok := artifactOfNode(home, key, rest); ok {
				return found(ArtifactValue, task)
			}
		case draftsFolder:
			artifact, n, _ := cutLast(rest, ".")
			number, isNumber := parseNumber(n)
			whole := RunPrefix(home) + artifactsFolder + "/" + artifact
			if task, ok := artifactOfNode(home, whole, artifact); ok && isNumber && key == Draft(whole, number) {
				return found(DraftValue, task)
			}
		case "logs":
			if of, _, ok := ParseLogChunk(key); ok && of.Home == home && isPrinter(of.Task) {
				return found(LogChunkValue, of.Task)
			}
		}
	}
	return NodeKey{}, fmt.Errorf("%q is not a key of a node: nodes store results, batches, checkpoints, journals, artifacts and logs of tasks", key)
}

// parseAttempt splits <task>.<number>.<number>.
func parseAttempt(text string) (task string, first, second int32, ok bool) {
	text, last, _ := cutLast(text, ".")
	text, middle, _ := cutLast(text, ".")
	task = unsegment(text)
	a, errA := strconv.ParseUint(middle, 10, 31)
	b, errB := strconv.ParseUint(last, 10, 31)
	return task, int32(a), int32(b), errA == nil && errB == nil && nodeTask().MatchString(task)
}

// batchOfNode returns the task of the batch with a key. rest is the part of the key after batches/.
func batchOfNode(home, key, rest string) (task string, ok bool) {
	part, file, _ := strings.Cut(rest, "/")
	task = unsegment(part)
	numbers := strings.Split(file, ".")
	if len(numbers) != 4 || !nodeTask().MatchString(task) {
		return "", false
	}
	first, last, isExtent := parseExtent(numbers[1])
	generation, errG := strconv.ParseUint(numbers[0], 10, 31)
	attempt, errA := strconv.ParseUint(numbers[2], 10, 31)
	claim, errC := strconv.ParseUint(numbers[3], 10, 31)
	return task, isExtent && errG == nil && errA == nil && errC == nil &&
		key == Batch(home, int32(generation), BatchName(task, first, last), int32(attempt), int32(claim))
}

// artifactOfNode returns the task of the artifact with a key. rest is the part of the key after artifacts/.
func artifactOfNode(home, key, rest string) (task string, ok bool) {
	rest, name, _ := cutLast(rest, ".")
	task, generation, claim, ok := parseAttempt(rest)
	return task, ok && nodeTask().MatchString(name) && key == Artifact(home, generation, task, claim, name)
}

// isPrinter reports whether a name can be that of a log: a task, an instance or a batch.
func isPrinter(name string) bool {
	task, _, _, _ := ParseBatchName(name)
	return nodeTask().MatchString(task)
}

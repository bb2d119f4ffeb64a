package storekey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The keys of a run, all of them below runs/<run>/<chain>/. The chain is that of the
// executions of the run in Temporal, so that a run reads nothing of another one of its id,
// or of what it did before it was reset; names.Home puts the two together.
//
//	status/<generation>                          its status when it had ended
//	carry/<generation>.<execution>.<n>           n-th part of the state left by an execution
//	results/<task>.<generation>.<attempt>        result record of an attempt
//	batches/<task>/<generation>.<first>-<last>.<attempt>.<claim>
//	                                             results of the instances of a batch
//	checkpoints/<task>.<generation>.<claim>      what a dispatch left for the next
//	journal/<task>.<generation>.<claim>/<n>      n-th entry of the journal of a dispatch, which an agent continues from
//	journal/<task>.<generation>.<claim>/from     the journal that it continues
//	journal/<task>.<generation>.<claim>/archive  size and place of its newest archive, whose parts lie beside it
//	logs/<task>/<generation>.<attempt>.<claim>.<chunk>
//	                                             a chunk of what a dispatch printed
//	logs/<task>.batches/<first>-<last>.<generation>.<attempt>.<claim>.<chunk>
//	                                             likewise, of a batch
//	events/<generation>.<n>                      n-th stored part of its events
//	purged/<generation>.<task>                   mark of a dead letter that is off the list
//	shared/<what>.<generation>.<version>         an object that many requests carry, such as the context
//	input/<digest>                               what a child workflow was started with, if that is large
//	ancestors/<digest>                           what the ancestors of a task have left, if that is large
//	lists/<digest>                               a list that tasks read, named by what it holds
//	reused/<digest>                              copy of a result that the run took over from the cache
//	probe                                        what Probe writes
//
// and below runs/<run>/, for all chains of a run:
//
//	grants/<node>/<chain>/<task>                 a node was given the task, or instances of it
//
// Results that later runs may reuse lie outside of them:
//
//	cached/<workflow>/<task>/<digest>            the newest result under a key
//
// and the ids of runs that were submitted under idempotency keys:
//
//	requests/<digest>
//
// and what the gateways of a deployment share and serve to no node:
//
//	auth/tokens/<id>                             a token, with the digest of its secret
//	auth/uses/<id>                               when a token was used last
//	audit/<day>/<time>-<gateway>-<number>        a v1.AuditPart
//	auth/signing-key                             key of the signatures of decisions
//	secrets/<name in hex>                        a secret, encrypted
//
// Run ids hold no slash, task names neither slash nor dot. An instance such as
// each[3] stands in a key as each.3. Results lie side by
// side because in a folder a directory for each costs as much as the record;
// logs have a directory a task, or instance, because they are listed by it. Those of
// batches are in one directory a task, in which an instance is looked for.

// RunsPrefix begins the keys of all runs.
const RunsPrefix = "runs/"

// RunPrefix is how all keys of a run start, or those of a home of it.
func RunPrefix(home string) string { return RunsPrefix + home + "/" }

// Status is the key of a v1.StatusResponse: the status that a run ended with.
func Status(home string, generation int32) string {
	return RunPrefix(home) + "status/" + itoa(generation)
}

// Probe is the key of the value that Probe writes.
func Probe(home string) string { return RunPrefix(home) + "probe" }

// Carry is the key of a v1.RunCarry: the n-th part of the state that an execution of
// a run left to the next, or of the one that it began with.
func Carry(home string, generation int32, execution string, n int32) string {
	return RunPrefix(home) + "carry/" + itoa(generation) + "." + execution + "." + itoa(n)
}

// Result is the key of the result record of an attempt.
func Result(home string, generation int32, task string, attempt int32) string {
	return RunPrefix(home) + "results/" + segment(task) + "." + itoa(generation) + "." + itoa(attempt)
}

// ParseResult returns the attempt whose result record lies under a key, and its generation.
func ParseResult(key string) (generation, attempt int32, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) < 4 || parts[len(parts)-2] != "results" {
		return 0, 0, false
	}
	_, generation, attempt, ok = parseAttempt(parts[len(parts)-1])
	return generation, attempt, ok
}

// Batch is the key of a v1.ExecuteResponse with the results of the instances of a
// batch: one that BatchName has named, by the attempt and the claim of its first instance.
func Batch(home string, generation int32, batch string, attempt, claim int32) string {
	task, first, last, _ := ParseBatchName(batch)
	return BatchesPrefix(home, generation, task) + extent(first, last) + "." + itoa(attempt) + "." + itoa(claim)
}

// BatchesPrefix is how the keys of all batches of a task in a generation start.
func BatchesPrefix(home string, generation int32, task string) string {
	return RunPrefix(home) + "batches/" + segment(task) + "/" + itoa(generation) + "."
}

// ParseBatch returns which instances the record under a key that starts with
// BatchesPrefix may hold.
func ParseBatch(key string) (first, last int, ok bool) {
	parts := strings.Split(key[strings.LastIndexByte(key, '/')+1:], ".")
	if len(parts) != 4 {
		return 0, 0, false
	}
	return parseExtent(parts[1])
}

// Checkpoint is the key of the checkpoint that a dispatch of a task has left.
func Checkpoint(home string, generation int32, task string, claim int32) string {
	return RunPrefix(home) + "checkpoints/" + segment(task) + "." + itoa(generation) + "." + itoa(claim)
}

// Shared is the key of an object that many requests of a run carry by reference,
// in one of its versions.
func Shared(home string, generation int32, what string, version int64) string {
	return RunPrefix(home) + "shared/" + what + "." + itoa(generation) + "." + strconv.FormatInt(version, 10)
}

// LogsPrefix is how the keys of all logs of a task, an instance or a batch start;
// those of the instances of a task are not among those of the task.
func LogsPrefix(home, task string) string {
	if name, first, last, ok := ParseBatchName(task); ok {
		return BatchLogsPrefix(home, name) + extent(first, last) + "."
	}
	return RunPrefix(home) + "logs/" + segment(task) + "/"
}

// BatchLogsPrefix is how the keys of the logs of all batches of a task start.
func BatchLogsPrefix(home, task string) string {
	return RunPrefix(home) + "logs/" + segment(task) + batchesSuffix + "/"
}

// InstanceLogsPrefix is how the keys of the logs of all instances and batches of a
// task start. So may start those of another task; ParseLogChunk separates them.
func InstanceLogsPrefix(home, task string) string {
	return RunPrefix(home) + "logs/" + segment(task) + "."
}

// LogPrefix is how the keys of the log of one dispatch of a task start.
func LogPrefix(home string, generation int32, task string, attempt, claim int32) string {
	return LogsPrefix(home, task) + itoa(generation) + "." + itoa(attempt) + "." + itoa(claim) + "."
}

// LogChunk is the key of a chunk, numbered from 0, of the log of a dispatch.
func LogChunk(home string, generation int32, task string, attempt, claim int32, chunk int64) string {
	// Eight digits keep the chunks in order for whoever looks at a folder.
	return LogPrefix(home, generation, task, attempt, claim) + fmt.Sprintf("%08d", chunk)
}

// Events is the key of a v1.EventPart: the n-th part, from 0, of the events
// of a generation of a run.
func Events(home string, generation, n int32) string {
	// Six digits keep the parts in order in a list.
	return EventsPrefix(home, generation) + fmt.Sprintf("%06d", n)
}

// EventsPrefix is how the keys of the events of a generation start.
func EventsPrefix(home string, generation int32) string {
	return RunPrefix(home) + "events/" + itoa(generation) + "."
}

// Purged is the key of the mark that takes the dead letter
// of a task in a generation off the list.
func Purged(home string, generation int32, task string) string {
	return RunPrefix(home) + "purged/" + itoa(generation) + "." + segment(task)
}

// Input is the key of a v1.RunInput that a child workflow was started with; Digest of its bytes names it.
func Input(home, digest string) string { return RunPrefix(home) + "input/" + digest }

// Ancestors is the key of a v1.Ancestors that requests of a run name; Digest of its bytes names it.
func Ancestors(home, digest string) string { return RunPrefix(home) + "ancestors/" + digest }

// List is the key of a v1.ItemList that a run keeps; Digest of its bytes names it,
// so that storing it again changes nothing.
func List(home, digest string) string { return RunPrefix(home) + "lists/" + digest }

// Reused is the key of a v1.ExecuteResponse that a run has taken over from another,
// named by Digest of its bytes.
func Reused(home, digest string) string { return RunPrefix(home) + "reused/" + digest }

// grantsFolder stands where the keys of a run have the chain, which is an id of Temporal's.
const grantsFolder = "grants"

// Grant is the key of the mark that a node was given a task of a chain of a run, or instances of the task.
func Grant(run, chain, node, task string) string {
	return GrantsPrefix(run, node) + chain + "/" + segment(task)
}

// GrantsPrefix is how the keys of all grants of a node in a run start.
func GrantsPrefix(run, node string) string { return RunPrefix(run) + grantsFolder + "/" + node + "/" }

// IsGrant reports whether a key of a run, or the prefix of one, is among those of grants.
func IsGrant(key string) bool {
	_, rest, err := SplitRun(key)
	return err == nil && (rest == grantsFolder || strings.HasPrefix(rest, grantsFolder+"/"))
}

// CachedPrefix begins the keys of results that later runs may reuse.
const CachedPrefix = "cached/"

// Cached is the key of a v1.CachedResult of a task that runs of a workflow may
// reuse; key is the value of the cache's key there.
func Cached(workflow, task, key string) string {
	// The digest keeps names apart that differ only in case, also in a folder whose file system ignores that. No name
	// holds a slash.
	return CachedPrefix + workflow + "/" + segment(task) + "/" + Digest([]byte(workflow+"/"+task+"/"+key))
}

// RequestsPrefix begins the keys of ids under idempotency keys.
const RequestsPrefix = "requests/"

// Request is the key of the run that was submitted first under an idempotency key.
func Request(key string) string { return RequestsPrefix + Digest([]byte(key)) }

// TokensPrefix begins the keys of all tokens.
const TokensPrefix = "auth/tokens/"

// Token is the key of a v1.TokenRecord.
func Token(id string) string { return TokensPrefix + id }

// SigningKey is the key of the key of package signing.
const SigningKey = "auth/signing-key"

// HostKey is the key of the private key by which SSH clients know the gateways of the deployment, in PEM.
const HostKey = "auth/ssh-host-key"

// KeysPrefix begins the keys of all v1.KeyRecords.
const KeysPrefix = "auth/keys/"

// KeysOf begins the keys of the v1.KeyRecords of one public key, by its SHA-256. Several names may have the same.
func KeysOf(sha256 [32]byte) string { return KeysPrefix + hex.EncodeToString(sha256[:]) + "/" }

// Key is the key of the v1.KeyRecord of a public key that a name has.
func Key(sha256 [32]byte, name string) string {
	return KeysOf(sha256) + "n" + hex.EncodeToString([]byte(name))
}

// Link returns the key under which the gateway that a node is connected to for sessions is recorded.
func Link(node string) string { return "links/" + node }

// TokenUse is the key of the time when a token was used last, in RFC 3339.
func TokenUse(id string) string { return "auth/uses/" + id }

// SecretsPrefix begins the keys of all secrets.
const SecretsPrefix = "secrets/"

// Secret is the key of a v1.SecretRecord. Names of secrets may differ only in case, and end like temporary files.
func Secret(name string) string { return SecretsPrefix + hex.EncodeToString([]byte(name)) }

// prefixesOfNoRun begin the keys that a folder keeps as files: those of no run, and of no cached result.
var prefixesOfNoRun = []string{RequestsPrefix, "auth/", AuditPrefix, SecretsPrefix, EnvironmentsPrefix}

// AuditPrefix begins the keys of the audit.
const AuditPrefix = "audit/"

// AuditDay is how the keys of the audit of a day start, in UTC.
func AuditDay(day time.Time) string { return AuditPrefix + day.UTC().Format(time.DateOnly) + "/" }

// AuditTime is how the keys of values of the audit start whose first entries are of a time. They are in the order of time.
func AuditTime(at time.Time) string { return AuditDay(at) + at.UTC().Format("150405.000000000") }

// Audit is the key of a v1.AuditPart whose first entry, with a number of a gateway, is of a time.
func Audit(at time.Time, gateway string, number int64) string {
	return AuditTime(at) + "-" + gateway + "-" + strconv.FormatInt(number, 10)
}

// ParseAuditDay returns the day of a key of the audit, or false for any other key.
func ParseAuditDay(key string) (day time.Time, ok bool) {
	rest, ok := strings.CutPrefix(key, AuditPrefix)
	text, _, found := strings.Cut(rest, "/")
	day, err := time.Parse(time.DateOnly, text)
	return day, ok && found && err == nil
}

// IsOfNoRun reports whether a key is one that belongs to no run.
func IsOfNoRun(key string) bool {
	return slices.ContainsFunc(prefixesOfNoRun, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Digest names bytes by what they are.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// LogOf names the dispatch of a log.
type LogOf struct {
	Home           string
	Generation     int32
	Task           string // or instance, or batch
	Attempt, Claim int32
}

// ParseLogChunk is the inverse of LogChunk.
func ParseLogChunk(key string) (of LogOf, chunk int64, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) < 5 {
		return LogOf{}, 0, false
	}
	of.Home, parts = strings.Join(parts[1:len(parts)-3], "/"), parts[len(parts)-2:]
	numbers := strings.Split(parts[1], ".")
	of.Task = unsegment(parts[0])
	if name, found := strings.CutSuffix(parts[0], batchesSuffix); found {
		first, last, _ := parseExtent(numbers[0])
		of.Task, numbers = BatchName(unsegment(name), first, last), numbers[1:]
	}
	if len(numbers) != 4 {
		return LogOf{}, 0, false
	}
	g, errG := strconv.ParseUint(numbers[0], 10, 31)
	a, errA := strconv.ParseUint(numbers[1], 10, 31)
	c, errC := strconv.ParseUint(numbers[2], 10, 31)
	n, errN := strconv.ParseUint(numbers[3], 10, 63)
	of.Generation, of.Attempt, of.Claim, chunk = int32(g), int32(a), int32(c), int64(n)
	if errG != nil || errA != nil || errC != nil || errN != nil || key != LogChunk(of.Home, of.Generation, of.Task, of.Attempt, of.Claim, chunk) {
		return LogOf{}, 0, false
	}
	return of, chunk, true
}

// A bucket takes "__0x" in a key for an escape sequence of its own,
// and then does not find in a list what it has stored. A task may be called
// that; none has a dot in its name.
const (
	escapeLike = "__0x"
	defused    = "__.0x"
)

// segment is a task or an instance as a part of a key.
func segment(name string) string {
	task, index, instance := ParseInstanceName(name)
	task = strings.ReplaceAll(task, escapeLike, defused)
	if instance {
		return task + "." + strconv.Itoa(index)
	}
	return task
}

func unsegment(part string) string {
	task, number, _ := cutLast(part, ".")
	index, ok := parseNumber(number)
	if !ok {
		task = part
	}
	task = strings.ReplaceAll(task, defused, escapeLike)
	if ok {
		return task + "[" + strconv.Itoa(index) + "]"
	}
	return task
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

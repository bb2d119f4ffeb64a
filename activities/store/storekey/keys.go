package storekey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The keys of a run are below runs/<run>/<chain>/. The chain is that of the run's executions in Temporal, so that a run
// reads nothing of another run with its id, or of its own past before a reset. names.Home combines the two.
//
//	status/<generation>                          the final status
//	state/<generation>.<execution>.<n>           n-th part of the state that an execution left
//	results/<task>.<generation>.<attempt>        result record of an attempt
//	batches/<task>/<generation>.<first>-<last>.<attempt>.<claim>
//	                                             results of the instances of a batch
//	checkpoints/<task>.<generation>.<claim>      what a dispatch left for the next one
//	journal/<task>.<generation>.<claim>/<n>      n-th entry of the journal of a dispatch, from which an agent continues
//	journal/<task>.<generation>.<claim>/from     the journal that this one continues
//	journal/<task>.<generation>.<claim>/archive  size and place of the newest archive, whose parts are next to it
//	logs/<task>/<generation>.<attempt>.<claim>.<chunk>
//	                                             a chunk of the output of a dispatch
//	logs/<task>.batches/<first>-<last>.<generation>.<attempt>.<claim>.<chunk>
//	                                             a chunk of the output of a batch
//	events/<generation>.<n>                      n-th stored part of the events
//	notified/<generation>.<message>              what became of a message about an event
//	purged/<generation>.<task>                   mark of a dead letter that is off the list
//	shared/<what>.<generation>.<version>         an object that many requests carry, such as the context
//	input/<digest>                               the input of a child workflow, if it is large
//	ancestors/<digest>                           what the ancestors of a task have left, if it is large
//	lists/<digest>                               a list that tasks read, named by its content
//	reused/<digest>                              copy of a result that the run took from the cache
//	artifacts/<task>.<generation>.<claim>.<name> a v1.ArtifactManifest: an artifact that a dispatch has left
//	drafts/<task>.<generation>.<claim>.<name>.<n>
//	                                             a v1.ArtifactDraft: chunks on which the upload of an artifact relies
//	probe                                        the value that Probe writes
//
// These keys are below runs/<run>/, for all chains of a run:
//
//	grants/<node>/<chain>/<task>                 a node was given the task, or instances of it
//	source                                       a v1.ArtifactManifest: the files with which tasks of the run start
//
// Results that later runs may reuse are outside of runs:
//
//	cached/<workflow>/<task>/<digest>            the newest result under a key
//
// So are the ids of runs that were submitted under idempotency keys:
//
//	requests/<digest>
//
// So are the contents of artifacts, which all runs share. The digest is not that of the bytes alone, so that a published
// checksum of a file gives no access to it:
//
//	chunks/<two digits>/<digest>
//
// The files of runs that are to be submitted have keys with a UUID, for a day:
//
//	sources/<id>/files                           a v1.ArtifactManifest
//	sources/<id>/drafts/<n>                      a v1.ArtifactDraft
//
// The gateways of a deployment share the following keys and do not serve them to nodes:
//
//	auth/tokens/<id>                             a token, with the digest of its secret
//	auth/uses/<id>                               when a token was last used
//	audit/<day>/<time>-<gateway>-<number>        a v1.AuditPart
//	auth/signing-key                             the key that signs decisions
//	secrets/<name in hex>                        a secret, encrypted
//	notifications/<name in hex>                  a target of notifications
//	outbox/<time>-<digest>                       an event that waits for the start of its Notify workflow
//
// Run ids contain no slash, and task names neither slash nor dot. An instance such as each[3] appears in a key as each.3.
// Results share one directory, because in a folder a directory for each costs as much as the record. Logs have one
// directory per task or instance, because they are listed by it. The logs of batches have one directory per task, which
// is searched for an instance.

// RunsPrefix begins the keys of all runs.
const RunsPrefix = "runs/"

// RunPrefix returns the prefix of all keys of a run or of one of its homes.
func RunPrefix(home string) string { return RunsPrefix + home + "/" }

// Status returns the key of a run's final status, a historyv1.StatusResponse.
func Status(home string, generation int32) string {
	return RunPrefix(home) + "status/" + itoa(generation)
}

// Probe returns the key of the value that Store.Probe writes.
func Probe(home string) string { return RunPrefix(home) + "probe" }

// RunState returns the key of a historyv1.RunState: the n-th part of the state that an execution of a run left to the next one, or
// of the state that it began with.
func RunState(home string, generation int32, execution string, n int32) string {
	return RunPrefix(home) + "state/" + itoa(generation) + "." + execution + "." + itoa(n)
}

// Result returns the key of the result record of an attempt.
func Result(home string, generation int32, task string, attempt int32) string {
	return RunPrefix(home) + "results/" + segment(task) + "." + itoa(generation) + "." + itoa(attempt)
}

// ParseResult returns the generation and the attempt of the result record under a key.
func ParseResult(key string) (generation, attempt int32, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) < 4 || parts[len(parts)-2] != "results" {
		return 0, 0, false
	}
	_, generation, attempt, ok = parseAttempt(parts[len(parts)-1])
	return generation, attempt, ok
}

// Batch returns the key of a historyv1.ExecuteResponse with the results of the instances of a batch. The batch has a name from
// BatchName, and the attempt and claim of its first instance.
func Batch(home string, generation int32, batch string, attempt, claim int32) string {
	task, first, last, _ := ParseBatchName(batch)
	return BatchesPrefix(home, generation, task) + extent(first, last) + "." + itoa(attempt) + "." + itoa(claim)
}

// BatchesPrefix returns the prefix of the keys of all batches of a task in a generation.
func BatchesPrefix(home string, generation int32, task string) string {
	return RunPrefix(home) + "batches/" + segment(task) + "/" + itoa(generation) + "."
}

// ParseBatch returns which instances the record under a key may hold. The key starts with BatchesPrefix.
func ParseBatch(key string) (first, last int, ok bool) {
	parts := strings.Split(key[strings.LastIndexByte(key, '/')+1:], ".")
	if len(parts) != 4 {
		return 0, 0, false
	}
	return parseExtent(parts[1])
}

// Checkpoint returns the key of the checkpoint that a dispatch of a task has left.
func Checkpoint(home string, generation int32, task string, claim int32) string {
	return RunPrefix(home) + "checkpoints/" + segment(task) + "." + itoa(generation) + "." + itoa(claim)
}

// Shared returns the key of a version of an object that many requests of a run carry by reference.
func Shared(home string, generation int32, what string, version int64) string {
	return RunPrefix(home) + "shared/" + what + "." + itoa(generation) + "." + strconv.FormatInt(version, 10)
}

// LogsPrefix returns the prefix of the keys of all logs of a task, an instance or a batch. The logs of a task do not
// include those of its instances.
func LogsPrefix(home, task string) string {
	if name, first, last, ok := ParseBatchName(task); ok {
		return BatchLogsPrefix(home, name) + extent(first, last) + "."
	}
	return RunPrefix(home) + "logs/" + segment(task) + "/"
}

// BatchLogsPrefix returns the prefix of the keys of the logs of all batches of a task.
func BatchLogsPrefix(home, task string) string {
	return RunPrefix(home) + "logs/" + segment(task) + batchesSuffix + "/"
}

// InstanceLogsPrefix returns the prefix of the keys of the logs of all instances and batches of a task. Keys of another
// task may start with it, too; ParseLogChunk tells them apart.
func InstanceLogsPrefix(home, task string) string {
	return RunPrefix(home) + "logs/" + segment(task) + "."
}

// LogPrefix returns the prefix of the keys of the log of one dispatch of a task.
func LogPrefix(home string, generation int32, task string, attempt, claim int32) string {
	return LogsPrefix(home, task) + itoa(generation) + "." + itoa(attempt) + "." + itoa(claim) + "."
}

// LogChunk returns the key of a chunk, numbered from 0, of the log of a dispatch.
func LogChunk(home string, generation int32, task string, attempt, claim int32, chunk int64) string {
	// Eight digits keep the chunks in order when a person lists a folder.
	return LogPrefix(home, generation, task, attempt, claim) + fmt.Sprintf("%08d", chunk)
}

// Events returns the key of a historyv1.EventSlice: the n-th part, from 0, of the events of a run's generation.
func Events(home string, generation, n int32) string {
	// Six digits keep the parts in order in a list.
	return EventsPrefix(home, generation) + fmt.Sprintf("%06d", n)
}

// EventsPrefix returns the prefix of the keys of a generation's events.
func EventsPrefix(home string, generation int32) string {
	return RunPrefix(home) + "events/" + itoa(generation) + "."
}

// Artifact returns the key of the v1.ArtifactManifest of an artifact that a dispatch of a task has left.
func Artifact(home string, generation int32, task string, claim int32, name string) string {
	return RunPrefix(home) + artifactsFolder + "/" + segment(task) + "." + itoa(generation) + "." + itoa(claim) + "." + name
}

// ArtifactsPrefix returns the prefix of the keys of all artifacts of a run.
func ArtifactsPrefix(home string) string { return RunPrefix(home) + artifactsFolder + "/" }

// AdoptedArtifact returns the key of the v1.ArtifactManifest of an artifact that a run has taken from the cache, given the key that
// the artifact has in its own run. No dispatch has the claim 0.
func AdoptedArtifact(home, task, own string) string {
	return Artifact(home, 0, task, 0, Digest([]byte(own))[:32])
}

// Draft returns the key of the n-th v1.ArtifactDraft, from 0, of an artifact with a key from Artifact or SourceUpload.
func Draft(artifact string, n int) string {
	if strings.HasPrefix(artifact, SourcesPrefix) {
		return strings.TrimSuffix(artifact, "files") + draftsFolder + "/" + strconv.Itoa(n)
	}
	run, rest, _ := SplitRun(artifact)
	chain, rest, _ := strings.Cut(rest, "/"+artifactsFolder+"/")
	return RunPrefix(run+"/"+chain) + draftsFolder + "/" + rest + "." + strconv.Itoa(n)
}

// SourcesPrefix begins the keys of the files of runs that are to be submitted.
const SourcesPrefix = "sources/"

// SourceUpload returns the key of the v1.ArtifactManifest of the files of a run that is to be submitted, given a UUID.
func SourceUpload(id string) string { return SourcesPrefix + id + "/files" }

// Source returns the key of the v1.ArtifactManifest of the files with which the tasks of a run start.
func Source(run string) string { return RunPrefix(run) + "source" }

// ParseSource reports whether a key is one of SourceUpload, or that of a draft of it.
func ParseSource(key string) (isUpload, isDraft bool) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(key, SourcesPrefix), "/")
	if uuid.Validate(id) != nil {
		return false, false
	}
	n, isNumber := parseNumber(strings.TrimPrefix(rest, draftsFolder+"/"))
	return key == SourceUpload(id), isNumber && key == Draft(SourceUpload(id), n)
}

// The folders of the manifests of artifacts and of their drafts.
const artifactsFolder, draftsFolder = "artifacts", "drafts"

// ChunksPrefix begins the keys of the contents of artifacts.
const ChunksPrefix = "chunks/"

// Chunk returns the key of a chunk of artifacts, given its digest.
func Chunk(digest []byte) string {
	name := hex.EncodeToString(digest)
	return ChunksPrefix + name[:2] + "/" + name
}

// ParseChunk returns the digest in a key of Chunk, or false for any other key.
func ParseChunk(key string) (digest []byte, ok bool) {
	digest, err := hex.DecodeString(key[strings.LastIndexByte(key, '/')+1:])
	return digest, err == nil && len(digest) == sha256.Size && key == Chunk(digest)
}

// Purged returns the key of the mark that takes the dead letter of a task in a generation off the list.
func Purged(home string, generation int32, task string) string {
	return RunPrefix(home) + "purged/" + itoa(generation) + "." + segment(task)
}

// Input returns the key of a historyv1.RunInput with which a child workflow was started. digest is the Digest of its bytes.
func Input(home, digest string) string { return RunPrefix(home) + "input/" + digest }

// Ancestors returns the key of a historyv1.Ancestors that requests of a run refer to. digest is the Digest of its bytes.
func Ancestors(home, digest string) string { return RunPrefix(home) + "ancestors/" + digest }

// List returns the key of a historyv1.ItemList of a run. digest is the Digest of its bytes, so that storing it twice is
// idempotent.
func List(home, digest string) string { return RunPrefix(home) + "lists/" + digest }

// Reused returns the key of a historyv1.ExecuteResponse that a run has taken from the cache. digest is the Digest of its bytes.
func Reused(home, digest string) string { return RunPrefix(home) + "reused/" + digest }

// grantsFolder is in the place of a chain in a run's keys. A chain is a run id of Temporal.
const grantsFolder = "grants"

// Grant returns the key of the mark that a node was given a task of a chain of a run, or instances of the task.
func Grant(run, chain, node, task string) string {
	return GrantsPrefix(run, node) + chain + "/" + segment(task)
}

// GrantsPrefix returns the prefix of the keys of all grants of a node in a run.
func GrantsPrefix(run, node string) string { return RunPrefix(run) + grantsFolder + "/" + node + "/" }

// IsGrant reports whether a key of a run, or a prefix of one, is in the folder of grants.
func IsGrant(key string) bool {
	_, rest, err := SplitRun(key)
	return err == nil && (rest == grantsFolder || strings.HasPrefix(rest, grantsFolder+"/"))
}

// CachedPrefix begins the keys of results that later runs may reuse.
const CachedPrefix = "cached/"

// Cached returns the key of a historyv1.CachedResult of a task that runs of a workflow may reuse. key is the evaluated cache
// key.
func Cached(workflow, task, key string) string {
	// The digest tells names apart that differ only in case, even if the file system of a folder ignores case. No name
	// contains a slash.
	return CachedPrefix + workflow + "/" + segment(task) + "/" + Digest([]byte(workflow+"/"+task+"/"+key))
}

// RequestsPrefix begins the keys of run ids under idempotency keys.
const RequestsPrefix = "requests/"

// Request returns the key of the run that was first submitted under an idempotency key.
func Request(key string) string { return RequestsPrefix + Digest([]byte(key)) }

// TokensPrefix begins the keys of all tokens.
const TokensPrefix = "auth/tokens/"

// Token returns the key of a v1.TokenRecord.
func Token(id string) string { return TokensPrefix + id }

// SigningKey is the key of the signing key of package signing.
const SigningKey = "auth/signing-key"

// HostKey is the key of the SSH private key, in PEM, by which clients recognise the gateways of the deployment.
const HostKey = "auth/ssh-host-key"

// KeysPrefix begins the keys of all v1.KeyRecords.
const KeysPrefix = "auth/keys/"

// KeysOf returns the prefix of the keys of the v1.KeyRecords of one public key, given its SHA-256. Several names may have
// the same public key.
func KeysOf(sha256 [32]byte) string { return KeysPrefix + hex.EncodeToString(sha256[:]) + "/" }

// Key returns the key of the v1.KeyRecord of a name's public key.
func Key(sha256 [32]byte, name string) string {
	return KeysOf(sha256) + "n" + hex.EncodeToString([]byte(name))
}

// Link returns the key of the record of the gateway that a node is connected to for sessions.
func Link(node string) string { return "links/" + node }

// TokenUse returns the key of the time when a token was last used, in RFC 3339.
func TokenUse(id string) string { return "auth/uses/" + id }

// SecretsPrefix begins the keys of all secrets.
const SecretsPrefix = "secrets/"

// Secret returns the key of a v1.SecretRecord. Names are encoded, because they may differ only in case and end like
// temporary files.
func Secret(name string) string { return SecretsPrefix + hex.EncodeToString([]byte(name)) }

// SecretName returns the name of the secret that a key of Secret stands for. Any other key is returned unchanged.
func SecretName(key string) string {
	name, err := hex.DecodeString(strings.TrimPrefix(key, SecretsPrefix))
	if err != nil {
		return key
	}
	return string(name)
}

// NotificationsPrefix begins the keys of all targets of notifications.
const NotificationsPrefix = "notifications/"

// NotificationTarget returns the key of a v1.NotificationTargetRecord. Names are encoded like those of secrets.
func NotificationTarget(name string) string {
	return NotificationsPrefix + hex.EncodeToString([]byte(name))
}

// NotificationTargetName returns the name of the target that a key of NotificationTarget stands for. Any other key is returned
// unchanged.
func NotificationTargetName(key string) string {
	name, err := hex.DecodeString(strings.TrimPrefix(key, NotificationsPrefix))
	if err != nil {
		return key
	}
	return string(name)
}

// OwnersPrefix begins the keys of the terms of owners.
const OwnersPrefix = "owners/"

// Owner returns the key of a v1.Owner with its terms. Names are encoded like those of secrets.
func Owner(name string) string { return OwnersPrefix + hex.EncodeToString([]byte(name)) }

// OwnerName returns the name of the owner that a key of Owner stands for. Any other key is returned unchanged.
func OwnerName(key string) string {
	name, err := hex.DecodeString(strings.TrimPrefix(key, OwnersPrefix))
	if err != nil {
		return key
	}
	return string(name)
}

// FleetUse is the key of a v1.FleetUse, which the leader of the placement queue writes.
const FleetUse = "fleet/use"

// OutboxPrefix begins the keys of all events in the outbox.
const OutboxPrefix = "outbox/"

// Outbox returns the key of a historyv1.NotifyInput until the workflow that tells people about it has been started. id is the ID of
// that workflow. Keys sort by time.
func Outbox(at time.Time, id string) string {
	return OutboxPrefix + at.UTC().Format("20060102T150405.000000000") + "-" + Digest([]byte(id))
}

// prefixesOfNoRun begin the keys outside of runs, except those of cached results. A folder keeps their values as files.
var prefixesOfNoRun = []string{RequestsPrefix, "auth/", AuditPrefix, SecretsPrefix, NotificationsPrefix, OwnersPrefix, FleetUse, OutboxPrefix, EnvironmentsPrefix, CollectorsPrefix, ChunksPrefix, SourcesPrefix}

// CollectorsPrefix begins the keys of the signs of life of the processes that remove old values.
const CollectorsPrefix = "collectors/"

// AuditPrefix begins the keys of the audit.
const AuditPrefix = "audit/"

// AuditDay returns the prefix of the keys of a day's audit, in UTC.
func AuditDay(day time.Time) string { return AuditPrefix + day.UTC().Format(time.DateOnly) + "/" }

// AuditTime returns the prefix of the keys of audit values whose first entry has a time. These prefixes sort by time.
func AuditTime(at time.Time) string { return AuditDay(at) + at.UTC().Format("150405.000000000") }

// Audit returns the key of a v1.AuditPart, given the time of its first entry, its gateway, and the number of that entry
// at the gateway.
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

// IsOfNoRun reports whether a key belongs to no run and is kept as a file of its own.
func IsOfNoRun(key string) bool {
	return slices.ContainsFunc(prefixesOfNoRun, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// Digest returns a name for bytes that depends only on their content.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Notified returns the key of a historyv1.EventSlice: what became of a message about an event in a generation of a run. message is
// the idempotency key of the message.
func Notified(home string, generation int32, message string) string {
	return NotifiedPrefix(home, generation) + message
}

// NotifiedPrefix returns the prefix of the keys of Notified of a generation.
func NotifiedPrefix(home string, generation int32) string {
	return RunPrefix(home) + "notified/" + itoa(generation) + "."
}

// LogOf identifies the dispatch of a log.
type LogOf struct {
	Home           string
	Generation     int32
	Task           string // or instance, or batch
	Attempt, Claim int32
}

// ParseLogChunk returns the dispatch and the number in a key that LogChunk has made, or false for any other key.
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

// A bucket treats "__0x" in a key as an escape sequence of its own, and then its lists do not return the key. A task name
// may contain that sequence, but never a dot.
const (
	escapeLike = "__0x"
	defused    = "__.0x"
)

// segment returns the form of a task or instance in a key.
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

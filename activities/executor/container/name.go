package container

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"switchyard/activities/executor"
)

// Labels of the containers of attempts.
const (
	labelID      = "switchyard.id"
	labelRun     = "switchyard.run"
	labelChain   = "switchyard.chain"
	labelTask    = "switchyard.task"
	labelIndex   = "switchyard.index"
	labelAttempt = "switchyard.attempt"
	labelClaim   = "switchyard.claim"
	labelGen     = "switchyard.generation"
	labelNode    = "switchyard.node"
	labelFleet   = "switchyard.fleet"
	labelImage   = "switchyard.image"
	labelKeep    = "switchyard.keep"
	labelType    = "switchyard.type"
	labelAtHome  = "switchyard.at-home" // sessions start in the user's home directory
	labelMount   = "switchyard.mount"   // of a volume: its mount point

	labelPrefix = "switchyard."
)

// namePrefix is the prefix of the names of attempts' containers.
const namePrefix = "switchyard-"

// keptSuffix is appended to the name of a container that is kept for inspection.
const keptSuffix = "-kept"

// maxName bounds a container name in bytes. The engine only has the limit of a file name.
const maxName = 200

// chainLength is how many characters of a chain go into a name: the first group of a UUID.
const chainLength = 8

// Name returns the name of the container of an attempt of type "container": "switchyard-<run>-<task>-<index>-c<claim>-<chain>".
// Names of other types have the type before the run. A task that is not fanned out has index 0, and the chain is shortened.
// Characters that an engine does not accept become "-", and a name that is too long is truncated; a hash then keeps it unique.
func Name(id executor.Identity) string { return containerKind.nameOf(id) }

// nameOf returns the name of the container of a kind's attempt.
func (k Kind) nameOf(id executor.Identity) string {
	suffix := fmt.Sprintf("-%d-c%d", max(id.Index, 0), id.Claim)
	if id.Chain != "" {
		suffix += "-" + id.Chain[:min(len(id.Chain), chainLength)]
	}
	exact := k.prefix() + id.Run + "-" + id.Task
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r)) {
			return r
		}
		return '-'
	}, exact)
	if name == exact && len(name)+len(suffix) <= maxName {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(exact))
	suffix = fmt.Sprintf("-%x", sum[:6]) + suffix
	return name[:min(len(name), maxName-len(suffix))] + suffix
}

// labels returns the labels that mark the container of an attempt.
func labels(a executor.Attempt) map[string]string {
	return map[string]string{
		labelID:      a.ID,
		labelRun:     a.Identity.Run,
		labelChain:   a.Identity.Chain,
		labelTask:    a.Identity.Task,
		labelIndex:   strconv.Itoa(int(a.Identity.Index)),
		labelAttempt: strconv.Itoa(int(a.Identity.Attempt)),
		labelClaim:   strconv.Itoa(int(a.Identity.Claim)),
		labelGen:     strconv.Itoa(int(a.Identity.Generation)),
		labelNode:    a.Identity.Node,
		labelFleet:   a.Identity.Fleet,
	}
}

// identity returns the identity that labels encode, the inverse of labels. It returns false if the labels are not from Switchyard.
func identity(labels map[string]string) (id string, of executor.Identity, ok bool) {
	of = executor.Identity{Run: labels[labelRun], Chain: labels[labelChain], Task: labels[labelTask], Node: labels[labelNode], Fleet: labels[labelFleet]}
	id, ok = labels[labelID], true
	for label, to := range map[string]*int32{labelIndex: &of.Index, labelAttempt: &of.Attempt, labelClaim: &of.Claim, labelGen: &of.Generation} {
		n, err := strconv.ParseInt(labels[label], 10, 32)
		*to, ok = int32(n), ok && err == nil
	}
	return id, of, ok && id != ""
}

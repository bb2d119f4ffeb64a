package manifest

import (
	"encoding/json"
	"strconv"
	"strings"

	"switchyard/activities/executor"
	"switchyard/workflows/podspec"
)

// Labels of all objects. Their values come from LabelValue.
const (
	LabelManagedBy = podspec.ManagedBy
	LabelRun       = podspec.KeyPrefix + "run"
	LabelTask      = podspec.KeyPrefix + "task"
	LabelFleet     = podspec.KeyPrefix + "fleet"
)

// ManagedBy is the value of LabelManagedBy.
const ManagedBy = "switchyard"

// Annotations of Jobs and Secrets.
const (
	// AnnotationIdentity identifies the attempt, in the form that Identity reads.
	AnnotationIdentity = podspec.KeyPrefix + "identity"
	// AnnotationClaim names the dispatch that holds the attempt, in the form that ParseClaim reads.
	AnnotationClaim = podspec.KeyPrefix + "claim"
)

// labels returns the labels of the objects of an attempt.
func labels(id executor.Identity) map[string]string {
	set := map[string]string{LabelManagedBy: ManagedBy, LabelRun: LabelValue(id.Run), LabelTask: LabelValue(id.Task)}
	if id.Fleet != "" {
		set[LabelFleet] = LabelValue(id.Fleet)
	}
	return set
}

// identity is the JSON form of an Identity, without node and claim.
type identity struct {
	Run        string `json:"run"`
	Chain      string `json:"chain,omitempty"`
	Generation int32  `json:"generation"`
	PutBacks   int32  `json:"putBacks,omitempty"`
	Task       string `json:"task"`
	Index      int32  `json:"index"`
	Attempt    int32  `json:"attempt"`
	Fleet      string `json:"fleet,omitempty"`
}

func identityText(id executor.Identity) string {
	text, _ := json.Marshal(identity{id.Run, id.Chain, id.Generation, id.PutBacks, id.Task, id.Index, id.Attempt, id.Fleet}) // strings and numbers always encode
	return string(text)
}

// Identity returns the attempt that an object belongs to, without node and claim, or false if the annotations do not
// name one.
func Identity(annotations map[string]string) (executor.Identity, bool) {
	var id identity
	if err := json.Unmarshal([]byte(annotations[AnnotationIdentity]), &id); err != nil || id.Run == "" || id.Task == "" {
		return executor.Identity{}, false
	}
	return executor.Identity{Run: id.Run, Chain: id.Chain, Generation: id.Generation, PutBacks: id.PutBacks, Task: id.Task, Index: id.Index, Attempt: id.Attempt, Fleet: id.Fleet}, true
}

// FormatClaim returns the value of AnnotationClaim. The holder is a node and its incarnation, as in "worker-1/x7f3".
func FormatClaim(n int32, holder string) string { return strconv.Itoa(int(n)) + "/" + holder }

// ParseClaim parses the result of FormatClaim. It returns false if the text is not a claim.
func ParseClaim(text string) (n int32, holder string, ok bool) {
	number, holder, found := strings.Cut(text, "/")
	parsed, err := strconv.ParseInt(number, 10, 32)
	if err != nil || !found || holder == "" || strconv.Itoa(int(parsed)) != number {
		return 0, "", false
	}
	return int32(parsed), holder, true
}

package eventlog

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Key is a key in the data of an event. The comment of Event.data lists the keys of each event.
type Key string

// These are the keys in the data of events.
const (
	KeyBegan        Key = "began"
	KeyBy           Key = "by"
	KeyCachedFrom   Key = "cachedFrom"
	KeyContainer    Key = "container"
	KeyCostUSD      Key = "costUsd"
	KeyError        Key = "error"
	KeyExitCode     Key = "exitCode"
	KeyGeneration   Key = "generation"
	KeyGPUs         Key = "gpus"
	KeyInputTokens  Key = "inputTokens"
	KeyInstances    Key = "instances"
	KeyMessage      Key = "message"
	KeyNUMANode     Key = "numaNode"
	KeyOutputTokens Key = "outputTokens"
	KeyReason       Key = "reason"
	KeyScore        Key = "score"
	KeyState        Key = "state"
	KeyTool         Key = "tool"
	KeyTookMs       Key = "tookMs"
	KeyTurn         Key = "turn"
	KeyUntil        Key = "until"
	KeyWaitsFor     Key = "waitsFor"
	KeyWarning      Key = "warning"
)

// maxDataItems is the most items of a list in the data of an event.
const maxDataItems = 32

// Fact is one entry in the data of an event: a string, int32, float64, []int32 or []string. The log holds facts rather than
// messages, which take several times as much memory.
type Fact struct {
	key   Key
	value any
}

// Of returns a fact with the key.
func (k Key) Of(value any) Fact { return Fact{k, value} }

// bounded returns the fact with its texts and lists cut. It returns false if the fact is empty.
func (f Fact) bounded() (Fact, bool) {
	switch value := f.value.(type) {
	case string:
		return Fact{f.key, boundedText(value)}, value != ""
	case []int32:
		return Fact{f.key, value[:min(len(value), maxDataItems)]}, len(value) > 0
	case []string:
		texts := make([]string, min(len(value), maxDataItems))
		for i := range texts {
			texts[i] = boundedText(value[i])
		}
		return Fact{f.key, texts}, len(value) > 0
	}
	return f, true
}

// boundedFacts drops empty facts and cuts the values of the others to their limits.
func boundedFacts(facts []Fact) []Fact {
	var kept []Fact
	for _, f := range facts {
		if f, says := f.bounded(); says {
			kept = append(kept, f)
		}
	}
	return kept
}

// structOfFacts returns facts as a message, or nil if there are none.
func structOfFacts(facts []Fact) *structpb.Struct {
	if len(facts) == 0 {
		return nil
	}
	data := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(facts))}
	for _, f := range facts {
		data.Fields[string(f.key)] = f.message()
	}
	return data
}

func (f Fact) message() *structpb.Value {
	switch value := f.value.(type) {
	case string:
		return structpb.NewStringValue(value)
	case int32:
		return structpb.NewNumberValue(float64(value))
	case float64:
		return structpb.NewNumberValue(value)
	case []int32:
		return listValue(value, func(n int32) *structpb.Value { return structpb.NewNumberValue(float64(n)) })
	case []string:
		return listValue(value, structpb.NewStringValue)
	}
	return structpb.NewNullValue()
}

func listValue[T any](items []T, message func(T) *structpb.Value) *structpb.Value {
	values := make([]*structpb.Value, len(items))
	for i, item := range items {
		values[i] = message(item)
	}
	return structpb.NewListValue(&structpb.ListValue{Values: values})
}

// CauseFacts returns the facts for the cause of an event: its reason as a word, and a text.
func CauseFacts(reason, text string) []Fact {
	return []Fact{KeyReason.Of(reason), KeyError.Of(text)}
}

// CommandFacts returns the facts for a command: who gave it, and why.
func CommandFacts(who, why string) []Fact {
	return []Fact{KeyBy.Of(who), KeyReason.Of(why)}
}

// AgentFacts returns the facts for a turn of an agent or a call of one of its tools.
func AgentFacts(e *historyv1.AgentEvent) []Fact {
	facts := []Fact{KeyTurn.Of(e.GetTurn()), KeyTookMs.Of(float64(e.GetTookMs())), KeyTool.Of(e.GetTool()), KeyError.Of(e.GetError())}
	if e.GetAt() != nil {
		facts = append(facts, KeyBegan.Of(e.GetAt().AsTime().Format(time.RFC3339Nano)))
	}
	if e.GetInputTokens() > 0 || e.GetOutputTokens() > 0 {
		facts = append(facts, KeyInputTokens.Of(float64(e.GetInputTokens())), KeyOutputTokens.Of(float64(e.GetOutputTokens())))
	}
	if e.GetCostUsd() > 0 {
		facts = append(facts, KeyCostUSD.Of(e.GetCostUsd()))
	}
	return facts
}

// PlaceFacts returns the facts for the placement that a task has been given, or none if a is nil.
func PlaceFacts(a *historyv1.Assignment) []Fact {
	if a == nil {
		return nil
	}
	facts := []Fact{KeyScore.Of(a.GetScore()), KeyGPUs.Of(a.GetGpus())}
	if a.NumaNode != nil {
		facts = append(facts, KeyNUMANode.Of(a.GetNumaNode()))
	}
	return facts
}

// AttemptFacts returns the facts for an ended attempt, or none if end is nil.
func AttemptFacts(end *v1.Attempt) []Fact {
	facts := []Fact{KeyContainer.Of(end.GetContainer())}
	if end != nil && end.GetExitCode() >= 0 {
		facts = append(facts, KeyExitCode.Of(end.GetExitCode()))
	}
	return facts
}

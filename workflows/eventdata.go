package workflows

import (
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
)

// Keys of the data of events. The comment of Event.data says which event has which.
const (
	dataBy         = "by"
	dataCachedFrom = "cachedFrom"
	dataContainer  = "container"
	dataError      = "error"
	dataExitCode   = "exitCode"
	dataGeneration = "generation"
	dataGPUs       = "gpus"
	dataInstances  = "instances"
	dataMessage    = "message"
	dataNUMANode   = "numaNode"
	dataReason     = "reason"
	dataScore      = "score"
	dataState      = "state"
	dataUntil      = "until"
	dataWaitsFor   = "waitsFor"
)

// maxDataItems bounds a list in the data of an event.
const maxDataItems = 32

// fact is one entry of the data of an event: a string, int32, float64, []int32 or []string. It is kept in place of the
// message, which takes several times as much memory.
type fact struct {
	key   string
	value any
}

// bounded returns the fact with its texts and lists cut, and reports whether it says anything.
func (f fact) bounded() (fact, bool) {
	switch value := f.value.(type) {
	case string:
		return fact{f.key, boundedText(value)}, value != ""
	case []int32:
		return fact{f.key, value[:min(len(value), maxDataItems)]}, len(value) > 0
	case []string:
		texts := make([]string, min(len(value), maxDataItems))
		for i := range texts {
			texts[i] = boundedText(value[i])
		}
		return fact{f.key, texts}, len(value) > 0
	}
	return f, true
}

// boundedFacts returns those facts that say anything, bounded.
func boundedFacts(facts []fact) []fact {
	var kept []fact
	for _, f := range facts {
		if f, says := f.bounded(); says {
			kept = append(kept, f)
		}
	}
	return kept
}

// structOfFacts returns facts as a message, or nil if there are none.
func structOfFacts(facts []fact) *structpb.Struct {
	if len(facts) == 0 {
		return nil
	}
	data := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(facts))}
	for _, f := range facts {
		data.Fields[f.key] = f.message()
	}
	return data
}

func (f fact) message() *structpb.Value {
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

// causeFacts returns why something happened, as a word and in words.
func causeFacts(reason, text string) []fact {
	return []fact{{dataReason, reason}, {dataError, text}}
}

// commandFacts returns who steered, and why.
func commandFacts(who, why string) []fact {
	return []fact{{dataBy, who}, {dataReason, why}}
}

// placeFacts returns the place on a node that a task has been given.
func placeFacts(a *v1.Assignment) []fact {
	facts := []fact{{dataScore, a.GetScore()}, {dataGPUs, a.GetGpus()}}
	if a.NumaNode != nil {
		facts = append(facts, fact{dataNUMANode, a.GetNumaNode()})
	}
	return facts
}

// attemptFacts returns what an attempt has left behind, or nothing if end is nil.
func attemptFacts(end *v1.Attempt) []fact {
	facts := []fact{{dataContainer, end.GetContainer()}}
	if end != nil && end.GetExitCode() >= 0 {
		facts = append(facts, fact{dataExitCode, end.GetExitCode()})
	}
	return facts
}

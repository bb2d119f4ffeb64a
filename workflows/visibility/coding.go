package visibility

import (
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// typeMetadata is the metadata key under which a payload holds the type of its attribute.
const typeMetadata = "type"

// Typed returns the attributes in the form of the SDK, for starting workflows.
func (a Attributes) Typed() temporal.SearchAttributes {
	return temporal.NewSearchAttributes(a.Updates(Attributes{})...)
}

// Encode returns the attributes in the form of Temporal's API.
func (a Attributes) Encode() (*commonpb.SearchAttributes, error) {
	typed := a.Typed()
	fields := map[string]*commonpb.Payload{}
	//workflowcheck:ignore (into a map again)
	for key, value := range typed.GetUntypedValues() {
		payload, err := converter.GetDefaultDataConverter().ToPayload(value)
		if err != nil {
			return nil, fmt.Errorf("encode search attribute %s: %w", key.GetName(), err)
		}
		payload.Metadata[typeMetadata] = []byte(key.GetValueType().String())
		fields[key.GetName()] = payload
	}
	return &commonpb.SearchAttributes{IndexedFields: fields}, nil
}

// Read returns the attributes of a workflow from the form of the SDK.
func Read(s temporal.SearchAttributes) Attributes {
	var a Attributes
	a.Workflow, _ = s.GetKeyword(workflowKey) // empty if absent, like all others
	a.State, _ = s.GetKeyword(stateKey)
	a.Trigger, _ = s.GetKeyword(triggerKey)
	a.Parent, _ = s.GetKeyword(parentKey)
	a.Owner, _ = s.GetKeyword(ownerKey)
	a.Batch, _ = s.GetKeyword(batchKey)
	a.Labels, _ = s.GetKeywordList(labelsKey)
	a.Nodes, _ = s.GetKeywordList(nodesKey)
	a.Types, _ = s.GetKeywordList(typesKey)
	a.Text, _ = s.GetString(textKey)
	a.Submitted, _ = s.GetTime(submittedKey)
	a.LateSince, _ = s.GetTime(lateSinceKey)
	letters, _ := s.GetInt64(deadLettersKey)
	a.DeadLetters = int(letters)
	return a
}

// IsScheduled reports whether a schedule in Temporal has started the workflow with these attributes. The server gives the
// attribute no type, so the SDK leaves it out of the attributes that Read receives.
func IsScheduled(s *commonpb.SearchAttributes) bool {
	return s.GetIndexedFields()[scheduleAttribute] != nil
}

// Decode returns the attributes of a workflow that Temporal's API describes or lists. Unreadable ones are left out.
func Decode(s *commonpb.SearchAttributes) Attributes {
	var updates []temporal.SearchAttributeUpdate
	types := Types()
	//workflowcheck:ignore (into a map again)
	for name, payload := range s.GetIndexedFields() {
		switch types[name] {
		case enumspb.INDEXED_VALUE_TYPE_KEYWORD:
			if value, ok := decode[string](payload); ok {
				updates = append(updates, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value))
			}
		case enumspb.INDEXED_VALUE_TYPE_TEXT:
			if value, ok := decode[string](payload); ok {
				updates = append(updates, temporal.NewSearchAttributeKeyString(name).ValueSet(value))
			}
		case enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST:
			value, ok := decode[[]string](payload)
			if !ok { // some databases return a list of one item as a single value
				var one string
				one, ok = decode[string](payload)
				value = []string{one}
			}
			if ok {
				updates = append(updates, temporal.NewSearchAttributeKeyKeywordList(name).ValueSet(value))
			}
		case enumspb.INDEXED_VALUE_TYPE_INT:
			if value, ok := decode[int64](payload); ok {
				updates = append(updates, temporal.NewSearchAttributeKeyInt64(name).ValueSet(value))
			}
		case enumspb.INDEXED_VALUE_TYPE_DATETIME:
			if value, ok := decode[time.Time](payload); ok {
				updates = append(updates, temporal.NewSearchAttributeKeyTime(name).ValueSet(value))
			}
		}
	}
	return Read(temporal.NewSearchAttributes(updates...))
}

func decode[T any](payload *commonpb.Payload) (value T, ok bool) {
	return value, converter.GetDefaultDataConverter().FromPayload(payload, &value) == nil
}

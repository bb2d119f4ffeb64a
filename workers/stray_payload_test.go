package workers_test

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// strayPayload is an argument that no client of Switchyard sends.
type strayPayload struct {
	*commonpb.Payload
	// isMessage reports that a handler may accept the payload, as a message without a known field.
	isMessage bool
}

func (p strayPayload) raw() converter.RawValue { return converter.NewRawValue(p.Payload) }

// realMessages maps signals, updates and queries to their arguments. For a name that is not listed, wrong fields come
// from any of these messages.
var realMessages = map[string]proto.Message{
	names.AskSignal:             &historyv1.LockRequest{},
	names.GrantedSignal:         &historyv1.Granted{},
	names.PartitionReportSignal: &historyv1.PartitionReport{},
	names.OrderSignal:           &historyv1.PartitionOrder{},
	names.ContextSignal:         &historyv1.ContextAnswer{},
	names.RetryUpdate:           &historyv1.RetryTaskRequest{},
	names.PauseUpdate:           &historyv1.RunCommand{},
	names.ResumeUpdate:          &historyv1.RunCommand{},
	names.HoldUpdate:            &historyv1.TaskCommand{},
	names.RegisterUpdate:        &historyv1.NodeRegistration{},
	names.LeaveUpdate:           &historyv1.NodeInput{},
	names.DrainUpdate:           &historyv1.NodeDrain{},
	names.RestartUpdate:         &historyv1.NodeRestart{},
	names.StatusQuery:           &historyv1.StatusRequest{},
	names.EventsQuery:           &historyv1.EventsRequest{},
	names.InstancesQuery:        &historyv1.InstancesRequest{},
	names.ExplainWorkflow:       &historyv1.ExplainRequest{},
}

// invalidText is a payload that is not valid UTF-8 and that its decoding error quotes.
var invalidText = strayPayload{Payload: &commonpb.Payload{
	Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingProtoJSON)}, Data: []byte{0xff},
}}

// straysDrawn is the number of payloads drawn for each name.
const straysDrawn = 5

// drawStrayPayloads returns payloads for a name, starting with invalidText. It draws them before anything is sent, so
// that a failure is not shrunk against a server.
func drawStrayPayloads(t *testing.T, name string) []strayPayload {
	t.Helper()
	gen := strayPayloads(name)
	all := []strayPayload{invalidText}
	rapid.Check(t, func(t *rapid.T) { all = append(all, gen.Draw(t, name)) })
	return all[:min(straysDrawn, len(all))]
}

func strayPayloads(name string) *rapid.Generator[strayPayload] {
	encoding := rapid.SampledFrom([]string{
		converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON, converter.MetadataEncodingProto, converter.MetadataEncodingBinary,
		converter.MetadataEncodingNil, "unknown", "",
	})
	message := rapid.Map(rapid.SampledFrom(messageNames()), func(other string) proto.Message { return realMessages[other] })
	if known := realMessages[name]; known != nil {
		message = rapid.Just(known)
	}
	return rapid.OneOf(
		rapid.Map(rapid.OneOf(scalars(), lists()), func(v any) strayPayload { return strayPayload{Payload: jsonPayload(v)} }),
		rapid.Map(objects(), func(v any) strayPayload { return strayPayload{jsonPayload(v), true} }),
		rapid.Just(strayPayload{jsonPayload(nil), true}),
		rapid.Just(strayPayload{&commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingNil)}}, true}),
		rapid.Custom(func(t *rapid.T) strayPayload {
			p := jsonPayload(wrongFields(t, message.Draw(t, "message").ProtoReflect().Descriptor()))
			if rapid.Bool().Draw(t, "protojson") {
				p.Metadata[converter.MetadataEncoding] = []byte(converter.MetadataEncodingProtoJSON)
			}
			return strayPayload{Payload: p}
		}),
		rapid.Custom(func(t *rapid.T) strayPayload {
			e := encoding.Draw(t, "encoding")
			// Neither JSON nor a protobuf message begins with 0xff.
			data := append([]byte{0xff}, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")...)
			return strayPayload{&commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(e)}, Data: data}, e == converter.MetadataEncodingNil}
		}),
	)
}

func messageNames() []string { return sortedKeys(realMessages) }

func jsonPayload(v any) *commonpb.Payload {
	p, err := converter.NewJSONPayloadConverter().ToPayload(v)
	if err != nil {
		panic(err) // only values that JSON can represent are drawn
	}
	return p
}

func scalars() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Float64Range(-1e300, 1e300).AsAny(), rapid.Bool().AsAny())
}

func lists() *rapid.Generator[any] {
	return rapid.SliceOfN(rapid.OneOf(scalars(), rapid.SliceOfN(scalars(), 0, 3).AsAny()), 0, 5).AsAny()
}

// objects generates objects with keys of digits, so that no key is a field of a message.
func objects() *rapid.Generator[any] {
	inner := rapid.MapOfN(rapid.StringMatching(`[0-9]{1,8}`), rapid.OneOf(scalars(), lists()), 0, 4)
	return rapid.MapOfN(rapid.StringMatching(`[0-9]{1,8}`), rapid.OneOf(scalars(), lists(), inner.AsAny()), 0, 5).AsAny()
}

// wrongFields draws an object with at least one field of the message, each with a value of another type.
func wrongFields(t *rapid.T, of protoreflect.MessageDescriptor) map[string]any {
	var typed []protoreflect.FieldDescriptor
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		if f.Message() == nil || f.Message().FullName() != "google.protobuf.Value" { // a google.protobuf.Value accepts any type
			typed = append(typed, f)
		}
	}
	wrong := map[string]any{}
	for _, f := range rapid.SliceOfNDistinct(rapid.SampledFrom(typed), 1, len(typed), rapid.ID).Draw(t, "fields") {
		wrong[string(f.Name())] = wrongValue(f).Draw(t, string(f.Name()))
	}
	return wrong
}

func wrongValue(f protoreflect.FieldDescriptor) *rapid.Generator[any] {
	number, list, object := rapid.Float64Range(0.1, 0.9).AsAny(), rapid.Just[any]([]any{"x", 1}), rapid.Just[any](map[string]any{"x": []any{1}})
	switch {
	case f.IsList():
		return rapid.OneOf(number, object)
	case f.IsMap(), f.Message() != nil:
		return rapid.OneOf(number, list)
	case f.Kind() == protoreflect.StringKind, f.Kind() == protoreflect.BoolKind:
		return rapid.OneOf(number, list, object)
	}
	return rapid.OneOf(rapid.Just[any]("text"), list, object)
}

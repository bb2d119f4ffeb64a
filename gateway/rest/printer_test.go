package rest

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// TestPrinterMatchesProtojson compares the output for each response message, filled at random, with that of protojson.
func TestPrinterMatchesProtojson(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := &printer{}
	for _, service := range v1.Services() {
		for i := range service.Methods().Len() {
			kind, err := protoregistry.GlobalTypes.FindMessageByName(service.Methods().Get(i).Output().FullName())
			if err != nil {
				t.Fatal(err)
			}
			for n := range 40 {
				m := kind.New()
				fill(random, m, min(n, 6))
				got, err := p.appendMessage(nil, m)
				if err != nil {
					t.Fatal(err)
				}
				want, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if !sameJSON(t, got, want) {
					t.Fatalf("%s is printed as\n%s\nand by protojson as\n%s", kind.Descriptor().FullName(), got, want)
				}
				back := kind.New().Interface()
				if err := protojson.Unmarshal(got, back); err != nil || !proto.Equal(back, m.Interface()) {
					t.Fatalf("%s is not read as it was printed: %v\n%s", kind.Descriptor().FullName(), err, got)
				}
			}
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	for text, value := range map[*[]byte]*any{&a: &x, &b: &y} {
		if err := json.Unmarshal(*text, value); err != nil {
			t.Fatalf("%v: %s", err, *text)
		}
	}
	return reflect.DeepEqual(x, y)
}

// fill sets about half of the fields of a message, down to the given depth.
func fill(random *rand.Rand, m protoreflect.Message, depth int) {
	switch to := m.Interface().(type) {
	case *timestamppb.Timestamp:
		to.Seconds, to.Nanos = random.Int64N(4e9), random.Int32N(1e9)
		return
	case *durationpb.Duration:
		to.Seconds = random.Int64N(4e9)
		return
	case *structpb.Struct:
		to.Fields = map[string]*structpb.Value{"a<&>": structpb.NewNumberValue(random.Float64()), "": structpb.NewNullValue(), "l": structpb.NewListValue(&structpb.ListValue{})}
		return
	case *structpb.Value:
		to.Kind = structpb.NewStringValue("x").Kind
		return
	case *structpb.ListValue:
		return
	}
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		if random.IntN(2) == 0 || field.Message() != nil && !field.IsMap() && depth == 0 {
			continue
		}
		switch {
		case field.IsList():
			for range 1 + random.IntN(2) {
				m.Mutable(field).List().Append(randomValue(random, field, func() protoreflect.Value { return m.Mutable(field).List().NewElement() }, depth))
			}
		case field.IsMap():
			if field.MapValue().Message() != nil && depth == 0 {
				continue
			}
			entries := m.Mutable(field).Map()
			for range 1 + random.IntN(2) {
				key := randomValue(random, field.MapKey(), nil, depth).MapKey()
				entries.Set(key, randomValue(random, field.MapValue(), entries.NewValue, depth))
			}
		default:
			m.Set(field, randomValue(random, field, func() protoreflect.Value { return m.NewField(field) }, depth))
		}
	}
}

// randomValue returns a value for a field. A message is obtained from fresh and filled.
func randomValue(random *rand.Rand, field protoreflect.FieldDescriptor, fresh func() protoreflect.Value, depth int) protoreflect.Value {
	pick := random.IntN(5)
	switch field.Kind() {
	case protoreflect.MessageKind:
		value := fresh()
		fill(random, value.Message(), depth-1)
		return value
	case protoreflect.StringKind:
		return protoreflect.ValueOfString([]string{"", "plain text", "\"quoted\"\\\n\t\x01\x7f", "ünïcode \u2028 🚃 <&>", strings.Repeat("x", 70)}[pick])
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(pick > 1)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 255, byte(pick)}[:random.IntN(4)])
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64([]float64{0, -1.5, 1e21, 1e-9, math.Inf(1)}[pick])
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32([]float32{0, -1.5, 0.1, 1e-9, float32(math.Inf(-1))}[pick])
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64([]int64{0, -1, math.MaxInt64, math.MinInt64, 7}[pick])
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64([]uint64{0, 1, math.MaxUint64, 5, 7}[pick])
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32([]uint32{0, 1, math.MaxUint32, 5, 7}[pick])
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(pick)) // includes numbers without a name
	}
	return protoreflect.ValueOfInt32([]int32{0, -1, math.MaxInt32, math.MinInt32, 7}[pick])
}

func BenchmarkPrint(b *testing.B) {
	m := v1.GetRunResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{}}}
	for i := range 1000 {
		m.Run.Tasks["task-"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = &v1.Task{
			Type: "shell", Node: "bench", Attempt: 1, StartedAt: timestamppb.Now(), Result: &v1.TaskResult{Output: &structpb.Struct{}},
		}
	}
	for name, print := range map[string]func() ([]byte, error){
		"printer":              func() ([]byte, error) { return new(printer).appendMessage(nil, m.ProtoReflect()) },
		"protojson":            func() ([]byte, error) { return protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(&m) },
		"protojson, no zeroes": func() ([]byte, error) { return protojson.Marshal(&m) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := print(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

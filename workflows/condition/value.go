package condition

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxValue is the maximum size in bytes of an expression's value, and of all template values of a task together. It equals the
// limit of an output.
const maxValue = 8 << 20

// safeInteger is the limit up to which a JSON double represents every whole number exactly.
const safeInteger = 1<<53 - 1

var errTooLarge = fmt.Errorf("the value is larger than %d MiB", maxValue>>20)

// valueOverhead is the number of bytes charged for a value besides its text.
const valueOverhead = 16

// jsonWriter converts CEL values to JSON. It stops after `room` bytes, because a CEL value may hold the same list many times
// over, and a few levels of that exceed any memory.
type jsonWriter struct {
	room int
}

// toJSON returns a value as JSON. Parts of the view are shared and must not be modified.
func (w *jsonWriter) toJSON(value ref.Val) (*structpb.Value, error) {
	switch v := value.(type) {
	case traits.Mapper:
		if made, ok := v.Value().(*structpb.Struct); ok {
			return structpb.NewStructValue(made), w.reserve(proto.Size(made))
		}
		return w.object(v)
	case traits.Lister:
		if made, ok := v.Value().(*structpb.ListValue); ok {
			return structpb.NewListValue(made), w.reserve(proto.Size(made))
		}
		return w.list(v)
	}
	made, err := scalar(value)
	if err != nil {
		return nil, err
	}
	return made, w.reserve(len(made.GetStringValue()))
}

// reserve uses up room.
func (w *jsonWriter) reserve(size int) error {
	if w.room -= size + valueOverhead; w.room < 0 {
		return errTooLarge
	}
	return nil
}

func scalar(value ref.Val) (*structpb.Value, error) {
	switch v := value.(type) {
	case types.Null:
		return structpb.NewNullValue(), nil
	case types.Bool:
		return structpb.NewBoolValue(bool(v)), nil
	case types.Int:
		if v < -safeInteger || v > safeInteger {
			return structpb.NewStringValue(strconv.FormatInt(int64(v), 10)), nil
		}
		return structpb.NewNumberValue(float64(v)), nil
	case types.Uint:
		if v > safeInteger {
			return structpb.NewStringValue(strconv.FormatUint(uint64(v), 10)), nil
		}
		return structpb.NewNumberValue(float64(v)), nil
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, errors.New("the value is a number that JSON does not have")
		}
		return structpb.NewNumberValue(float64(v)), nil
	case types.String:
		return structpb.NewStringValue(string(v)), nil
	case types.Bytes:
		return structpb.NewStringValue(base64.StdEncoding.EncodeToString(v)), nil
	case types.Timestamp, types.Duration:
		if text, ok := value.ConvertToType(types.StringType).(types.String); ok {
			return structpb.NewStringValue(string(text)), nil
		}
	case *object:
		return nil, fmt.Errorf("a %s is not a value: choose one of its fields", v.kind.TypeName())
	}
	return nil, fmt.Errorf("a value of type %s has no form in JSON", value.Type().TypeName())
}

func (w *jsonWriter) list(list traits.Lister) (*structpb.Value, error) {
	made := &structpb.ListValue{}
	for i, n := 0, length(list); i < n; i++ {
		item, err := w.toJSON(list.Get(types.Int(i)))
		if err != nil {
			return nil, err
		}
		made.Values = append(made.Values, item)
	}
	return structpb.NewListValue(made), w.reserve(0)
}

func (w *jsonWriter) object(m traits.Mapper) (*structpb.Value, error) {
	made := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.ConvertToType(types.StringType).(types.String)
		if !ok {
			return nil, fmt.Errorf("a key of type %s has no form in JSON", key.Type().TypeName())
		}
		item, err := w.toJSON(m.Get(key))
		if err != nil {
			return nil, err
		}
		made.Fields[string(name)] = item
		if err := w.reserve(len(name)); err != nil {
			return nil, err
		}
	}
	return structpb.NewStructValue(made), w.reserve(0)
}

// Text returns a value as text: text unchanged, a whole number without a point, null as "", and a list or an object as JSON on
// one line with sorted keys.
func Text(value *structpb.Value) string {
	switch v := value.GetKind().(type) {
	case nil, *structpb.Value_NullValue:
		return ""
	case *structpb.Value_StringValue:
		return v.StringValue
	case *structpb.Value_NumberValue:
		if v.NumberValue == 0 {
			return "0" // not -0
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value.AsInterface()); err != nil {
		return fmt.Sprint(value.AsInterface()) // cannot happen: JSON can represent everything that AsInterface returns
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// maxShown is the most bytes of a value that a message shows.
const maxShown = 100

// shown formats the value of an error for people.
func shown(value ref.Val) string {
	w := jsonWriter{room: 64 << 10}
	made, err := w.toJSON(value)
	if err != nil {
		return ""
	}
	return ": " + Shown(made)
}

// Shown returns a value as JSON, cut to fit in a message.
func Shown(value *structpb.Value) string {
	text := Text(value)
	if _, ok := value.GetKind().(*structpb.Value_StringValue); ok {
		text = strconv.Quote(cut(text, maxShown))
	}
	if _, ok := value.GetKind().(*structpb.Value_NullValue); ok {
		text = "null"
	}
	return cut(text, maxShown+3)
}

// cut shortens a text to a number of bytes.
func cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + "..."
}

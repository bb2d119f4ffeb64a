package podspec

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"switchyard/workflows/condition"
	"switchyard/workflows/nearest"
	"switchyard/workflows/structs"
)

// decode decodes a Kubernetes object. It reports each unknown field and each value of a wrong kind at its own path, and decodes
// the rest. encoding/json and sigs.k8s.io/json omit list indices from type errors, and stop at the first error.
func decode[T any](r *report, v *structpb.Value, at path) T {
	var into T
	tree := r.read(v, reflect.TypeFor[T](), at)
	if data, err := json.Marshal(tree); err != nil {
		r.add(at, at.String()+" cannot be read: "+err.Error(), "")
	} else if err := json.Unmarshal(data, &into); err != nil {
		r.add(at, at.String()+" cannot be read: "+err.Error(), "")
	}
	return into
}

// read returns the parts of a value that a Go type can hold, for encoding/json. It leaves out values that are not known yet,
// except where the type is a string.
func (r *report) read(v *structpb.Value, t reflect.Type, at path) any {
	if _, isNull := v.GetKind().(*structpb.Value_NullValue); isNull || v.GetKind() == nil {
		return nil
	}
	if text, isText := v.GetKind().(*structpb.Value_StringValue); isText && condition.HasTemplate(text.StringValue) {
		r.open = true
		if t.Kind() == reflect.String {
			return text.StringValue
		}
		return nil
	}
	if t.Kind() == reflect.Pointer {
		return r.read(v, t.Elem(), at)
	}
	if _, ownForm := reflect.New(t).Interface().(json.Unmarshaler); ownForm {
		return r.readOwnForm(v, t, at)
	}
	switch t.Kind() {
	case reflect.Struct:
		return r.readStruct(v, t, at)
	case reflect.Map:
		return r.readMap(v, t, at)
	case reflect.Slice:
		return r.readList(v, t, at)
	}
	return r.readScalar(v, t, at)
}

func (r *report) readStruct(v *structpb.Value, t reflect.Type, at path) any {
	s, ok := v.GetKind().(*structpb.Value_StructValue)
	if !ok {
		return r.wrong(v, at, "a mapping", "")
	}
	fields := jsonFields(t)
	tree := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(s.StructValue.GetFields())) {
		field, known := fields[key]
		if !known {
			r.open = true
			r.addKey(at.below(key), at.String()+" has no field "+quote(key), unknownHint(key, t, fields, at))
			continue
		}
		if read := r.read(s.StructValue.GetFields()[key], field, at.below(key)); read != nil {
			tree[key] = read
		}
	}
	return tree
}

func (r *report) readMap(v *structpb.Value, t reflect.Type, at path) any {
	s, ok := v.GetKind().(*structpb.Value_StructValue)
	if !ok {
		return r.wrong(v, at, "a mapping", "")
	}
	tree := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(s.StructValue.GetFields())) {
		if read := r.read(s.StructValue.GetFields()[key], t.Elem(), at.below(key)); read != nil {
			tree[key] = read
		}
	}
	return tree
}

// readList reads a list. It keeps the position of each item, so that later messages have the right index.
func (r *report) readList(v *structpb.Value, t reflect.Type, at path) any {
	if t.Elem().Kind() == reflect.Uint8 {
		text, ok := v.GetKind().(*structpb.Value_StringValue)
		if !ok || json.Unmarshal([]byte(strconv.Quote(text.StringValue)), new([]byte)) != nil {
			return r.wrong(v, at, "bytes in base64", "")
		}
		return text.StringValue
	}
	list, ok := v.GetKind().(*structpb.Value_ListValue)
	if !ok {
		return r.wrong(v, at, "a list", "")
	}
	tree := make([]any, len(list.ListValue.GetValues()))
	for i, item := range list.ListValue.GetValues() {
		if _, isNull := item.GetKind().(*structpb.Value_NullValue); isNull {
			r.wrong(item, at.below(i), "a value", "leave the item out")
		}
		tree[i] = r.read(item, t.Elem(), at.below(i))
	}
	return tree
}

func (r *report) readScalar(v *structpb.Value, t reflect.Type, at path) any {
	number, isNumber := v.GetKind().(*structpb.Value_NumberValue)
	switch t.Kind() {
	case reflect.String:
		if text, ok := v.GetKind().(*structpb.Value_StringValue); ok {
			return text.StringValue
		}
		hint := ""
		if text, ok := scalarText(v); ok {
			hint = "write it in quotes: " + strconv.Quote(text)
		}
		return r.wrong(v, at, "a string", hint)
	case reflect.Bool:
		if truth, ok := v.GetKind().(*structpb.Value_BoolValue); ok {
			return truth.BoolValue
		}
		return r.wrong(v, at, "true or false", "")
	case reflect.Int32, reflect.Int64, reflect.Int:
		if !isNumber || number.NumberValue != math.Trunc(number.NumberValue) {
			return r.wrong(v, at, "a whole number", "")
		}
		most := float64(1 << 53)
		if t.Kind() == reflect.Int32 {
			most = math.MaxInt32
		}
		if math.Abs(number.NumberValue) > most {
			return r.wrong(v, at, "a number of at most "+structs.Number(most), "")
		}
		return int64(number.NumberValue)
	case reflect.Float32, reflect.Float64:
		if !isNumber {
			return r.wrong(v, at, "a number", "")
		}
		return number.NumberValue
	}
	return r.wrong(v, at, "left out; Switchyard does not support its kind", "")
}

// readOwnForm reads a value of a type with its own JSON form, such as a quantity.
func (r *report) readOwnForm(v *structpb.Value, t reflect.Type, at path) any {
	value := v.AsInterface()
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	_, isScalar := scalarText(v)
	switch {
	case err == nil && isScalar:
		return value
	case t == reflect.TypeFor[resource.Quantity]():
		return r.wrong(v, at, "a quantity", `such as 2, "500m" or "4Gi"`)
	case t == reflect.TypeFor[intstr.IntOrString]():
		return r.wrong(v, at, "a number or a name", "")
	case err == nil:
		return value
	}
	return r.wrong(v, at, "of the form that Kubernetes requires: "+err.Error(), "")
}

// wrong reports a value of a wrong kind.
func (r *report) wrong(v *structpb.Value, at path, want, hint string) any {
	r.open = true
	r.add(at, fmt.Sprintf("%s is %s; it must be %s", at, described(v), want), hint)
	return nil
}

func described(v *structpb.Value) string {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_NullValue:
		return "empty"
	case *structpb.Value_StringValue:
		return "the string " + quote(kind.StringValue)
	case *structpb.Value_ListValue:
		return "a list"
	case *structpb.Value_StructValue:
		return "a mapping"
	case *structpb.Value_NumberValue:
		text, _ := scalarText(v)
		return "the number " + text
	}
	text, _ := scalarText(v)
	return text
}

func scalarText(v *structpb.Value) (string, bool) {
	switch v := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return v.StringValue, true
	case *structpb.Value_NumberValue:
		return structs.Number(v.NumberValue), true
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(v.BoolValue), true
	}
	return "", false
}

// jsonFields returns the field types of a struct by JSON name, including those of embedded structs.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(fields, jsonFields(field.Type))
		case name != "":
			fields[name] = field.Type
		}
	}
	return fields
}

// unknownHint returns a hint for what was probably meant by an unknown field.
func unknownHint(key string, t reflect.Type, fields map[string]reflect.Type, at path) string {
	ofPod := jsonFields(reflect.TypeFor[corev1.PodSpec]())
	switch isTemplate := t == reflect.TypeFor[corev1.PodTemplateSpec](); {
	case isTemplate && (key == "apiVersion" || key == "kind" || key == "status"):
		return "leave it out; a template has metadata and spec only"
	case isTemplate && ofPod[key] != nil:
		return key + " belongs in " + at.below("spec").String()
	case t == reflect.TypeFor[corev1.PodSpec]() && key == "template":
		return "the template describes a pod, not a Job: write the content of the Job's spec.template"
	}
	if near := nearest.Word(key, slices.Sorted(maps.Keys(fields))); near != "" {
		return "did you mean " + near + "?"
	}
	return "`kubectl explain " + explained(at) + "` lists the fields"
}

// explained returns the name of a path in the spec for kubectl explain.
func explained(at path) string {
	words := []string{"pod", "spec"}
	switch first := at[0]; first {
	case "template":
		words, at = words[:1], at[1:]
	case "env", "volumeMounts":
		words = append(words, "containers")
	}
	for _, step := range at {
		if name, ok := step.(string); ok {
			words = append(words, name)
		}
	}
	return strings.Join(words, ".")
}

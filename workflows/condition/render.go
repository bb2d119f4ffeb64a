package condition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// Render returns a copy of an object with `${{ }}` replaced in its strings at any depth. A string that is exactly one template
// becomes the value itself (a list stays a list), any other string becomes text; see Text. Keys are not replaced. The object is
// not modified.
//
// at names the object in errors, such as "spec"; errors show the field and the expression. The inserted values may take at most
// 8 MiB in total.
func (e *Evaluator) Render(ctx context.Context, at string, object *structpb.Struct, view View) (*structpb.Struct, error) {
	r := renderer{ctx: ctx, evaluator: e, kind: Value, view: view, room: maxValue}
	rendered, err := r.value(at, structpb.NewStructValue(object))
	return rendered.GetStructValue(), err
}

// RenderEnv renders environment variables like Render. Their values are always text.
func (e *Evaluator) RenderEnv(ctx context.Context, at string, env map[string]string, view View) (map[string]string, error) {
	r := renderer{ctx: ctx, evaluator: e, kind: Value, view: view, room: maxValue}
	rendered := maps.Clone(env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !HasTemplate(env[name]) {
			continue
		}
		value, err := r.text(at+"."+name, env[name])
		if err != nil {
			return nil, err
		}
		rendered[name] = Text(value)
	}
	return rendered, nil
}

// RenderText renders one text. The result is always text, even if the whole text is one expression.
func (e *Evaluator) RenderText(ctx context.Context, at, text string, view View) (string, error) {
	return e.renderText(ctx, at, text, Value, view)
}

// RenderMessage renders the message of a notification like RenderText. Its expressions are of kind Message.
func (e *Evaluator) RenderMessage(ctx context.Context, text string, view View) (string, error) {
	return e.renderText(ctx, "notify.message", text, Message, view)
}

func (e *Evaluator) renderText(ctx context.Context, at, text string, kind Kind, view View) (string, error) {
	if !HasTemplate(text) {
		return text, nil
	}
	r := renderer{ctx: ctx, evaluator: e, kind: kind, view: view, room: maxValue}
	value, err := r.text(at, text)
	if err != nil {
		return "", err
	}
	return Text(value), nil
}

// renderer replaces the templates of one object.
type renderer struct {
	ctx       context.Context
	evaluator *Evaluator
	kind      Kind
	view      View
	room      int // number of bytes that may still be inserted
}

// value returns a copy of v with its templates replaced. Scalars without templates are shared with v.
func (r *renderer) value(at string, v *structpb.Value) (_ *structpb.Value, err error) {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		if HasTemplate(kind.StringValue) {
			return r.text(at, kind.StringValue)
		}
	case *structpb.Value_StructValue:
		rendered := maps.Clone(kind.StructValue.GetFields())
		for _, name := range slices.Sorted(maps.Keys(rendered)) {
			if rendered[name], err = r.value(at+"."+name, rendered[name]); err != nil {
				return nil, err
			}
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: rendered}), nil
	case *structpb.Value_ListValue:
		rendered := slices.Clone(kind.ListValue.GetValues())
		for i := range rendered {
			if rendered[i], err = r.value(at+"["+strconv.Itoa(i)+"]", rendered[i]); err != nil {
				return nil, err
			}
		}
		return structpb.NewListValue(&structpb.ListValue{Values: rendered}), nil
	}
	return v, nil
}

// text returns a text with its templates replaced.
func (r *renderer) text(at, text string) (*structpb.Value, error) {
	t, err := ParseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	var out strings.Builder
	for _, p := range t.parts {
		if !p.isExpr {
			out.WriteString(p.text)
			continue
		}
		value, err := r.evaluate(p.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w, in %s%s%s", at, err, templateStart, cut(p.text, maxShown), templateEnd)
		}
		if len(t.parts) == 1 {
			return value, nil
		}
		out.WriteString(Text(value))
	}
	return structpb.NewStringValue(out.String()), nil
}

func (r *renderer) evaluate(expr string) (*structpb.Value, error) {
	value, err := r.evaluator.value(r.ctx, expr, r.kind, r.view)
	if err != nil {
		return nil, err
	}
	w := jsonWriter{room: r.room}
	made, err := w.toJSON(value)
	r.room = w.room
	switch {
	case errors.Is(err, errTooLarge):
		return nil, fmt.Errorf("the templates give more than %d MiB", maxValue>>20)
	case err != nil:
		return nil, r.kind.errorf("%w", err)
	}
	return made, nil
}

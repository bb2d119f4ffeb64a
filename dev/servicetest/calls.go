package servicetest

import (
	"context"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Do makes a call that must succeed.
func Do[Req, Res any](t testing.TB, ctx context.Context, call func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) *Res {
	t.Helper()
	res, err := call(ctx, connect.NewRequest(req))
	if err != nil {
		t.Fatalf("%v: %v", req, err)
	}
	return res.Msg
}

// Refused makes a call that must fail with a code and a message that contains texts.
func Refused[Req, Res any](t testing.TB, ctx context.Context, call func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req, code connect.Code, texts ...string) {
	t.Helper()
	res, err := call(ctx, connect.NewRequest(req))
	if err == nil || connect.CodeOf(err) != code {
		t.Errorf("%v: got %v, %v, want %v", req, res, err, code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v lacks %q", req, err, text)
		}
	}
}

// Pages makes the calls of a list from its first page to its last one. It leaves req as it was.
func Pages[Req, Res any](t testing.TB, ctx context.Context, call func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), req *Req) (all []*Res) {
	t.Helper()
	one := proto.Clone(any(req).(proto.Message)).ProtoReflect()
	for field := one.Descriptor().Fields().ByName("page_token"); ; {
		page := Do(t, ctx, call, one.Interface().(any).(*Req))
		all = append(all, page)
		answer := any(page).(proto.Message).ProtoReflect()
		next := answer.Get(answer.Descriptor().Fields().ByName("next_page_token")).String()
		if next == "" {
			return all
		}
		one.Set(field, protoreflect.ValueOfString(next))
	}
}

package signing

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

var at = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

func newSigner(t *testing.T, location string, now time.Time) *Signer {
	t.Helper()
	kept, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	return New(kept, func() time.Time { return now })
}

func decision() *historyv1.Decision {
	return &historyv1.Decision{
		Workflow: "ci-0k", Execution: "e1", Task: "deploy", Verdict: v1.ApprovalApproved, By: "ann", Role: v1.RoleOperator, Reason: "ok", At: timestamppb.New(at),
		Input: &structpb.Struct{Fields: map[string]*structpb.Value{"env": structpb.NewStringValue("test"), "n": structpb.NewNumberValue(1)}},
	}
}

// TestSignatureCoversEveryField changes each field of a signed decision and verifies it with another
// signer.
func TestSignatureCoversEveryField(t *testing.T) {
	dir := t.TempDir()
	signed := decision()
	if err := newSigner(t, dir, at).Sign(t.Context(), signed); err != nil {
		t.Fatal(err)
	}
	other := newSigner(t, dir, at)
	if refused, err := other.Verify(t.Context(), signed); refused != "" || err != nil {
		t.Fatalf("%s, %v", refused, err)
	}
	fields := signed.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field, changed := fields.Get(i), proto.CloneOf(signed)
		switch {
		case field.Kind() == protoreflect.StringKind:
			changed.ProtoReflect().Set(field, protoreflect.ValueOfString("x"))
		case field.Name() == "at":
			changed.At = timestamppb.New(at.Add(time.Nanosecond))
		case field.Name() == "signature":
			changed.Signature[0] ^= 1
		case field.Name() == "input":
			changed.Input.Fields["env"] = structpb.NewStringValue("prod")
		case field.Kind() == protoreflect.BoolKind:
			changed.ProtoReflect().Set(field, protoreflect.ValueOfBool(true))
		default:
			t.Fatalf("%s is not changed by this test", field.Name())
		}
		if refused, err := other.Verify(t.Context(), changed); !strings.Contains(refused, "signature") || err != nil {
			t.Errorf("%s was changed: %q, %v", field.Name(), refused, err)
		}
	}
	moved := proto.CloneOf(signed)
	moved.Workflow, moved.Execution = "ci-0ke", "1"
	if refused, _ := other.Verify(t.Context(), moved); refused == "" {
		t.Error("the border between two fields is not signed")
	}
}

func TestOldDecisionsDoNotCount(t *testing.T) {
	dir := t.TempDir()
	signed := decision()
	if err := newSigner(t, dir, at).Sign(t.Context(), signed); err != nil {
		t.Fatal(err)
	}
	for now, says := range map[time.Time]string{
		at.Add(maxAge): "", at.Add(maxAge + time.Second): "10m1s old", at.Add(-maxAhead): "", at.Add(-maxAhead - time.Second): "clocks",
	} {
		refused, err := newSigner(t, dir, now).Verify(t.Context(), signed)
		if err != nil || (refused == "") != (says == "") || !strings.Contains(refused, says) {
			t.Errorf("at %v: %q, %v", now, refused, err)
		}
	}
}

func TestDecisionOfAnotherDeploymentDoesNotCount(t *testing.T) {
	signed := decision()
	if err := newSigner(t, t.TempDir(), at).Sign(t.Context(), signed); err != nil {
		t.Fatal(err)
	}
	if refused, err := newSigner(t, t.TempDir(), at).Verify(t.Context(), signed); refused == "" || err != nil {
		t.Errorf("%q, %v", refused, err)
	}
}

package ticket

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

var at = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

func newChecker(t *testing.T, key []byte, now time.Time) *Checker {
	t.Helper()
	c, err := NewChecker(key, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func signed(t *testing.T, key []byte) *v1.SessionHeader {
	t.Helper()
	h := &v1.SessionHeader{Kind: "exec", RunId: "ci-0k", Task: "each[3]", Claim: 4, Exec: &v1.SessionExec{Env: map[string]string{"A": "1", "B": "2", "C": "3"}}}
	if err := Sign(key, h, at); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTicketIsValidOnceAndWithinItsLifetime(t *testing.T) {
	key := NewKey()
	c, h := newChecker(t, key, at), signed(t, key)
	if err := c.Check(h); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(h); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("a second time: %v", err)
	}
	for now, says := range map[time.Time]string{at.Add(time.Hour): "expired", at.Add(-time.Hour): "not valid yet", at.Add(Lifetime + clockSkew): "", at.Add(-clockSkew): ""} {
		err := newChecker(t, key, now).Check(signed(t, key))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("at %v: %v", now, err)
		}
	}
	if err := newChecker(t, NewKey(), at).Check(signed(t, key)); err == nil {
		t.Error("the ticket of another link counts")
	}
	if err := c.Check(&v1.SessionHeader{Kind: "exec"}); err == nil {
		t.Error("a stream without a ticket is let in")
	}
	if _, err := NewChecker(nil, time.Now); err == nil {
		t.Error("an empty key is taken")
	}
}

func TestTicketCoversEveryField(t *testing.T) {
	key := NewKey()
	fields := (&v1.SessionHeader{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field, changed := fields.Get(i), proto.CloneOf(signed(t, key))
		switch {
		case field.Kind() == protoreflect.StringKind:
			changed.ProtoReflect().Set(field, protoreflect.ValueOfString("x"))
		case field.Name() == "claim":
			changed.Claim++
		case field.Name() == "port":
			changed.Port++
		case field.Name() == "rename":
			changed.Rename = true
		case field.Name() == "exec":
			changed.Exec.Command = []string{"sh"}
		case field.Name() == "ticket":
			changed.Ticket.Id[0] ^= 1
		default:
			t.Fatalf("%s is not changed by this test", field.Name())
		}
		if newChecker(t, key, at).Check(changed) == nil {
			t.Errorf("%s was changed", field.Name())
		}
	}
}

func TestUsedTicketsAreForgottenOnceTheyHaveExpired(t *testing.T) {
	key, now := NewKey(), at
	c, err := NewChecker(key, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		h := &v1.SessionHeader{Kind: "exec"}
		if err := Sign(key, h, now); err != nil {
			t.Fatal(err)
		}
		if err := c.Check(h); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		check()
	}
	now = now.Add(Lifetime + clockSkew) // the last moment at which they could be reused
	if check(); len(c.used) != 101 {
		t.Errorf("%d tickets are known, want 101", len(c.used))
	}
	now = now.Add(Lifetime)
	if check(); len(c.used) != 2 {
		t.Errorf("%d tickets are known, want 2", len(c.used))
	}
}

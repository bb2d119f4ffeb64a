package signing

import (
	"strings"
	"testing"
	"time"
)

func TestProofCountsOnceForItsPurposeAndSubject(t *testing.T) {
	dir := t.TempDir()
	sender, receiver := newSigner(t, dir, at), newSigner(t, dir, at)
	prove := func() string {
		t.Helper()
		proof, err := sender.Prove(t.Context(), "peer", "g2")
		if err != nil {
			t.Fatal(err)
		}
		return proof
	}
	check := func(s *Signer, purpose, subject, proof string) string {
		t.Helper()
		refused, err := s.CheckProof(t.Context(), purpose, subject, proof)
		if err != nil {
			t.Fatal(err)
		}
		return refused
	}
	proof := prove()
	if refused := check(receiver, "peer", "g2", proof); refused != "" {
		t.Fatal(refused)
	}
	if refused := check(receiver, "peer", "g2", proof); !strings.Contains(refused, "used before") {
		t.Errorf("a second time: %q", refused)
	}
	for what, refused := range map[string]string{
		"another purpose": check(receiver, "door", "g2", prove()),
		"another subject": check(receiver, "peer", "g3", prove()),
		"another key":     check(newSigner(t, t.TempDir(), at), "peer", "g2", prove()),
		"no proof":        check(receiver, "peer", "g2", "x"),
		"old":             check(newSigner(t, dir, at.Add(maxAge+time.Minute)), "peer", "g2", prove()),
		"ahead":           check(newSigner(t, dir, at.Add(-maxAhead-time.Minute)), "peer", "g2", prove()),
	} {
		if refused == "" {
			t.Errorf("%s counts", what)
		}
	}
}

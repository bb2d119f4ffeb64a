package workers

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/limits"
)

func TestConverterRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	c := NewDataConverter()
	small := &historyv1.NodeInput{Name: "a"}
	large := &historyv1.NodeInput{Name: strings.Repeat("x", limits.MaxPayloadBytes)}
	for name, encode := range map[string]func(*historyv1.NodeInput) error{
		"one":     func(m *historyv1.NodeInput) error { _, err := c.ToPayload(m); return err },
		"several": func(m *historyv1.NodeInput) error { _, err := c.ToPayloads(small, m); return err },
	} {
		if err := encode(small); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := encode(large); err == nil || !strings.Contains(err.Error(), "too large") || len(err.Error()) > 200 {
			t.Errorf("%s, too large: %v", name, err)
		}
	}
	if _, err := c.ToPayload(func() {}); err == nil {
		t.Error("a function was encoded")
	}
	payloads, err := c.ToPayloads(small, "word")
	if err != nil {
		t.Fatal(err)
	}
	var got historyv1.NodeInput
	var word string
	if err := c.FromPayloads(payloads, &got, &word); err != nil || !proto.Equal(&got, small) || word != "word" {
		t.Errorf("got %v and %q, error %v", &got, word, err)
	}
	if ps, err := c.ToPayloads(); err != nil || len(ps.GetPayloads()) != 0 {
		t.Errorf("nothing became %v, error %v", ps, err)
	}
}

package edge

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
)

func TestOpenCountBoundsEachAndAll(t *testing.T) {
	c := &openCount{what: "streams", all: 3, each: 2}
	var leave []func()
	enter := func(client, want string) {
		t.Helper()
		end, err := c.enter(client)
		if want == "" && err != nil || want != "" && (connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", client, err, want)
		}
		if err == nil {
			leave = append(leave, end)
		}
	}
	enter("a", "")
	enter("a", "")
	enter("a", "client a is at its limit of 2 open streams")
	enter("b", "")
	enter("b", "the gateway is at its limit of 3 open streams")
	leave[0]()
	enter("b", "")
	for _, end := range leave[1:] {
		end()
	}
	if c.open != 0 || len(c.byClient) != 0 {
		t.Errorf("%d are open, of %v", c.open, c.byClient)
	}
}

package tunnel

import (
	"testing"

	"connectrpc.com/connect"
)

func TestCallerSessionsAreBounded(t *testing.T) {
	var c callers
	first, err := c.enter("ann", 2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.enter("ann", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.enter("ann", 2); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("the third of two is answered with %v", err)
	}
	if _, err := c.enter("bob", 2); err != nil {
		t.Errorf("the sessions of ann count for bob: %v", err)
	}
	first()
	if _, err := c.enter("ann", 2); err != nil {
		t.Errorf("a session that has ended still counts: %v", err)
	}
	second()
}

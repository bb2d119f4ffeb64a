package session

import (
	"encoding/json"
	"net"
	"os"
	"testing"
	"time"
)

// The first relay does not read the frame that says how many turns are ahead, so that sending it takes long.
func TestMessagesAreQueuedInTheOrderOfTheirArrival(t *testing.T) {
	stdin, messages, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	h := newHost(messages, nil)
	h.waiting = 1 // a turn is under way
	var relays []net.Conn
	for i, prompt := range []string{"first", "second"} {
		relay, conn := net.Pipe()
		relays = append(relays, relay)
		h.work.Go(func() { h.serveConn(conn) })
		if err := json.NewEncoder(relay).Encode(request{Prompt: prompt}); err != nil {
			t.Fatal(err)
		}
		for isCounted := false; !isCounted; time.Sleep(time.Millisecond) {
			h.mu.Lock()
			isCounted = h.waiting == i+2
			h.mu.Unlock()
		}
	}
	var f frame
	if err := json.NewDecoder(relays[1]).Decode(&f); err != nil || f.Queued != 2 {
		t.Errorf("frame %+v, error %v", f, err)
	}
	if next := <-h.turns; next.request.Prompt != "first" {
		t.Errorf("the next message is %q", next.request.Prompt)
	}
	for _, relay := range relays {
		relay.Close()
	}
	h.close("the test ends")
}

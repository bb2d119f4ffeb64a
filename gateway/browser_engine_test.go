//go:build engines

package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"

	"switchyard/activities/store"
	"switchyard/dev/browsertest"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// followingPage follows a run with an EventSource. It records the ids of the events and counts disconnections.
const followingPage = `<!DOCTYPE html><link rel="icon" href="data:,"><script>
const run = new URLSearchParams(location.search).get("run")
const seen = [], source = new EventSource("/v1/runs/" + run + "/events")
let errors = 0
for (const name of ["queued", "end"]) source.addEventListener(name, e => seen.push(e.lastEventId))
source.onerror = () => { errors++ }
</script>`

// serveWithPage serves a gateway and followingPage at an address until the returned function is called.
func serveWithPage(t *testing.T, address, location string) (string, func()) {
	t.Helper()
	kept, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Client: temporalClient, Store: kept})
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	// Another process may use the port for a connection in between.
	eventually(t, "the address is free", func() bool {
		listener, err = net.Listen("tcp", address)
		return err == nil
	})
	mux := http.NewServeMux()
	mux.Handle("/", g.Handler())
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(followingPage))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: limit}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return listener.Addr().String(), func() {
		g.Close()
		if err := errors.Join(server.Close(), kept.Close()); err != nil {
			t.Error(err)
		}
		<-served
	}
}

// TestLongBrowserFollowsARunOverRestarts checks that the EventSource of a real browser follows a run to its end over
// restarts of the gateway. It sees each event once and does not reconnect after the end.
func TestLongBrowserFollowsARunOverRestarts(t *testing.T) {
	testneeds.Long(t)
	location := "file://" + t.TempDir()
	f := startIn(t, location)
	id := f.submit(t, "browsed")
	all := numbered(0, 0, 40)
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: all[:5]})
	address, stop := serveWithPage(t, "127.0.0.1:0", location)
	tab := browsertest.Open(t, "http://"+address+"/page?run="+id)
	for seen := 5; seen < 35; seen += 15 {
		tab.WaitTrue(fmt.Sprintf("seen.length >= %d", seen))
		stop()
		signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: all[:seen+10]})
		_, stop = serveWithPage(t, address, location)
		signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: all[:seen+15]})
	}
	tab.WaitTrue("seen.length >= 35 && errors >= 2")
	f.storeEvents(t, id, 0, 0, all...)
	end(t, id, "completed")
	tab.WaitTrue("source.readyState === EventSource.CLOSED")
	stop()
	var want []string
	for _, e := range all {
		want = append(want, e.GetId())
	}
	if seen := browsertest.Eval[[]string](tab, "seen"); !slices.Equal(seen, append(want, "0-end")) {
		t.Errorf("the browser has seen %v", seen)
	}
	// The errors of connections to the stopped gateways.
	tab.Allow("net::ERR_")
	tab.Check(t)
}

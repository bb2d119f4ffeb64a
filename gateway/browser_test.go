package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/store"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// followingPage follows a run with an EventSource, and reports the ids of the events, how often it was disconnected, and
// that the browser has stopped.
const followingPage = `<!DOCTYPE html><script>
const run = new URLSearchParams(location.search).get("run")
const seen = [], source = new EventSource("/v1/runs/" + run + "/events")
let errors = 0
const report = (stopped) => fetch("/report", {method: "POST", body: JSON.stringify({seen, errors, stopped})})
for (const name of ["queued", "end"]) source.addEventListener(name, e => { seen.push(e.lastEventId); report(false) })
source.onerror = () => { errors++; report(source.readyState === EventSource.CLOSED) }
</script>`

// pageReport is what the page reports.
type pageReport struct {
	Seen    []string
	Errors  int
	Stopped bool
}

// serveWithPage serves a gateway, the page and the reports at an address, until the function that it returns is called.
func serveWithPage(t *testing.T, address, location string, reports chan<- pageReport) (string, func()) {
	t.Helper()
	kept, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Client: temporalClient, Store: kept})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", g.Handler())
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(followingPage))
	})
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var report pageReport
		if err := json.NewDecoder(r.Body).Decode(&report); err == nil {
			reports <- report
		}
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

// An EventSource of a real browser follows a run to its end over restarts of the gateway: it sees each event once, and stays
// away after the end.
func TestLongBrowserFollowsARunOverRestarts(t *testing.T) {
	testneeds.Long(t)
	browser, err := exec.LookPath("chromium")
	if err != nil {
		testneeds.Missing(t, "chromium is not installed")
	}
	location := "file://" + t.TempDir()
	f := startIn(t, location)
	id := f.submit(t, "browsed")
	all := numbered(0, 0, 40)
	signal(t, id, eventsSignal, &v1.EventsResponse{Events: all[:5]})
	reports := make(chan pageReport, 1000)
	address, stop := serveWithPage(t, "127.0.0.1:0", location, reports)
	profile, err := os.MkdirTemp("", "switchyard-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // the browser may still be writing
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-crash-reporter",
		"--user-data-dir="+profile, "http://"+address+"/page?run="+id)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	await := func(what string, check func(pageReport) bool) pageReport {
		for {
			select {
			case r := <-reports:
				if check(r) {
					return r
				}
			case <-ctx.Done():
				t.Fatalf("%s: it did not happen", what)
			}
		}
	}
	for seen := 5; seen < 35; seen += 15 {
		await("the browser sees the events", func(r pageReport) bool { return len(r.Seen) >= seen })
		stop()
		signal(t, id, eventsSignal, &v1.EventsResponse{Events: all[:seen+10]})
		_, stop = serveWithPage(t, address, location, reports)
		signal(t, id, eventsSignal, &v1.EventsResponse{Events: all[:seen+15]})
	}
	await("the browser has returned", func(r pageReport) bool { return len(r.Seen) >= 35 && r.Errors >= 2 })
	f.storeEvents(t, id, 0, 0, all...)
	end(t, id, "completed")
	last := await("the browser has stopped", func(r pageReport) bool { return r.Stopped })
	stop()
	var want []string
	for _, e := range all {
		want = append(want, e.GetId())
	}
	if !slices.Equal(last.Seen, append(want, "0-end")) {
		t.Errorf("the browser has seen %v", last.Seen)
	}
}

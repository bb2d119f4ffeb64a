//go:build engines

package page

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/dev/browsertest"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

const (
	// largeInstances is the size of the measured fan-out.
	largeInstances = 10_000
	// watchFor is how long the memory of a page is measured, and viewersFor how long the processor time of a gateway
	// is.
	watchFor, viewersFor = time.Minute, 30 * time.Second
	viewers              = 100

	maxPaint       = time.Second // on an idle machine; printed
	maxBytes       = 200_000
	maxHeapGrowth  = 4 << 20
	maxGatewayCore = 10.0 // percent of a core; printed
)

// largeDefinition is a large run with constant changes.
var largeDefinition = fmt.Sprintf(`
name: large
tasks:
  each:
    type: shell
    parallel: %d
    concurrency: 6
    maxFailures: %[1]d
    spec: { command: 'sleep 0.2; test $((SWITCHYARD_INDEX %% 50)) != 7' }
    resources: { cores: 0 }
    retry: { maxRetries: 0 }
`, largeInstances)

// TestLongPageOfALargeRunIsLight checks that the page of a large, busy run paints early, transfers little and keeps its
// memory constant, and that many viewers cost the gateway little. It prints times instead of checking them, because
// they depend on the machine.
func TestLongPageOfALargeRunIsLight(t *testing.T) {
	testneeds.Long(t)
	s := startStack(t)
	address := fmt.Sprintf("127.0.0.1:%d", testneeds.FreePort(t))
	gateway := s.startGateway(t, address)
	id := s.Submit(t, largeDefinition)
	processes.Await(t, "the run is busy", func() bool { return s.instances(t, id, "each", "completed") >= 50 })
	path := "/ui/runs/" + id

	tab := browsertest.Open(t, "http://"+address+path)
	tab.WaitText("#run-counts", "10000 instances")
	paint := tab.FirstPaint()
	tab.WaitTrue("document.body.dataset.live == 'live'")
	sent := tab.BytesReceived()
	t.Logf("first paint after %v (to reach: %v), %d bytes received (to reach: %d)", paint.Round(time.Millisecond), maxPaint, sent, maxBytes)
	if sent > maxBytes {
		t.Errorf("the page received %d bytes", sent)
	}

	time.Sleep(5 * time.Second) // until every part of the page has run once
	before, beforeNodes, beforeCounts := tab.HeapBytes(), tab.Nodes(), tab.Text("#run-counts")
	time.Sleep(watchFor)
	after, afterNodes, afterCounts := tab.HeapBytes(), tab.Nodes(), tab.Text("#run-counts")
	t.Logf("heap of the page: %d KiB, after %v of updates %d KiB; %d nodes, then %d", before>>10, watchFor, after>>10, beforeNodes, afterNodes)
	if after-before > maxHeapGrowth {
		t.Errorf("the heap of the page grew by %d bytes", after-before)
	}
	if beforeCounts == afterCounts {
		t.Errorf("nothing changed meanwhile: %s", afterCounts)
	}
	tab.Check(t)
	tab.Close()

	alone := cpuShare(t, gateway.Cmd.Process.Pid, viewersFor)
	events := watchBy(t, viewers, "http://"+address, path)
	processes.Await(t, "all viewers get updates", func() bool { return events.Load() >= 2*viewers })
	began := events.Load()
	busy := cpuShare(t, gateway.Cmd.Process.Pid, viewersFor)
	t.Logf("the gateway takes %.1f%% of a core without viewers, %.1f%% with %d viewers (to reach: %.0f%%), who got %d updates a second",
		alone, busy, viewers, maxGatewayCore, int(float64(events.Load()-began)/viewersFor.Seconds()))
	if events.Load() == began {
		t.Error("the viewers got no updates")
	}
}

// watchBy makes n clients follow a view, each with a stream of its own, and counts their events.
func watchBy(t *testing.T, n int, origin, path string) *atomic.Int64 {
	t.Helper()
	var events atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 0, DisableCompression: false}}
	t.Cleanup(client.CloseIdleConnections)
	for range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin+"/ui/live?"+url.Values{"view": {path}, "at": {""}}.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("follow: %v %v", res, err)
		}
		go func() {
			defer res.Body.Close()
			scanner := bufio.NewScanner(res.Body)
			scanner.Buffer(nil, 16<<20)
			for scanner.Scan() {
				if strings.HasPrefix(scanner.Text(), "event: view") {
					events.Add(1)
				}
			}
		}()
	}
	return &events
}

// cpuShare returns the processor use of a process over a time, in percent of a core.
func cpuShare(t *testing.T, pid int, over time.Duration) float64 {
	t.Helper()
	before, began := cpuTicks(t, pid), time.Now()
	time.Sleep(over)
	const ticksPerSecond = 100
	return float64(cpuTicks(t, pid)-before) / ticksPerSecond / time.Since(began).Seconds() * 100
}

// cpuTicks returns the processor time of a process, in hundredths of a second.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	total := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

//go:build engines

package page

import (
	"fmt"
	"testing"
	"time"

	"switchyard/dev/browsertest"
	"switchyard/dev/processes"
	"switchyard/dev/testneeds"
)

const (
	// largeInstances is the size of the measured fan-out.
	largeInstances = 10_000
	// watchFor is how long the memory of a page is measured.
	watchFor = time.Minute

	maxPaint      = time.Second // on an idle machine; printed
	maxBytes      = 200_000
	maxHeapGrowth = 4 << 20
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
// memory constant. It prints times instead of checking them, because they depend on the machine.
func TestLongPageOfALargeRunIsLight(t *testing.T) {
	testneeds.Long(t)
	s := startStack(t)
	address := fmt.Sprintf("127.0.0.1:%d", testneeds.FreePort(t))
	s.startGateway(t, address)
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
}

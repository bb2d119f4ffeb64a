package browsertest

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// Screenshot writes the viewport to a PNG file.
func (tab *Tab) Screenshot(path string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, limit)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		tab.t.Fatalf("take a screenshot: %v", err)
	}
	image, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		tab.t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, image); err != nil {
		tab.t.Fatal(err)
	}
	if err := os.WriteFile(path, small.Bytes(), 0o644); err != nil {
		tab.t.Fatal(err)
	}
}

// HeapBytes returns the memory of the objects of the page's scripts after a garbage collection.
func (tab *Tab) HeapBytes() int {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, limit)
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		tab.t.Fatalf("collect garbage: %v", err)
	}
	return tab.metric("JSHeapUsedSize")
}

// Nodes returns the number of nodes in the documents of the page, including detached ones.
func (tab *Tab) Nodes() int {
	tab.t.Helper()
	return tab.metric("Nodes")
}

// metric returns a metric of the browser for this tab.
func (tab *Tab) metric(name string) int {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, limit)
	defer cancel()
	if _, err := chromedp.Call(ctx, performance.Enable, performance.EnableParams{}); err != nil {
		tab.t.Fatalf("enable metrics: %v", err)
	}
	result, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		tab.t.Fatalf("read metrics: %v", err)
	}
	for _, m := range result.Metrics {
		if m.Name == name {
			return int(m.Value)
		}
	}
	tab.t.Fatalf("the browser has no metric %s", name)
	return 0
}

// BytesReceived returns the number of encoded bytes that the tab has received over the network, including headers and
// open streams.
func (tab *Tab) BytesReceived() int {
	return tab.record.snapshot().bytes
}

// FirstPaint returns the time from the start of the navigation until the first content was painted.
func (tab *Tab) FirstPaint() time.Duration {
	tab.t.Helper()
	const entry = `performance.getEntriesByName("first-contentful-paint")[0]`
	tab.WaitTrue(entry)
	return time.Duration(Eval[float64](tab, entry+".startTime") * float64(time.Millisecond))
}

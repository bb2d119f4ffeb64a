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

// Screenshot writes what the viewport shows to a PNG file.
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

// HeapBytes returns how much memory the objects of the page's scripts have after a collection of garbage.
func (tab *Tab) HeapBytes() int {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, limit)
	defer cancel()
	if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		tab.t.Fatalf("collect garbage: %v", err)
	}
	return tab.metric("JSHeapUsedSize")
}

// Nodes returns how many nodes the documents of the page have, those included that no document holds any more.
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

// BytesReceived returns how many bytes the tab has received over the network, headers and open streams included, as they were
// encoded.
func (tab *Tab) BytesReceived() int {
	return tab.record.snapshot().bytes
}

// FirstPaint returns when the page has painted its first content, from the moment at which the tab began to open it.
func (tab *Tab) FirstPaint() time.Duration {
	tab.t.Helper()
	const entry = `performance.getEntriesByName("first-contentful-paint")[0]`
	tab.WaitTrue(entry)
	return time.Duration(Eval[float64](tab, entry+".startTime") * float64(time.Millisecond))
}

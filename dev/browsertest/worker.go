package browsertest

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// workers records what the shared workers of a profile do. What a worker does before the browser has attached to it is lost.
type workers struct {
	ctx     context.Context
	mu      sync.Mutex
	records []*record
	pending sync.WaitGroup
}

// watchWorkers returns the workers of a profile, which the context of its first tab belongs to.
func watchWorkers(ctx context.Context) (*workers, error) {
	w := &workers{ctx: ctx}
	profile := chromedp.FromContext(ctx).BrowserContextID
	err := chromedp.ListenBrowser(ctx, func(event any) {
		if e, ok := event.(*target.EventTargetCreated); ok && e.TargetInfo.Type == "shared_worker" && e.TargetInfo.BrowserContextID == cdp.BrowserContextID(profile) {
			w.pending.Go(func() { w.attach(e.TargetInfo) })
		}
	})
	return w, err
}

// attach begins to record a worker. It fails if the worker has ended already.
func (w *workers) attach(info *target.Info) {
	r := newRecord(originOf(info.URL))
	w.mu.Lock()
	w.records = append(w.records, r)
	w.mu.Unlock()
	ctx, _ := chromedp.NewContext(w.ctx, chromedp.WithTargetID(info.TargetID), chromedp.WithDetachOnCancel(), chromedp.WithListener(r.add)) // ends with w.ctx
	_ = chromedp.Do(ctx)
}

// of returns the records of the workers of an origin.
func (w *workers) of(origin string) []*record {
	w.mu.Lock()
	defer w.mu.Unlock()
	var own []*record
	for _, r := range w.records {
		if r.origin == origin {
			own = append(own, r)
		}
	}
	return own
}

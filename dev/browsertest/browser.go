package browsertest

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchyard/dev/testneeds"
)

// limit bounds each step of a browser. It is far beyond what a step takes, so that a slow machine fails no test.
const limit = time.Minute

// browser is the browser of this process while at least one profile uses it.
var browser struct {
	mu       sync.Mutex
	profiles int
	ctx      context.Context
	stop     func() error
}

// acquire returns the context of the running browser, and starts it for the first profile. The cleanup of the last profile
// ends it.
func acquire(t testing.TB) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		testneeds.Missing(t, "chromium is not installed")
	}
	browser.mu.Lock()
	defer browser.mu.Unlock()
	if browser.profiles == 0 {
		if browser.ctx, browser.stop, err = start(path); err != nil {
			t.Fatalf("start %s: %v", path, err)
		}
	}
	browser.profiles++
	t.Cleanup(func() { release(t) })
	return browser.ctx
}

// release ends the browser if its last profile has ended.
func release(t testing.TB) {
	browser.mu.Lock()
	defer browser.mu.Unlock()
	browser.profiles--
	if browser.profiles > 0 {
		return
	}
	if err := browser.stop(); err != nil {
		t.Errorf("end the browser: %v", err)
	}
}

// start starts a browser in a folder of its own, which the returned function removes when it ends the browser. Hosts other
// than this machine have no address in it.
func start(path string) (context.Context, func() error, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-crash-reporter", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost , EXCLUDE ::1"),
	)
	allocator, release := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		release()
		return nil, nil, err
	}
	stop := func() error {
		bounded, done := context.WithTimeout(ctx, limit)
		defer done()
		err := chromedp.Cancel(bounded)
		release() // waits for the process and its folder
		return err
	}
	return ctx, stop, nil
}

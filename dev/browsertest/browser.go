package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchyard/dev/testneeds"
)

// limit bounds each step of a browser. It far exceeds the time that a step takes, so that no test fails on a slow
// machine.
const limit = 3 * time.Minute

// browser is the browser of this process. It runs while at least one profile uses it, or until the end of Run.
var browser struct {
	mu       sync.Mutex
	kept     bool
	profiles int
	ctx      context.Context
	stop     func() error // nil if no browser runs
}

// Run runs the tests of a package with one browser, which starts with the first profile and ends after the last test.
// TestMain calls Run.
func Run(m interface{ Run() int }) int {
	browser.kept = true
	code := m.Run()
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, "end the browser:", err)
		return 1
	}
	return code
}

// end ends the browser if one runs.
func end() error {
	if browser.stop == nil {
		return nil
	}
	defer func() { browser.stop = nil }()
	return browser.stop()
}

// acquire returns the context of the browser, which it starts for the first profile.
func acquire(t testing.TB) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		testneeds.Missing(t, "chromium is not installed")
	}
	browser.mu.Lock()
	defer browser.mu.Unlock()
	if browser.stop == nil {
		if browser.ctx, browser.stop, err = start(path); err != nil {
			t.Fatalf("start %s: %v", path, err)
		}
	}
	browser.profiles++
	t.Cleanup(func() { release(t) })
	return browser.ctx
}

// release ends the browser after its last profile, unless Run keeps it.
func release(t testing.TB) {
	browser.mu.Lock()
	defer browser.mu.Unlock()
	browser.profiles--
	if browser.profiles > 0 || browser.kept {
		return
	}
	if err := end(); err != nil {
		t.Errorf("end the browser: %v", err)
	}
}

// start starts a browser in a folder of its own. It returns a function that ends the browser and removes the folder.
// The browser resolves no hosts other than this machine.
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
		release() // waits for the process and removes its folder
		return err
	}
	return ctx, stop, nil
}

package scriptedmodel

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	openaisdk "github.com/openai/openai-go/v3"
)

// statusOf returns the HTTP status in an error of a client, or 0.
func statusOf(err error) int {
	var a *anthropicsdk.Error
	var o *openaisdk.Error
	switch {
	case errors.As(err, &a):
		return a.StatusCode
	case errors.As(err, &o):
		return o.StatusCode
	}
	return 0
}

// outcomes returns the outcomes of all requests.
func outcomes(model *Server) []Outcome {
	var all []Outcome
	for _, request := range model.Requests() {
		all = append(all, request.Outcome)
	}
	return all
}

func TestRefusalsEndAfterTheirTimes(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, 529} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			fault := &Fault{Times: 2, Status: status, RetryAfter: time.Millisecond}
			eachClient(t, func(t *testing.T, c client) {
				model, server := start(t, Script{Rules: []Rule{{Reply: Reply{Text: "At last."}, Fault: fault}}})
				ask := caller{url: server.URL, http: server.Client(), key: testKey}
				if _, err := c.ask(bounded(t), ask, says("now")); statusOf(err) != status {
					t.Fatalf("without retries: %v, want status %d", err, status)
				}
				ask.retries = 2
				got, err := c.ask(bounded(t), ask, says("now"))
				if err != nil || got.Text != "At last." {
					t.Fatalf("with retries: %+v, %v", got, err)
				}
				requests := model.Requests()
				if len(requests) != 3 || requests[1].Status != status || requests[1].Outcome != OutcomeRefused || model.Delivered() != 1 {
					t.Errorf("outcomes %v, status %d", outcomes(model), requests[1].Status)
				}
			})
		})
	}
}

func TestRetryAfterIsInWholeSecondsAndMilliseconds(t *testing.T) {
	t.Parallel()
	_, server := start(t, Script{Rules: []Rule{{Fault: &Fault{Status: 429, RetryAfter: 1500 * time.Millisecond}}}})
	for _, path := range []string{"/v1/messages", "/v1/chat/completions"} {
		response := post(t, server, path, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`)
		if response.Header.Get("Retry-After") != "2" || response.Header.Get("Retry-After-Ms") != "1500" {
			t.Errorf("%s: %d %v", path, response.StatusCode, response.Header)
		}
	}
}

func TestBrokenRepliesAreErrors(t *testing.T) {
	t.Parallel()
	text := "a reply that is long enough to be sent in several chunks"
	for _, test := range []struct {
		name  string
		fault Fault
	}{
		{"cut before the first chunk", Fault{Break: BreakCut}},
		{"cut in the middle", Fault{Break: BreakCut, After: 2}},
		{"cut before the end", Fault{Break: BreakCut, After: 1000}},
		{"malformed event", Fault{Break: BreakMalformed, After: 1}},
		{"error event", Fault{Break: BreakError, After: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachClient(t, func(t *testing.T, c client) {
				fault := test.fault
				model, server := start(t, Script{Rules: []Rule{{Reply: Reply{Text: text}, Fault: &fault}}})
				got, err := c.ask(bounded(t), caller{url: server.URL, http: server.Client(), key: testKey}, says("go"))
				if err == nil {
					t.Fatalf("got %+v and no error", got)
				}
				if c.isStream && fault.After < 1000 && got.Chunks != fault.After {
					t.Errorf("%d chunks, want %d", got.Chunks, fault.After)
				}
				waitUntil(t, "no handler is left", func() bool { return model.Open() == 0 })
				if model.Delivered() != 0 {
					t.Errorf("outcomes %v", outcomes(model))
				}
			})
		})
	}
}

// TestTruncatedStreamsLookWhole shows why a client must check for a stop reason: no official client reports an error.
func TestTruncatedStreamsLookWhole(t *testing.T) {
	t.Parallel()
	script := Script{Rules: []Rule{{Reply: Reply{Text: "a reply of more than one chunk"}, Fault: &Fault{Break: BreakTruncate, After: 1}}}}
	eachClient(t, func(t *testing.T, c client) {
		model, server := start(t, script)
		got, err := c.ask(bounded(t), caller{url: server.URL, http: server.Client(), key: testKey}, says("go"))
		if c.isStream != (err == nil) {
			t.Errorf("error %v", err)
		}
		if got.StopReason != "" || model.Delivered() != 0 {
			t.Errorf("stop reason %q, outcomes %v", got.StopReason, outcomes(model))
		}
	})
}

func TestBreakEndsAfterItsTimes(t *testing.T) {
	t.Parallel()
	script := Script{Rules: []Rule{{Reply: Reply{Text: "a reply of more than one chunk"}, Fault: &Fault{Times: 1, Break: BreakCut, After: 1}}}}
	eachClient(t, func(t *testing.T, c client) {
		model, server := start(t, script)
		ask := caller{url: server.URL, http: server.Client(), key: testKey}
		if _, err := c.ask(bounded(t), ask, says("go")); err == nil {
			t.Fatal("no error")
		}
		if _, err := c.ask(bounded(t), ask, says("go")); err != nil {
			t.Fatal(err)
		}
		if model.Delivered() != 1 || model.Repeated() != 0 {
			t.Errorf("outcomes %v", outcomes(model))
		}
	})
}

func TestHandlersEndWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	text := "a reply that is long enough to be sent in several chunks"
	for _, test := range []struct {
		name       string
		pace       Pace
		fault      *Fault
		streamOnly bool // without streaming, the reply is complete
		silent     bool // the stream has no chunk to wait for
	}{
		{name: "slow first byte", pace: Pace{Delay: time.Hour}, silent: true},
		{name: "slow chunks", pace: Pace{ChunkDelay: time.Hour}, streamOnly: true},
		{name: "slow only once", fault: &Fault{Times: 1, Pace: &Pace{Delay: time.Hour}}, silent: true},
		{name: "stall", fault: &Fault{Break: BreakStall, After: 1}},
		{name: "stall before the first chunk", fault: &Fault{Break: BreakStall}, silent: true},
		{name: "endless", fault: &Fault{Break: BreakEndless, After: 1}},
		{name: "endless but slow", pace: Pace{ChunkDelay: time.Millisecond}, fault: &Fault{Break: BreakEndless, After: 1000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachClient(t, func(t *testing.T, c client) {
				if test.streamOnly && !c.isStream {
					return // only streams have chunks
				}
				model, server := start(t, Script{Rules: []Rule{{Reply: Reply{Text: text}, Pace: test.pace, Fault: test.fault}}})
				ctx, cancel := context.WithCancel(bounded(t))
				defer cancel()
				var left time.Time
				leave := func() { left = time.Now(); cancel() }
				ask := caller{url: server.URL, http: server.Client(), key: testKey}
				if c.isStream && !test.silent {
					ask.onChunk = func() {
						if left.IsZero() {
							leave()
						}
					}
				}
				done := make(chan error, 1)
				go func() {
					_, err := c.ask(ctx, ask, says("go"))
					done <- err
				}()
				if ask.onChunk == nil {
					waitUntil(t, "the request arrives", func() bool { return len(model.Requests()) == 1 })
					leave()
				}
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(left); took > patience {
					t.Errorf("the client returned %v after it was cancelled", took)
				}
				waitUntil(t, "no handler is left", func() bool { return model.Open() == 0 })
				if got := outcomes(model); got[0] != OutcomeAbandoned && got[0] != OutcomeBroken {
					t.Errorf("outcomes %v", got)
				}
			})
		})
	}
}

func TestEndlessStreamRepeatsItsChunk(t *testing.T) {
	t.Parallel()
	script := Script{Rules: []Rule{{Reply: Reply{Text: "again "}, Fault: &Fault{Break: BreakEndless}}}}
	eachClient(t, func(t *testing.T, c client) {
		if !c.isStream {
			return // only streams have chunks
		}
		_, server := start(t, script)
		ctx, cancel := context.WithCancel(bounded(t))
		defer cancel()
		chunks := 0
		ask := caller{url: server.URL, http: server.Client(), key: testKey, onChunk: func() {
			if chunks++; chunks == 1000 {
				cancel()
			}
		}}
		if _, err := c.ask(ctx, ask, says("go")); !errors.Is(err, context.Canceled) || chunks < 1000 {
			t.Errorf("%d chunks, error %v", chunks, err)
		}
	})
}

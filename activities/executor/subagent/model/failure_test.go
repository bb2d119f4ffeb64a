package model

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/dev/scriptedmodel"
	"switchyard/dev/testneeds"
)

func TestRefusalsAreClassified(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		for _, test := range []struct {
			status int
			kind   Kind
			text   string
		}{
			{429, RateLimited, "limits the rate of requests (429: "},
			{529, Overloaded, "is overloaded (529: "},
			{503, Overloaded, "is overloaded (503: "},
			{500, Unavailable, "failed (500: "},
			{502, Unavailable, "failed (502: "},
			{504, Unavailable, "failed (504: "},
			{408, Unavailable, "failed (408: "},
			{400, Refused, `refused the request to model "test-model" (400: `},
			{402, Refused, "; add credit"},
			{403, Refused, `does not allow the key to use model "test-model" (403: `},
			{413, Refused, "; the conversation is too long for the model"},
			{404, Refused, `model "test-model"`},
		} {
			fault := &scriptedmodel.Fault{Times: 1, Status: test.status, RetryAfter: 1500 * time.Millisecond}
			model, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "At last."}, Fault: fault})
			c := ask(t, provider, server, nil)
			e := failure(t, c, says("go"))
			if e.Kind != test.kind || e.Status != test.status || e.RetryAfter != 1500*time.Millisecond || !strings.Contains(e.Error(), test.text) {
				t.Errorf("%d: %+v", test.status, e)
			}
			if e.IsTemporary() != (test.kind != Refused) {
				t.Errorf("%d: temporary %v", test.status, e.IsTemporary())
			}
			if reply, err := c.Reply(bounded(t), says("go"), nil); err != nil || reply.Stop != StopEnd || len(model.Requests()) != 2 {
				t.Errorf("%d: reply %+v, error %v after %d requests", test.status, reply, err, len(model.Requests()))
			}
		}
	})
}

func TestRefusalsOfKeysNameTheirSources(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		_, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "ok"}})
		variable := map[string]string{providerAnthropic: "ANTHROPIC_API_KEY", providerOpenAI: "OPENAI_API_KEY"}[provider]
		for key, want := range map[string]string{"sk-wrong": "refused the key (401: ", "": "the task has none (401: "} {
			c := ask(t, provider, server, func(o *Options) { o.Key = key })
			e := failure(t, c, says("go"))
			for _, part := range []string{want, "secretEnv " + variable, "--agent-key-file"} {
				if e.Kind != Refused || !strings.Contains(e.Error(), part) {
					t.Errorf("key %q: %+v lacks %q", key, e, part)
				}
			}
		}
	})
}

func TestErrorsNeverContainTheKey(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		for _, body := range []string{
			`{"error": {"message": "Incorrect API key provided: ` + testKey + `"}}`, `{"error": "` + testKey + `"}`, testKey,
			strings.Repeat("x", maxAnswer-8) + testKey, "event: error\ndata: {\"error\": {\"message\": \"" + testKey + "\"}}\n\n",
			"event: message_start\ndata: " + testKey + "\n\n",
		} {
			for _, status := range []int{200, 400, 401, 404, 500} {
				e := failure(t, ask(t, provider, raw(t, status, "text/event-stream", body), nil), says("go"))
				if strings.Contains(e.Error(), testKey[:8]) {
					t.Errorf("status %d: %v", status, e)
				}
			}
		}
	})
}

func TestUnknownModelsAreNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ provider, body string }{
		{providerAnthropic, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-nope"}}`},
		{providerOpenAI, `{"error":{"message":"The model 'claude-nope' does not exist","type":"invalid_request_error","code":"model_not_found"}}`},
		{providerOpenAI, `{"error":"model 'claude-nope' not found"}`},
	} {
		r := says("go")
		r.Model = "claude-nope"
		e := failure(t, ask(t, test.provider, raw(t, 404, "application/json", test.body), nil), r)
		if e.Kind != Refused || !strings.Contains(e.Error(), `does not have model "claude-nope" (404: `) || !strings.Contains(e.Error(), "check the task's model") {
			t.Errorf("%s: %v", test.body, e)
		}
	}
	e := failure(t, ask(t, providerOpenAI, raw(t, 404, "text/html", "<h1>Not\x1b[31m Found</h1>"), nil), says("go"))
	if !strings.Contains(e.Error(), "(404: <h1>Not[31m Found</h1>); check the task's model and baseUrl") {
		t.Errorf("%q", e)
	}
}

func TestSpentCreditIsNotARateLimit(t *testing.T) {
	t.Parallel()
	server := raw(t, 429, "application/json", `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`)
	if e := failure(t, ask(t, providerOpenAI, server, nil), says("go")); e.Kind != Refused || !strings.Contains(e.Error(), "add credit") {
		t.Errorf("%+v", e)
	}
}

func TestBrokenRepliesAreUnavailable(t *testing.T) {
	t.Parallel()
	text := "a reply that is long enough to be sent in several chunks"
	for _, test := range []struct {
		name  string
		fault scriptedmodel.Fault
		kind  Kind
		text  string
	}{
		{"cut before the first chunk", scriptedmodel.Fault{Break: scriptedmodel.BreakCut}, Unavailable, "broke off its reply"},
		{"cut in the middle", scriptedmodel.Fault{Break: scriptedmodel.BreakCut, After: 2}, Unavailable, "broke off its reply"},
		{"cut before the end", scriptedmodel.Fault{Break: scriptedmodel.BreakCut, After: 1000}, Unavailable, "broke off its reply"},
		{"truncated", scriptedmodel.Fault{Break: scriptedmodel.BreakTruncate, After: 1}, Unavailable, "without a stop reason"},
		{"truncated before the end", scriptedmodel.Fault{Break: scriptedmodel.BreakTruncate, After: 1000}, Unavailable, "without a stop reason"},
		{"malformed", scriptedmodel.Fault{Break: scriptedmodel.BreakMalformed, After: 1}, Unavailable, "malformed event"},
		{"stalled", scriptedmodel.Fault{Break: scriptedmodel.BreakStall, After: 1}, Unavailable, "has sent nothing for 200ms"},
		{"stalled before the first chunk", scriptedmodel.Fault{Break: scriptedmodel.BreakStall}, Unavailable, "has sent nothing for 200ms"},
		{"stalled before the header", scriptedmodel.Fault{Pace: &scriptedmodel.Pace{Delay: time.Hour}}, Unavailable, "has sent nothing for 200ms"},
		{"error event", scriptedmodel.Fault{Break: scriptedmodel.BreakError, After: 1}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachProvider(t, func(t *testing.T, provider string) {
				fault := test.fault
				model, server := serve(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: text}, Pace: scriptedmodel.Pace{ChunkSize: 16}, Fault: &fault})
				c := ask(t, provider, server, func(o *Options) {
					if strings.HasPrefix(test.name, "stalled") {
						o.StallTimeout = 200 * time.Millisecond
					}
				})
				e := failure(t, c, says("go"))
				kind := test.kind
				if kind == "" { // the providers report different errors
					kind = map[string]Kind{providerAnthropic: Overloaded, providerOpenAI: Unavailable}[provider]
				}
				if e.Kind != kind || !e.IsTemporary() || !strings.Contains(e.Error(), test.text) {
					t.Errorf("%+v", e)
				}
				testneeds.Await(t, "no handler is left", func() bool { return model.Open() == 0 })
			})
		})
	}
}

func TestSlowRepliesDoNotStall(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			server := serveInBubble(t, scriptedmodel.Rule{
				Reply: scriptedmodel.Reply{Text: strings.Repeat("slow ", 30)}, Pace: scriptedmodel.Pace{ChunkDelay: time.Second, ChunkSize: 5},
			})
			c := ask(t, provider, server, func(o *Options) { o.StallTimeout = 2 * time.Second })
			if _, err := c.Reply(bounded(t), says("go"), nil); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestSlowCallerDoesNotCountAsStall(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		synctest.Test(t, func(t *testing.T) {
			server := serveInBubble(t, scriptedmodel.Rule{Reply: scriptedmodel.Reply{Text: "a reply of more than one chunk"}})
			c := ask(t, provider, server, func(o *Options) { o.StallTimeout = 2 * time.Second })
			if _, err := c.Reply(bounded(t), says("go"), func(string) { time.Sleep(5 * time.Second) }); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestCancelEndsARequest(t *testing.T) {
	t.Parallel()
	cause := errors.New("the task was cancelled")
	for _, test := range []struct {
		name string
		rule scriptedmodel.Rule
		text bool
	}{
		{"before the header", scriptedmodel.Rule{Pace: scriptedmodel.Pace{Delay: time.Hour}}, false},
		{"between slow chunks", scriptedmodel.Rule{Pace: scriptedmodel.Pace{ChunkDelay: time.Hour}}, true},
		{"in a stall", scriptedmodel.Rule{Fault: &scriptedmodel.Fault{Break: scriptedmodel.BreakStall, After: 1}}, true},
		{"in an endless reply", scriptedmodel.Rule{Fault: &scriptedmodel.Fault{Break: scriptedmodel.BreakEndless, After: 1}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachProvider(t, func(t *testing.T, provider string) {
				rule := test.rule
				rule.Reply.Text = "a reply that is long enough to be sent in several chunks"
				model, server := serve(t, rule)
				ctx, cancel := context.WithCancelCause(bounded(t))
				done := make(chan error, 1)
				go func() {
					_, err := ask(t, provider, server, nil).Reply(ctx, says("go"), func(string) { cancel(cause) })
					done <- err
				}()
				if !test.text {
					testneeds.Await(t, "the request arrives", func() bool { return len(model.Requests()) == 1 })
					cancel(cause)
				}
				if err := <-done; !errors.Is(err, cause) {
					t.Errorf("error %v", err)
				}
				testneeds.Await(t, "no handler is left", func() bool { return model.Open() == 0 })
			})
		})
	}
}

func TestUnreachableProvidersAreUnavailable(t *testing.T) {
	t.Parallel()
	const address = "127.0.0.1:1" // a port that no server uses
	eachProvider(t, func(t *testing.T, provider string) {
		c, err := New(Options{Provider: provider, BaseURL: "http://" + address, Key: testKey})
		if err != nil {
			t.Fatal(err)
		}
		e := failure(t, c, says("go"))
		if e.Kind != Unavailable || e.Status != 0 || !strings.Contains(e.Error(), address) || !strings.Contains(e.Error(), "refused; check the task's baseUrl") {
			t.Errorf("%+v", e)
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the key went to another server") }))
		defer elsewhere.Close()
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
		defer server.Close()
		e := failure(t, ask(t, provider, server, nil), says("go"))
		if e.Kind != Refused || !strings.Contains(e.Error(), "redirects to another address (307: "+elsewhere.URL) {
			t.Errorf("%v", e)
		}
	})
}

func TestNonStreamResponsesAreReported(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, provider string) {
		e := failure(t, ask(t, provider, raw(t, 200, "text/html", "<html>log in</html>"), nil), says("go"))
		if e.Kind != Unavailable || !strings.Contains(e.Error(), `answered with "text/html" instead of an event stream`) {
			t.Errorf("%v", e)
		}
	})
}

package subagent

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/dev/scriptedmodel"
	v1 "switchyard/proto/switchyard/v1"
)

func TestAgentAnswers(t *testing.T) {
	t.Parallel()
	for _, provider := range v1.Providers() {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			c := newTrial(t, scriptedmodel.Rule{
				When:  scriptedmodel.When{User: "before: none"},
				Reply: scriptedmodel.Reply{Text: "It is done.", Usage: &scriptedmodel.Usage{Input: 1000, Output: 100}},
			})
			c.spec["provider"], c.spec["contextSummary"] = provider, "before: none"
			c.env["OPENAI_API_KEY"] = "secret-key"
			result, output := c.must()
			if output["text"] != "It is done." || c.stdout.String() != "It is done.\n" {
				t.Errorf("output %v, log %q", output, c.stdout.String())
			}
			u := result.Agent.Usage
			if u.GetTurns() != 1 || u.GetInputTokens() != 1000 || u.GetOutputTokens() != 100 || u.GetCostUsd() <= 0 || u.GetModel() != "claude-sonnet-5" {
				t.Errorf("usage %v", u)
			}
			if e := result.Agent.Events; len(e) != 1 || result.Agent.Own != 1 || e[0].GetEvent() != v1.EventTurn || e[0].GetTurn() != 1 || e[0].GetInputTokens() != 1000 || e[0].GetAt() == nil {
				t.Errorf("events %v", e)
			}
		})
	}
}

func TestAgentUsesItsTools(t *testing.T) {
	t.Parallel()
	c := newTrial(t,
		scriptedmodel.Rule{When: turns(0), Reply: calls("write_file", `{"path": "plan.txt", "content": "one\ntwo\n"}`)},
		scriptedmodel.Rule{When: turns(1), Reply: calls("shell", `{"command": "wc -l < plan.txt; env | grep -c API_KEY; pwd"}`)},
		scriptedmodel.Rule{When: turns(2), Reply: says("two lines")},
	)
	c.executor.o.Shell = shells
	c.spec["tools"] = []any{"shell", "files"}
	result, output := c.must()
	if output["text"] != "two lines" {
		t.Errorf("output %v", output)
	}
	if got := c.stderr.String(); !strings.HasPrefix(strings.TrimSpace(got), "2\n0\n") {
		t.Errorf("the command printed %q", got)
	}
	if u := result.Agent.Usage; u.GetTurns() != 3 || u.GetToolCalls() != 2 {
		t.Errorf("usage %v", u)
	}
	var kinds []string
	for _, e := range result.Agent.Events {
		kinds = append(kinds, e.GetEvent()+e.GetTool())
	}
	if got := strings.Join(kinds, " "); got != "turn tool_callwrite_file turn tool_callshell turn" {
		t.Errorf("events %s", got)
	}
	if len(c.journal.archive) == 0 {
		t.Error("the directory was not archived")
	}
}

// TestKilledAgentContinues kills an agent after each of its records in turn. No recorded reply is requested again, no
// call that began is repeated, and the directory is restored.
func TestKilledAgentContinues(t *testing.T) {
	t.Parallel()
	rules := []scriptedmodel.Rule{
		{When: turns(0), Reply: calls("shell", `{"command": "echo x >> count; cat count"}`)},
		{When: turns(1), Reply: calls("shell", `{"command": "wc -l < count"}`)},
		{When: turns(2), Reply: says("done")},
	}
	for after := 1; after <= 6; after++ {
		c := newTrial(t, rules...)
		c.executor.o.Shell = shells
		c.spec["tools"] = []any{"shell"}
		c.journal.failAfter = after
		if _, _, err := c.run(t.Context()); err == nil {
			t.Fatalf("after %d entries nothing is killed", after)
		}
		c.journal.failAfter = 0
		paid := c.requests()
		result, output := c.must()
		if output["text"] != "done" || result.Agent.Usage.GetTurns() != 3 || result.Agent.Usage.GetToolCalls() != 2 {
			t.Errorf("killed after %d entries: output %v, usage %v", after, output, result.Agent.Usage)
		}
		replies := map[int]int{1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2}[after] // recorded before the kill
		if again := c.requests() - paid; again != 3-replies {
			t.Errorf("killed after %d entries, with %d replies recorded, it asked for %d; notices %q", after, replies, again, c.notices)
		}
		unknown := strings.Contains(string(mustJSON(t, c.provider.Requests())), "outcome of this call is unknown")
		if began := after == 2 || after == 5; unknown != began {
			t.Errorf("killed after %d entries: told of an unknown outcome: %v", after, unknown)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestLimitsEndAnAgentThatContinuesWithLargerOnes(t *testing.T) {
	t.Parallel()
	for reason, limit := range map[string]map[string]any{
		v1.ReasonMaxTurns: {"maxTurns": 1.0}, v1.ReasonMaxCost: {"maxCostUsd": 0.000001},
	} {
		c := newTrial(t,
			scriptedmodel.Rule{When: turns(0), Reply: calls("list_files", `{}`)},
			scriptedmodel.Rule{When: turns(1), Reply: says("done")},
		)
		c.spec["tools"] = []any{"files"}
		for k, v := range limit {
			c.spec[k] = v
		}
		c.mustFail(reason, "its limit is")
		if n := len(c.provider.Requests()); n != 1 {
			t.Errorf("%s: %d requests", reason, n)
		}
		for k := range limit {
			delete(c.spec, k)
		}
		result, output := c.must()
		if output["text"] != "done" || result.Agent.Usage.GetTurns() != 2 || len(c.provider.Requests()) != 2 || result.Agent.Before.GetTurns() != 1 {
			t.Errorf("%s: output %v, agent %v", reason, output, result.Agent)
		}
		// The first attempt has already reported its turn.
		if e := result.Agent.Events; len(e) != 2 || e[0].GetEvent() != v1.EventToolCall || result.Agent.Own != 2 {
			t.Errorf("%s: events %v", reason, e)
		}
	}
}

func TestMismatchedAnswersAreCorrected(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"type": "object", "required": []any{"score"}, "properties": map[string]any{"score": map[string]any{"type": "integer"}}}
	c := newTrial(t,
		scriptedmodel.Rule{When: turns(0), Reply: says("I think it is 7.")},
		scriptedmodel.Rule{When: scriptedmodel.When{User: "does not match"}, Reply: says("```json\n{\"score\": 7}\n```")},
	)
	c.spec["outputSchema"] = schema
	if _, output := c.must(); output["score"] != 7.0 {
		t.Errorf("output %v", output)
	}
	c = newTrial(t, scriptedmodel.Rule{Reply: says(`{"score": "high"}`)})
	c.spec["outputSchema"] = schema
	c.mustFail(v1.ReasonOutput, "after 3 corrections")
	if n := len(c.provider.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// TestAnswersThatAreCutOffAreContinued cuts an answer off twice, and kills the agent in between.
func TestAnswersThatAreCutOffAreContinued(t *testing.T) {
	t.Parallel()
	cut := func(text string) scriptedmodel.Reply {
		return scriptedmodel.Reply{Text: text, StopReason: scriptedmodel.StopMaxTokens}
	}
	for killedAfter := range 6 {
		c := newTrial(t,
			scriptedmodel.Rule{When: turns(0), Reply: cut(`{"text": "one, `)}, scriptedmodel.Rule{When: turns(1), Reply: cut(`two, `)},
			scriptedmodel.Rule{When: turns(2), Reply: says(`three"}`)},
		)
		c.spec["outputSchema"] = map[string]any{"type": "object", "required": []any{"text"}}
		if c.journal.failAfter = killedAfter; killedAfter > 0 {
			if _, _, err := c.run(t.Context()); err == nil && killedAfter < 5 {
				t.Fatalf("after %d entries nothing is killed", killedAfter)
			}
			c.journal.failAfter = 0
		}
		if result, output := c.must(); output["text"] != "one, two, three" || result.Agent.Usage.GetTurns() != 3 {
			t.Errorf("killed after %d entries: output %v, usage %v", killedAfter, output, result.Agent.Usage)
		}
	}
}

func TestTemporaryProviderFailureDoesNotFailTheAttempt(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]scriptedmodel.Fault{
		"rate limit": {Times: 2, Status: 429}, "overload": {Times: 2, Status: 529}, "error": {Times: 3, Status: 500},
		"cut": {Times: 2, Break: scriptedmodel.BreakCut, After: 1}, "truncated": {Times: 1, Break: scriptedmodel.BreakTruncate, After: 1},
		"malformed": {Times: 1, Break: scriptedmodel.BreakMalformed, After: 1},
	} {
		c := newTrial(t, scriptedmodel.Rule{Reply: says("done after all"), Fault: &fault})
		if result, output := c.must(); output["text"] != "done after all" || result.Agent.Usage.GetTurns() != 1 {
			t.Errorf("%s: output %v, usage %v", name, output, result.Agent.Usage)
		}
		if len(c.notices) < fault.Times || !strings.Contains(c.notices[0], "trying again in") {
			t.Errorf("%s: notices %q", name, c.notices)
		}
	}
}

func TestPermanentProviderFailureNamesTheProvider(t *testing.T) {
	t.Parallel()
	c := newTrial(t, scriptedmodel.Rule{Reply: says("never"), Fault: &scriptedmodel.Fault{Status: 500}})
	c.executor.patience = 50 * time.Millisecond
	c.mustFail(v1.ReasonProvider, "the provider has been failing for")
	c = newTrial(t, scriptedmodel.Rule{Reply: says("never")})
	c.env["ANTHROPIC_API_KEY"] = "wrong-key"
	failed := c.mustFail(v1.ReasonProvider, "ANTHROPIC_API_KEY")
	if strings.Contains(failed.Failure.Err.Error(), "wrong-key") {
		t.Errorf("the key is in %v", failed.Failure.Err)
	}
}

// TestAReplyThatDoesNotEndIsNotAskedForAgain checks that an agent pays for an endless reply at most once per attempt.
func TestAReplyThatDoesNotEndIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	c := newTrial(t, scriptedmodel.Rule{
		Reply: says(strings.Repeat("more and more ", 1000)), Pace: scriptedmodel.Pace{ChunkSize: 14_000}, Fault: &scriptedmodel.Fault{Break: scriptedmodel.BreakEndless},
	})
	c.mustFail(v1.ReasonProvider, "does not end its reply")
	if n := c.requests(); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
}

func TestInvalidCallsGetAnErrorResult(t *testing.T) {
	t.Parallel()
	c := newTrial(t,
		scriptedmodel.Rule{When: turns(0), Reply: calls("read_fil", `{}`)},
		scriptedmodel.Rule{When: turns(1), Reply: calls("read_file", `{"path": "plan`)},
		scriptedmodel.Rule{When: turns(2), Reply: calls("read_file", `{"path": "../input.json"}`)},
		scriptedmodel.Rule{When: turns(3), Reply: says("given up")},
	)
	c.spec["tools"] = []any{"files"}
	result, output := c.must()
	if output["text"] != "given up" {
		t.Errorf("output %v", output)
	}
	failed := 0
	for _, e := range result.Agent.Events {
		if e.GetEvent() == v1.EventToolCall && e.GetError() != "" {
			failed++
		}
	}
	if failed != 3 {
		t.Errorf("%d of 3 calls failed: %v", failed, result.Agent.Events)
	}
}

func TestCancelEndsARequestInFlight(t *testing.T) {
	t.Parallel()
	c := newTrial(t, scriptedmodel.Rule{Reply: says("slow"), Pace: scriptedmodel.Pace{Delay: time.Minute}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for c.provider.Open() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	result, _, err := c.run(ctx)
	if err != nil || !result.Stopped || result.Failure != nil {
		t.Errorf("result %+v, error %v", result, err)
	}
}

func TestAttemptsThatCannotStartSayWhatHelps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(c *trial)
		want   string
		bad    bool
	}{
		"no model":       {func(c *trial) { delete(c.spec, "model"); c.spec["provider"] = "openai" }, "model is empty", true},
		"unknown field":  {func(c *trial) { c.spec["modle"] = "x" }, "modle", true},
		"unknown tool":   {func(c *trial) { c.spec["tools"] = []any{"browser"} }, "available: shell, files, fetch, fleet", true},
		"tool of a node": {func(c *trial) { c.spec["tools"] = []any{"fetch"} }, "--agent-tools", false},
		"no sandbox":     {func(c *trial) { c.spec["tools"] = []any{"shell"} }, "sandbox", false},
		"no price":       {func(c *trial) { c.spec["model"], c.spec["maxCostUsd"] = "llama", 1.0 }, "--agent-prices", false},
		"no key":         {func(c *trial) { delete(c.spec, "baseUrl"); delete(c.env, "ANTHROPIC_API_KEY") }, "--agent-key-file", false},
		"no schema":      {func(c *trial) { c.spec["outputSchema"] = map[string]any{"type": "objekt"} }, "outputSchema", true},
	} {
		c := newTrial(t, scriptedmodel.Rule{Reply: says("never")})
		test.change(c)
		_, _, err := c.run(t.Context())
		start := executor.AsStartError(err)
		if start == nil || start.BadSpec != test.bad || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.provider.Requests()) > 0 {
			t.Errorf("%s: the model was asked", name)
		}
	}
}

// asProvider redirects requests for a provider to a test server.
type asProvider struct {
	server string
	base   http.RoundTripper
}

func (p asProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(p.server, "http://")
	return p.base.RoundTrip(r)
}

func TestKeyOfTheNodeIsUsedWithoutATaskKey(t *testing.T) {
	t.Parallel()
	c := newTrial(t, scriptedmodel.Rule{Reply: says("done")})
	delete(c.env, "ANTHROPIC_API_KEY")
	delete(c.spec, "baseUrl")
	client := c.executor.o.HTTPClient
	c.executor.o.HTTPClient = &http.Client{Transport: asProvider{c.url, client.Transport}}
	file := filepath.Join(t.TempDir(), "key")
	c.executor.o.KeyFiles = map[string]string{v1.ProviderAnthropic: file}
	for text, works := range map[string]bool{"secret-key\n": true, "\n": false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		result, _, err := c.run(t.Context())
		if works != (err == nil && result.Failure == nil) || err != nil && !strings.Contains(err.Error(), "is empty") {
			t.Errorf("a file with %q: %+v, %v", text, result.Failure, err)
		}
		c.journal = &memory{}
	}
	c.spec["baseUrl"] = c.url // another server does not get the key
	c.executor.o.HTTPClient = client
	c.mustFail(v1.ReasonProvider, "at the provider's own address")
}

// TestModelReadsNoSecrets runs a command that prints a secret of its task. Neither the provider nor the journal gets
// the secret.
func TestModelReadsNoSecrets(t *testing.T) {
	t.Parallel()
	c := newTrial(t,
		scriptedmodel.Rule{When: turns(0), Reply: calls("shell", `{"command": "echo \"$DEPLOY\""}`)},
		scriptedmodel.Rule{When: scriptedmodel.When{ToolResultText: "***"}, Reply: says("done")},
	)
	c.executor.o.Shell = shells
	c.spec["tools"] = []any{"shell"}
	const secret = `hunter"2`
	c.env["DEPLOY"] = secret
	c.mask = func(text string) string { return strings.ReplaceAll(text, secret, "***") }
	c.must()
	for _, entry := range c.journal.entries {
		if strings.Contains(string(entry), "hunter") {
			t.Errorf("the journal has %s", entry)
		}
	}
}

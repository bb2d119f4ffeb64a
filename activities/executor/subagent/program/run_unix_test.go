//go:build unix

package program

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

func TestProgramDrivesAnAgentToItsResult(t *testing.T) {
	t.Parallel()
	o := lead(t, script{
		text: `
printf '%s\n' "$@" >args; cat >prompt
init; say m1 'I look.'; call m1 t1; answer t1 'a file' false; call m2 t2; answer t2 'no such file' true
echo '{"type":"stream_event","event":{}}'
say m3 'It is done.'; result 'It is done.'`,
		options: Options{Model: "big", System: "be brief", MaxTurns: 7, Prompt: strings.Repeat("a long prompt\n", 20_000)},
	})
	if o.err != nil || o.report.Failure != nil || o.result.ExitCode != 0 || o.result.Stopped {
		t.Fatalf("result %+v, failure %+v, error %v; log %q", o.result, o.report.Failure, o.err, o.log)
	}
	if o.spawns != 1 || !slices.Equal(o.sessions, []string{"s-1"}) || o.report.Session != "s-1" {
		t.Errorf("spawned %d times, sessions %v, session %q", o.spawns, o.sessions, o.report.Session)
	}
	if o.report.Text != "It is done." {
		t.Errorf("text %q", o.report.Text)
	}
	if want := "I look.\n[Bash] {\"command\":\"ls -l\"}\n[Bash] {\"command\":\"ls -l\"}\nIt is done.\n"; o.log != want {
		t.Errorf("log %q, want %q", o.log, want)
	}
	u := o.report.Usage
	if u.Turns != 3 || u.ToolCalls != 2 || u.InputTokens != 100 || u.OutputTokens != 50 || u.CacheWriteTokens != 7 || u.CostUsd != 0.25 || u.Model != "scripted-1" || u.Session != "s-1" {
		t.Errorf("usage %+v", u)
	}
	var events []string
	for _, e := range o.report.Events {
		events = append(events, strings.TrimSpace(e.Event+" "+e.Tool+" "+e.Error))
		if e.At.AsTime().IsZero() || e.TookMs < 0 {
			t.Errorf("event %+v", e)
		}
	}
	if want := []string{"turn", "tool_call Bash", "turn", "tool_call Bash no such file", "turn"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	if e := o.report.Events[0]; e.InputTokens != 13 || e.OutputTokens != 5 || e.Turn != 1 {
		t.Errorf("first turn %+v", e)
	}
	want := "-p --output-format stream-json --verbose --model big --max-turns 7 --append-system-prompt be brief"
	if got := strings.Join(strings.Split(strings.TrimSpace(read(t, o, "args")), "\n"), " "); got != want {
		t.Errorf("arguments %q, want %q", got, want)
	}
	if got := read(t, o, "prompt"); got != strings.Repeat("a long prompt\n", 20_000) {
		t.Errorf("the program has read a prompt of %d bytes", len(got))
	}
}

func read(t *testing.T, o outcome, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.workDir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProgramExitDecidesTheAttempt(t *testing.T) {
	t.Parallel()
	brief := Options{Grace: briefGrace} // for programs that do not exit by themselves
	for name, test := range map[string]struct {
		script
		failure, reason string // empty means none
		code            int
		text, log       string // the log must contain log
	}{
		"exits 1 after its result":       {script: script{text: `init; result done; exit 1`}, text: "done", log: "done\n"},
		"is killed after its result":     {script: script{text: `init; result done; kill -9 $$`}, text: "done"},
		"hangs after its result":         {script: script{text: `init; result done; forever`, options: brief}, text: "done"},
		"ignores SIGTERM after it":       {script: script{text: `trap '' TERM; init; result done; forever`, options: brief, grace: briefGrace}, text: "done"},
		"leaves children behind":         {script: script{text: `init; sleep 100000 & (setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &); result done`, grace: briefGrace}, text: "done"},
		"prints for ever after it":       {script: script{text: `init; result done; while :; do say m "more and more"; done`, options: brief}, text: "done"},
		"a second result":                {script: script{text: `init; result done; result again`}, text: "done"},
		"a result without its line end":  {script: script{text: `init; printf '%s' "$(result done)"`}, text: "done"},
		"no prompt is read":              {script: script{text: `exec <&-; init; result done`, options: Options{Prompt: strings.Repeat("x", 1<<20)}}, text: "done"},
		"no result":                      {script: script{text: `init; say m1 hm`}, reason: v1.ReasonExitCode, failure: "the program ended without a result line", text: "hm"},
		"no line at all":                 {script: script{text: `exit 0`}, reason: v1.ReasonExitCode, failure: "the program ended without a result line"},
		"no result and an exit code":     {script: script{text: `init; say m1 hm; echo broken >&2; exit 3`}, code: 3, text: "hm", log: "broken\n"},
		"a partial last line":            {script: script{text: `init; printf '{"type":"result","subty'`}, reason: v1.ReasonExitCode, failure: "the program ended without a result line", log: `{"type":"result","subty`},
		"garbage lines":                  {script: script{text: `echo 'Warning: old'; echo '{"broken'; echo '[1]'; echo '{"type":"news"}'; echo '{"type":"assistant","message":7}'; init; result done`}, text: "done", log: "Warning: old\n{\"broken\n[1]\n{\"type\":\"assistant\",\"message\":7}\n"},
		"odd values":                     {script: script{text: `echo '{"type":"result","subtype":"success","result":"ok","total_cost_usd":"much","num_turns":-3,"usage":{"input_tokens":1e99,"output_tokens":null},"errors":7}'`}, text: "ok"},
		"a huge line":                    {script: script{text: `init; printf '{"type":"assistant","message":{"content":"'; head -c 20000000 /dev/zero | tr '\0' x; echo '"}}'; result done`}, text: "done", log: "[line cut: 20000045 bytes are too long]"},
		"a huge result":                  {script: script{text: `init; printf '{"type":"result","result":"'; head -c 20000000 /dev/zero | tr '\0' x; echo '"}'`}, reason: v1.ReasonOutput, failure: "the result line of the program is longer than 8 MiB"},
		"max turns":                      {script: script{text: `init; say m1 hm; echo '{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":7}'; exit 1`}, reason: v1.ReasonMaxTurns, failure: "the program reached its limit of turns (7)", code: 1, text: "hm"},
		"max cost":                       {script: script{text: `init; say m1 hm; echo '{"type":"result","subtype":"error_max_budget_usd","is_error":true,"total_cost_usd":0.5}'`}, reason: v1.ReasonMaxCost, failure: "the program reached its cost limit ($0.5000)", text: "hm"},
		"error during execution":         {script: script{text: `init; say m1 hm; echo '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["it","broke"]}'; exit 1`}, reason: v1.ReasonExitCode, failure: "the program reports error_during_execution: it; broke", code: 1, text: "hm"},
		"its provider refuses":           {script: script{text: `init; echo '{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low"}'`}, reason: v1.ReasonProvider, failure: "the program reports an error: Credit balance is too low", text: "Credit balance is too low"},
		"a session that is no id":        {script: script{text: `echo '{"type":"system","subtype":"init","session_id":"--evil"}'; result done`}, text: "done"},
		"tokens are those of the result": {script: script{text: `init; say m1 hm; result done`}, text: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := lead(t, test.script)
			if o.err != nil || o.result.Stopped || o.result.ExitCode != test.code {
				t.Errorf("result %+v, error %v; want exit code %d", o.result, o.err, test.code)
			}
			var got executor.Failure
			if o.report.Failure != nil {
				got = *o.report.Failure
			}
			if got.Reason != test.reason || test.reason != "" && got.Err.Error() != test.failure {
				t.Errorf("failure %q %v, want %q %q", got.Reason, got.Err, test.reason, test.failure)
			}
			if o.report.Text != test.text {
				t.Errorf("text %q, want %q", o.report.Text, test.text)
			}
			if !strings.Contains(o.log, test.log) {
				t.Errorf("log %.300q, want %q in it", o.log, test.log)
			}
		})
	}
}

func TestACancelledProgramIsStopped(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]script{
		"waits":                       {text: `init; say m1 ready; forever`},
		"ignores SIGTERM":             {text: `trap '' TERM; init; say m1 ready; forever`, grace: briefGrace},
		"prints for ever":             {text: `init; say m1 ready; while :; do say m "more and more"; done`},
		"gives a result when stopped": {text: `trap 'result interrupted; exit 0' TERM; init; say m1 ready; forever`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.cancelOn = "ready"
			o := lead(t, s)
			if o.err != nil || !o.result.Stopped || o.report.Failure != nil {
				t.Errorf("result %+v, failure %+v, error %v; want it stopped", o.result, o.report.Failure, o.err)
			}
			if o.report.Usage.Turns < 1 || o.report.Session != "s-1" {
				t.Errorf("usage %+v of session %q", o.report.Usage, o.report.Session)
			}
		})
	}
}

func TestALaterAttemptResumesTheSession(t *testing.T) {
	t.Parallel()
	o := lead(t, script{text: `echo "$*" >args; cat >prompt; init; say m1 'on we go'; result done`, options: Options{Resume: "s-0", Prompt: "build the house"}})
	if o.err != nil || o.report.Failure != nil {
		t.Fatalf("failure %+v, error %v", o.report.Failure, o.err)
	}
	if args := read(t, o, "args"); !strings.HasSuffix(strings.TrimSpace(args), "--resume s-0") {
		t.Errorf("arguments %q", args)
	}
	if prompt := read(t, o, "prompt"); !strings.HasPrefix(prompt, "You were interrupted.") || !strings.HasSuffix(prompt, "build the house") {
		t.Errorf("prompt %q", prompt)
	}
}

func TestMissingSessionIsReplacedByANewOne(t *testing.T) {
	t.Parallel()
	o := lead(t, script{text: `
case "$*" in *--resume*) echo "No conversation found" >&2; exit 1;; esac
cat >prompt; init; say m1 'from the start'; result done`, options: Options{Resume: "s-0", Prompt: "build the house"}})
	if o.err != nil || o.report.Failure != nil || o.report.Text != "done" || o.report.Session != "s-1" {
		t.Fatalf("report %+v, error %v", o.report, o.err)
	}
	if prompt := read(t, o, "prompt"); prompt != "build the house" {
		t.Errorf("prompt %q", prompt)
	}
	if o.spawns != 1 || len(o.notices) != 1 {
		t.Errorf("spawned %d times, notices %q", o.spawns, o.notices)
	}
}

func TestASessionThatCannotBeRecordedEndsTheAttempt(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	o := lead(t, script{text: `init; forever`, journal: full})
	if !errors.Is(o.err, full) {
		t.Errorf("error %v, want %v", o.err, full)
	}
}

func TestAFailingLogDoesNotLoseTheResult(t *testing.T) {
	t.Parallel()
	o := lead(t, script{text: `init; say m1 hm; result done`, log: failingLog{}})
	if !errors.Is(o.err, os.ErrClosed) || o.report.Text != "done" {
		t.Errorf("error %v, text %q", o.err, o.report.Text)
	}
}

type failingLog struct{}

func (failingLog) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAProgramThatCannotStartIsTheFaultOfItsTask(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options Options
		bad     bool
	}{
		"no such program": {Options{Command: []string{"switchyard-no-such-agent"}}, false},
		"no command":      {Options{Command: []string{}}, true},
		"a long system":   {Options{Command: []string{"true"}, System: strings.Repeat("x", 1<<20)}, true},
		"a NUL":           {Options{Command: []string{"true"}, Model: "a\x00b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := lead(t, script{options: test.options})
			start := executor.AsStartError(o.err)
			if start == nil || start.BadSpec != test.bad || o.spawns != 0 || o.report.Failure != nil {
				t.Errorf("error %v (bad spec %v), spawned %d times", o.err, start != nil && start.BadSpec, o.spawns)
			}
		})
	}
}

func TestAnAgentOfManyTurnsKeepsTheNewestEvents(t *testing.T) {
	t.Parallel()
	o := lead(t, script{text: `init; i=0; while [ $i -lt 2500 ]; do i=$((i+1)); say m$i hm; done; result done`})
	events := o.report.Events
	if o.report.Usage.Turns != 2500 || len(events) != 1000 || events[999].Turn != 2500 || events[0].Turn != 1501 {
		t.Errorf("%d turns, %d events", o.report.Usage.Turns, len(events))
	}
}

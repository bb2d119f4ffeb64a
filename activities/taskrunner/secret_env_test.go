package taskrunner

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/logs"
	"switchyard/activities/secrets"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/secretref"
)

const secretValue = "hunter2-correct-horse"

// testSecrets holds values by reference.
type testSecrets map[string]string

func (s testSecrets) Resolve(_ context.Context, ref secretref.Reference, _ secrets.Requester) (string, error) {
	if value, ok := s[ref.String()]; ok {
		return value, nil
	}
	return "", fmt.Errorf("secret %s: there is none", ref)
}

// logOf returns the content of an attempt's log, including notices.
func (b *bench) logOf(attempt logs.Attempt) string {
	b.t.Helper()
	var text strings.Builder
	for number := int64(0); ; {
		entries, next, ended, err := logs.Read(b.t.Context(), b.Store, attempt, number)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range entries {
			text.Write(e.GetData())
		}
		if ended || next == number {
			return text.String()
		}
		number = next
	}
}

// wantNoSecret fails the test if a message or text contains a secret's value or the base64 form of one.
func wantNoSecret(t *testing.T, what string, in any) {
	t.Helper()
	text := fmt.Sprint(in)
	if m, ok := in.(*historyv1.ExecuteResponse); ok {
		text = prototext.Format(m)
	}
	for _, form := range []string{secretValue, secretValue[4:], base64.StdEncoding.EncodeToString([]byte(secretValue))[:12]} {
		if strings.Contains(text, form) {
			t.Errorf("%s has the secret: %s", what, text)
		}
	}
}

// The output and files of a task contain no secret values, while its environment does.
func TestSecretsAreMaskedInEverythingThatATaskLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	b.Secrets = testSecrets{"env:TOKEN": secretValue, "store:pin": "12345678", "file:/x": "ab"}
	req := request("a")
	req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN", "PIN": "store:pin", "SHORT": "file:/x"}
	req.Spec = command(t, `
		test "$TOKEN" = hunter2-correct-""horse || exit 9
		printf 'it is %.10s' "$TOKEN"; sleep 0.05; printf '%s\n' "${TOKEN#hunter2-co}"
		echo "$TOKEN" | base64 >&2
		echo "$SHORT"; echo "$SHORT and more"
		printf '{"plain": "%s", "pin": %s, "list": [{"%s": "x%sy"}], "escaped": "\\u0068unter2-correct-horse"}' "$TOKEN" "$PIN" "$TOKEN" "$TOKEN" >"$SWITCHYARD_OUTPUT"
		echo "token=$TOKEN" >"$SWITCHYARD_CONTEXT_UPDATE"
	`)
	res := b.start(t.Context(), req).answer()
	want(t, res, "completed", "")
	wantNoSecret(t, "the answer", res)
	out := res.GetResult().GetOutput().AsMap()
	if fmt.Sprint(out) != "map[escaped:*** list:[map[***:x***y]] pin:*** plain:***]" || res.GetResult().GetContextUpdate().AsMap()["token"] != "***" {
		t.Errorf("the output is %v, the update of the context %v", out, res.GetResult().GetContextUpdate())
	}
	if got := res.GetResult().GetStdout(); got != "it is ***\n***\nab and more\n" {
		t.Errorf("stdout is %q", got)
	}
	log := b.logOf(logs.Attempt{Run: "r-1", Task: "a", Claim: 1})
	wantNoSecret(t, "the log", log)
	if !strings.Contains(log, "it is ***\n") || !strings.Contains(log, "the secret SHORT has fewer than 4 characters") {
		t.Errorf("the log is %q", log)
	}
}

// Secrets are masked in the error, the checkpoint, the heartbeats and the records of a failed attempt.
func TestSecretsAreMaskedInFailures(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"exit code":  `echo "cannot log in with $TOKEN" >&2; exit 1`,
		"bad output": `echo "the line $TOKEN is no pair" >"$SWITCHYARD_OUTPUT"`,
		"checkpoint": `echo "$TOKEN" >"$SWITCHYARD_CHECKPOINT"; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil).withShell()
			b.Secrets = testSecrets{"env:TOKEN": secretValue}
			req := request("a")
			req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN"}
			req.Spec = command(t, script)
			res := b.start(t.Context(), req).answer()
			if res.GetState() != v1.TaskFailed || !strings.Contains(prototext.Format(res), "***") {
				t.Errorf("%v", res)
			}
			wantNoSecret(t, "the answer", res)
			for _, beat := range b.server.heard() {
				wantNoSecret(t, "a heartbeat", prototext.Format(beat))
			}
			_, failure := activityEnd(res, nil)
			wantNoSecret(t, "the failure", failure)
		})
	}
}

// Neither a start error nor a fault of the node reveals the environment of the program.
func TestSecretsAreMaskedInFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{
		"a": {{StartErr: &executor.StartError{Err: errors.New("exec: TOKEN=" + secretValue + ": too long")}}},
		"b": {{Err: errors.New("engine: bad variable TOKEN=" + secretValue)}},
	})
	b.Secrets = testSecrets{"env:TOKEN": secretValue}
	for _, task := range []string{"a", "b"} {
		req := request(task)
		req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN"}
		e := b.start(t.Context(), req)
		<-e.done
		if text := e.res.GetError() + fmt.Sprint(e.err); !strings.Contains(text, "TOKEN=***") {
			t.Errorf("%s: %s", task, text)
		}
		wantNoSecret(t, task, e.res)
		wantNoSecret(t, task, e.err)
	}
}

// Without a secret's value nothing starts, and the error names the variable and the reference.
func TestMissingSecretFailsTheAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.Secrets = testSecrets{"env:OTHER": secretValue}
	req := request("a")
	req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN", "OTHER": "env:OTHER"}
	res := b.start(t.Context(), req).answer()
	want(t, res, "failed", "bad_spec")
	if want := "secretEnv.TOKEN: secret env:TOKEN: there is none"; res.GetError() != want {
		t.Errorf("error %q, want %q", res.GetError(), want)
	}
	batch := batchOf(0, 1)
	batch.SecretEnv = req.GetSecretEnv()
	for _, m := range b.start(t.Context(), batch).answer().GetBatch() {
		if m.GetReason() != "bad_spec" || m.GetError() != res.GetError() {
			t.Errorf("a member of a batch: %v", m)
		}
	}
	b.Secrets = nil
	req.Claim = 2
	if res := b.start(t.Context(), req).answer(); res.GetReason() != "bad_spec" || !strings.Contains(res.GetError(), "node n gives tasks no secrets") {
		t.Errorf("on a node without secrets: %v", res)
	}
	if calls := b.fake.Calls(); len(calls) != 0 {
		t.Errorf("%v were started", calls)
	}
}

// unavailable is a source that answers from the third call on.
type unavailable struct {
	testSecrets
	asked atomic.Int32
}

func (u *unavailable) Resolve(ctx context.Context, ref secretref.Reference, who secrets.Requester) (string, error) {
	if u.asked.Add(1) < 3 {
		return "", fmt.Errorf("secret %s: %w", ref, secrets.ErrUnavailable)
	}
	if who.Run != "r-1" || who.Task != "each[1]" || who.Index != 1 || who.Claim != 3 || who.Attempt != 2 || who.Node != "n" || who.Home == "" {
		return "", fmt.Errorf("it was asked for by %+v", who)
	}
	return u.testSecrets.Resolve(ctx, ref, who)
}

// An unavailable secret store delays an attempt. The store learns which attempt asks.
func TestAttemptWaitsForUnavailableSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string][]fake.Step{"each": {{}}})
	b.Secrets = &unavailable{testSecrets: testSecrets{"store:token": secretValue}}
	req := request("each")
	req.Index, req.Count, req.Attempt, req.Claim = new(int32(1)), 2, 2, 3
	req.SecretEnv = map[string]string{"TOKEN": "store:token"}
	want(t, b.start(t.Context(), req).answer(), "completed", "")
	if env := b.fake.Calls()[0].Attempt.Env; env["TOKEN"] != secretValue {
		t.Errorf("the program was given %v", env)
	}
}

// Secrets are masked for each member of a batch, even if one member's output ends with the beginning of a value.
func TestSecretsAreMaskedInBatches(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil).withShell()
	b.Secrets = testSecrets{"env:TOKEN": secretValue}
	req := batchOf(0, 1, 2)
	req.InlineLimit = 1000
	req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN"}
	req.Spec = command(t, `printf 'is %s and %.8s' "$TOKEN" "$TOKEN"; echo "token=$TOKEN" >"$SWITCHYARD_OUTPUT"`)
	res := b.start(t.Context(), req).answer()
	wantNoSecret(t, "the answer", res)
	if len(res.GetBatch()) != 3 {
		t.Fatalf("%v", res)
	}
	for _, m := range res.GetBatch() {
		// A beginning of a value is not masked on its own.
		if m.GetResult().GetStdout() != "is *** and hunter2-" || m.GetResult().GetOutput().AsMap()["token"] != "***" {
			t.Errorf("%v", m)
		}
	}
}

// A worker that continues an attempt masks the secret values that the attempt was given, even if the source has changed
// since. It continues the log where it ended.
func TestReattachedAttemptHasItsMasks(t *testing.T) {
	t.Parallel()
	step := fake.Step{Stdout: "one\nand " + secretValue + "\n", Output: "token=" + secretValue}
	h := killed(t, step, func(req *historyv1.ExecuteRequest) { req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN"} })
	text := ""
	_ = filepath.WalkDir(h.State.Dir, func(path string, _ os.DirEntry, _ error) error {
		data, _ := os.ReadFile(path)
		text += string(data)
		return nil
	})
	if wantNoSecret(t, "the state of the node", text); !strings.Contains(text, "env:TOKEN") {
		t.Errorf("the state of the node has no reference: %s", text)
	}
	h.Secrets = testSecrets{"env:TOKEN": "another-value"}
	h.recovers()
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	res := h.server.answered("token")
	wantNoSecret(t, "the answer", res)
	if got := res.GetResult(); got.GetStdout() != "one\nand ***\n" || got.GetOutput().AsMap()["token"] != "***" {
		t.Errorf("%v", got)
	}
	h.settled()
	if log := h.logOf(attemptLog); log != "one\nand ***\n" {
		t.Errorf("the log is %q", log)
	}
}

// If the secrets of an attempt are not known any more, its output is discarded.
func TestReattachedAttemptWithUnknownSecretsIsMoved(t *testing.T) {
	t.Parallel()
	h := killed(t, fake.Step{Stdout: "one\nand " + secretValue + "\n"}, func(req *historyv1.ExecuteRequest) {
		req.SecretEnv = map[string]string{"TOKEN": "env:TOKEN"}
	})
	h.survivor.ForgetEnv()
	h.recovers()
	testneeds.Await(t, "the activity is answered", func() bool { return h.server.answered("token") != nil })
	want(t, h.server.answered("token"), "moved", "incarnation")
	if removed := h.survivor.Removed(); len(removed) != 1 {
		t.Errorf("%v were removed", removed)
	}
}

// Numbers that are not secret stay numbers, and a struct without secrets is not copied.
func TestMaskedStructKeepsWhatIsNoSecret(t *testing.T) {
	of, err := structpb.NewStruct(map[string]any{"n": 1.5, "t": true, "x": nil, "l": []any{"a", 2.0}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSecretEnv(map[string]string{"A": secretValue})
	if got := s.maskStruct(of); fmt.Sprint(got.AsMap()) != fmt.Sprint(of.AsMap()) {
		t.Errorf("%v", got)
	}
	if none := newSecretEnv(nil); none.maskStruct(of) != of {
		t.Error("copied")
	}
}

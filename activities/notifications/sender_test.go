package notifications

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/hostlist"
	"switchyard/activities/secrets/vault"
	"switchyard/activities/store/storetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

var signingKey = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))

// failedRun is a notice with all of its fields.
var failedRun = &historyv1.Notice{
	Run: "nightly-7k3x2p9d", Workflow: "nightly", State: v1.RunFailed, Reason: v1.ReasonTaskFailed, Error: "task build failed: exit code 2",
	At: timestamppb.New(time.Date(2026, 11, 30, 2, 14, 9, 0, time.UTC)), Failures: 1, Url: "https://yard.example.com/ui/runs/nightly-7k3x2p9d", SubmittedBy: "ann",
	Failed: []*historyv1.FailedTask{{Name: "build", State: v1.TaskDeadLetter, Reason: v1.ReasonExitCode, Error: "exit code 2", Lines: []string{"cc -c x.c", "make: *** [all] Error 2"}}},
}

// message returns a message to the target ops.
func message() *historyv1.NotificationMessage {
	return &historyv1.NotificationMessage{Target: "ops", Event: v1.NotifyFailed, Key: "msg_0123", Title: "nightly-7k3x2p9d failed: task build failed: exit code 2", Text: "call the <on-call> & sleep"}
}

// newSender returns a sender with the target ops. secrets holds the values of the stored secrets by name.
func newSender(t *testing.T, target *v1.NotificationTarget, secrets map[string]string, allow ...string) *Sender {
	t.Helper()
	kept := storetest.Open(t, "mem://")
	v, targets := vault.New(kept, filepath.Join(t.TempDir(), "key"), time.Now), NewTargets(kept, time.Now)
	for name, value := range secrets {
		if _, err := v.Set(t.Context(), name, []byte(value), v1.RoleOperator, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := Check(target); err != nil {
		t.Fatal(err)
	}
	if _, _, err := targets.Put(t.Context(), "ops", target, ""); err != nil {
		t.Fatal(err)
	}
	s := NewSender(targets, v, hostlist.List(allow), time.Now)
	t.Cleanup(s.Close)
	return s
}

// webhookTo returns a sender to a webhook.
func webhookTo(t *testing.T, url string, allow ...string) *Sender {
	t.Helper()
	target := &v1.NotificationTarget{Config: &v1.NotificationTarget_Webhook{Webhook: &v1.WebhookTarget{Url: url, Secret: "store:hook"}}}
	return newSender(t, target, map[string]string{"hook": signingKey + "\n"}, allow...)
}

func TestWebhookIsSigned(t *testing.T) {
	var document map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verifier, err := standardwebhooks.NewWebhook(signingKey)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		if err == nil {
			err = json.Unmarshal(body, &document)
		}
		if err != nil || r.Header.Get("webhook-id") != "msg_0123" || r.Method != http.MethodPost {
			t.Errorf("%v: %s %v", err, r.Method, r.Header)
		}
	}))
	defer server.Close()
	answer, err := webhookTo(t, server.URL, "127.0.0.1").Send(t.Context(), failedRun, message())
	if err != nil || answer != "200 OK" {
		t.Fatalf("%q, %v", answer, err)
	}
	data := document["data"].(map[string]any)
	failed := data["failed"].([]any)[0].(map[string]any)
	if document["type"] != "run.failed" || document["timestamp"] != "2026-11-30T02:14:09Z" || data["run"] != failedRun.GetRun() || data["message"] != message().GetText() || data["url"] != failedRun.GetUrl() ||
		failed["name"] != "build" || fmt.Sprint(failed["log"]) != "[cc -c x.c make: *** [all] Error 2]" {
		t.Errorf("the document is %v", document)
	}
}

func TestRefusalsOfReceiversAreUnderstood(t *testing.T) {
	for _, c := range []struct {
		status    int
		header    string
		want      string
		permanent bool
		after     time.Duration
	}{
		{http.StatusInternalServerError, "", "answered 500 Internal Server Error: too hot", false, 0},
		{http.StatusTooManyRequests, "7", "429", false, 7 * time.Second},
		{http.StatusServiceUnavailable, "999999999", "503", false, longestWait},
		{http.StatusNotFound, "-4", "404", false, 0},
		{http.StatusGone, "", "410", true, 0},
		{http.StatusBadRequest, "", "400", true, 0},
		{http.StatusFound, "", "redirects are not followed", false, 0},
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Location", "/other")
			w.Header().Set("Retry-After", c.header)
			w.WriteHeader(c.status)
			fmt.Fprint(w, "too\n hot")
		}))
		_, err := webhookTo(t, server.URL+"/secret-path", "127.0.0.1").Send(t.Context(), failedRun, message())
		server.Close()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-path") || IsPermanent(err) != c.permanent || RetryAfter(err) != c.after || requests != 1 {
			t.Errorf("%d: %v, permanent %t, after %s, %d requests", c.status, err, IsPermanent(err), RetryAfter(err), requests)
		}
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer server.Close()
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	for _, url := range []string{server.URL, "http://localhost" + port, "http://[::ffff:127.0.0.1]" + port, "http://169.254.169.254/latest"} {
		_, err := webhookTo(t, url).Send(t.Context(), failedRun, message())
		if err == nil || !strings.Contains(err.Error(), "which is not a public internet address; start the gateways with --notify-allow ") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestErrorsNameTheRemedyAndNoSecret(t *testing.T) {
	hook := func(url, secret string) *v1.NotificationTarget {
		return &v1.NotificationTarget{Config: &v1.NotificationTarget_Webhook{Webhook: &v1.WebhookTarget{Url: url, Secret: secret}}}
	}
	s := newSender(t, hook("store:url", "store:absent"), map[string]string{"url": "https://hooks.example.com/T0/key"})
	if _, err := s.Send(t.Context(), failedRun, message()); err == nil || !strings.Contains(err.Error(), "secret absent does not exist; set it with `switchyard secrets set absent`") {
		t.Errorf("an absent secret: %v", err)
	}
	s = newSender(t, hook("https://hooks.example.com", "store:hook"), map[string]string{"hook": "my password"})
	if _, err := s.Send(t.Context(), failedRun, message()); err == nil || strings.Contains(err.Error(), "password") || !strings.Contains(err.Error(), "is not base64") {
		t.Errorf("a bad key: %v", err)
	}
	if _, err := s.Send(t.Context(), failedRun, &historyv1.NotificationMessage{Target: "other"}); err == nil || !strings.Contains(err.Error(), "no such notification target: other") {
		t.Errorf("an unknown target: %v", err)
	}
	for _, url := range []string{"ftp://x", "hooks.example.com", "https://ann:secret@hooks.example.com/"} {
		if err := Check(hook(url, "store:x")); err == nil || strings.Contains(err.Error(), "ann") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if got := Secrets(hook("store:url", "store:key")); len(got) != 2 {
		t.Errorf("the secrets are %v", got)
	}
}

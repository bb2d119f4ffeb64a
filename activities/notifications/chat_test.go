package notifications

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// huge returns a notice and a message whose texts all exceed the limits of receivers.
func huge() (*historyv1.Notice, *historyv1.NotificationMessage) {
	notice, m := proto.CloneOf(failedRun), message()
	long := strings.Repeat("<é& ", 2000)
	notice.Error, notice.Reason, notice.SubmittedBy, m.Title, m.Text, notice.Failures = long, long, long, long, long, 40
	notice.Failed = nil
	for i := range 10 {
		task := &historyv1.FailedTask{Name: fmt.Sprint("task-", i), State: v1.TaskFailed, Error: long}
		for range 20 {
			task.Lines = append(task.Lines, long[:500])
		}
		notice.Failed = append(notice.Failed, task)
	}
	return notice, m
}

// TestChatsGetWhatTheirSchemasAllow checks the messages that servers in the place of Slack and Teams receive.
func TestChatsGetWhatTheirSchemasAllow(t *testing.T) {
	hugeNotice, hugeMessage := huge()
	for kind, target := range map[string]*v1.NotificationTarget{
		"slack": {Config: &v1.NotificationTarget_Slack{Slack: &v1.SlackTarget{Url: "store:url"}}},
		"teams": {Config: &v1.NotificationTarget_Teams{Teams: &v1.TeamsTarget{Url: "store:url"}}},
	} {
		schema, err := jsonschema.NewCompiler().Compile("testdata/" + kind + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		var body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			body = string(text)
			document, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			if err == nil {
				err = schema.Validate(document)
			}
			if err != nil || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Idempotency-Key") != "msg_0123" || r.URL.Path != "/T0/key" {
				t.Errorf("%s: %v: %s %v", kind, err, r.URL, r.Header)
			}
		}))
		s := newSender(t, target, map[string]string{"url": server.URL + "/T0/key"}, "127.0.0.1")
		if _, err := s.Send(t.Context(), failedRun, message()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		escaped := map[string][]string{"slack": {"dead_letter", "make: *** [all] Error 2"}, "teams": {`dead\\_letter`, `make: \\*\\*\\* \\[all\\] Error 2`}}[kind]
		for _, want := range []string{"nightly-7k3x2p9d failed", escaped[0], escaped[1], failedRun.GetUrl(), "Submitted by"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q: %s", kind, want, body)
			}
		}
		if _, err := s.Send(t.Context(), hugeNotice, hugeMessage); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if kind == "teams" && len(body) > 28<<10 {
			t.Errorf("the card takes %d bytes", len(body))
		}
		if _, err := s.Send(t.Context(), &historyv1.Notice{Run: "r"}, &historyv1.NotificationMessage{Target: "ops", Title: "x", Key: "msg_0123"}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		server.Close()
	}
}

func TestSlackTextIsEscaped(t *testing.T) {
	d := newSlackDocument(failedRun, message())
	if got := d.Blocks[1].Text.Text; got != "call the &lt;on-call&gt; &amp; sleep" {
		t.Errorf("the text is %q", got)
	}
}

func TestCardsShowNoLinksOfTasks(t *testing.T) {
	const link, shown = "[Reset your password](https://evil.example)", `\[Reset your password\](https://evil.example)`
	notice := &historyv1.Notice{Error: link, Reason: link, Failed: []*historyv1.FailedTask{{Name: "a", State: v1.TaskFailed, Error: link, Lines: []string{link}}}}
	card := newTeamsDocument(notice, &historyv1.NotificationMessage{Title: link, Text: link}, teamsLog).Attachments[0].Content
	for _, item := range card.Body {
		texts := []string{item.Text}
		for _, f := range item.Facts {
			texts = append(texts, f.Value)
		}
		if text := strings.Join(texts, ""); strings.Contains(text, link) || !strings.Contains(text, shown) {
			t.Errorf("a card has %q", text)
		}
	}
}

func TestNtfyGetsTextAndTitle(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if len(text) > ntfyText || r.Header.Get("Authorization") != "Bearer tk_1" || r.Header.Get("Priority") != "high" || r.Header.Get("Click") != failedRun.GetUrl() ||
			!strings.Contains(r.Header.Get("Title"), "nightly-7k3x2p9d") && !strings.HasPrefix(r.Header.Get("Title"), "=?utf-8?") || r.URL.Path != "/yard" {
			t.Errorf("%s %v\n%s", r.URL, r.Header, text)
		}
	}))
	defer server.Close()
	target := &v1.NotificationTarget{Config: &v1.NotificationTarget_Ntfy{Ntfy: &v1.NtfyTarget{Url: server.URL + "/yard", Token: "store:token"}}}
	s := newSender(t, target, map[string]string{"token": "tk_1"}, "127.0.0.1")
	hugeNotice, hugeMessage := huge()
	if _, err := s.Send(t.Context(), failedRun, message()); err != nil {
		t.Error(err)
	}
	if _, err := s.Send(t.Context(), hugeNotice, hugeMessage); err != nil {
		t.Error(err)
	}
}

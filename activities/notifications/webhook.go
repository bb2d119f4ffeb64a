package notifications

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// webhookDocument is the body of a webhook, as docs/notifications.md describes it.
type webhookDocument struct {
	Type      string      `json:"type"` // such as "run.failed" or "schedule.late"
	Timestamp time.Time   `json:"timestamp"`
	Data      webhookData `json:"data"`
}

type webhookData struct {
	Run         string        `json:"run,omitempty"`
	Workflow    string        `json:"workflow"`
	Generation  int32         `json:"generation"`
	Task        string        `json:"task,omitempty"`
	State       string        `json:"state,omitempty"`
	Reason      string        `json:"reason,omitempty"`
	Error       string        `json:"error,omitempty"`
	SubmittedBy string        `json:"submittedBy,omitempty"`
	URL         string        `json:"url,omitempty"`
	Title       string        `json:"title"`
	Message     string        `json:"message,omitempty"`
	Failures    int32         `json:"failures"`
	Failed      []webhookTask `json:"failed"`
}

type webhookTask struct {
	Name   string   `json:"name"`
	State  string   `json:"state"`
	Reason string   `json:"reason,omitempty"`
	Error  string   `json:"error,omitempty"`
	Log    []string `json:"log,omitempty"`
}

// webhook sends a message as https://www.standardwebhooks.com specifies.
func (t *try) webhook(ctx context.Context, to *v1.WebhookTarget, notice *historyv1.Notice, message *historyv1.NotificationMessage) (string, error) {
	url, err := t.reveal(ctx, to.GetUrl())
	if err != nil {
		return "", err
	}
	secret, err := t.reveal(ctx, to.GetSecret())
	if err != nil {
		return "", err
	}
	signer, err := newSigner(secret)
	if err != nil {
		return "", err
	}
	body, err := encode(newWebhookDocument(notice, message))
	if err != nil {
		return "", permanent(err)
	}
	now := t.now()
	signature, err := signer.Sign(message.GetKey(), now, body)
	if err != nil {
		return "", err
	}
	return t.post(ctx, url, http.Header{
		"Content-Type": {"application/json"},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookID):        {message.GetKey()},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookTimestamp): {strconv.FormatInt(now.Unix(), 10)},
		http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookSignature): {signature},
	}, body)
}

// newSigner returns what signs messages with a signing key.
func newSigner(key string) (*standardwebhooks.Webhook, error) {
	signer, err := standardwebhooks.NewWebhook(key)
	if err != nil || !strings.HasPrefix(key, "whsec_") {
		return nil, errors.New("the value of its signing key is not base64 after \"whsec_\"") // the cause would show a part of it
	}
	return signer, nil
}

func newWebhookDocument(notice *historyv1.Notice, message *historyv1.NotificationMessage) webhookDocument {
	data := webhookData{
		Run: notice.GetRun(), Workflow: notice.GetWorkflow(), Generation: notice.GetGeneration(), Task: notice.GetTask(), State: notice.GetState(),
		Reason: notice.GetReason(), Error: notice.GetError(), SubmittedBy: notice.GetSubmittedBy(), URL: notice.GetUrl(),
		Title: message.GetTitle(), Message: message.GetText(), Failures: notice.GetFailures(), Failed: []webhookTask{},
	}
	for _, task := range notice.GetFailed() {
		data.Failed = append(data.Failed, webhookTask{task.GetName(), task.GetState(), task.GetReason(), task.GetError(), task.GetLines()})
	}
	subject := "run."
	if notice.GetRun() == "" {
		subject = "schedule."
	}
	return webhookDocument{Type: subject + message.GetEvent(), Timestamp: notice.GetAt().AsTime(), Data: data}
}

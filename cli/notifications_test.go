package cli

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
)

func TestNotificationsPutSendsTheFieldsOfTheFile(t *testing.T) {
	f := fake(t)
	script(f, &v1.PutNotificationTargetResponse{Target: &v1.NotificationTarget{Name: "ops"}, Replaced: true})
	file := write(t, "hook.yaml", "url: https://hooks.example.com/x\nsecret: store:hook\n")
	got := run(t, "notifications", "put", "ops", "--type", "webhook", "--from-file", file, "--gateway", f.url)
	if got.code != 0 || !strings.Contains(got.stderr, "notification target ops is replaced") {
		t.Errorf("%+v", got)
	}
	sent := requests[*v1.PutNotificationTargetRequest](f)[0]
	if sent.GetName() != "ops" || sent.GetTarget().GetWebhook().GetUrl() != "https://hooks.example.com/x" || sent.GetTarget().GetWebhook().GetSecret() != "store:hook" {
		t.Errorf("sent %v", sent)
	}
}

func TestNotificationsPutRefusesUnknownFields(t *testing.T) {
	f := fake(t)
	for text, want := range map[string]string{
		"urll: https://x\n":                   `line 1: unknown field "urll"; did you mean url?`,
		"# hook\nurl: https://x\nname: ops\n": `line 3: unknown field "name"; its type has url, secret`,
		"- a\n":                               "cannot unmarshal",
		"secret: store:x\nurl: [a]\n":         "line 2: url has a value of the wrong type",
		"type: slack\nurl: store:x\n":         "its type is slack, and --type is webhook",
		"url: https://x\nurl: https://y\n":    "already defined",
	} {
		runWith(t, nil, text, "notifications", "put", "ops", "--type", "webhook", "--from-file", "-", "--gateway", f.url).ends(t, exit.CodeUsage, want)
	}
	runWith(t, nil, "", "notifications", "put", "ops", "--gateway", f.url).ends(t, exit.CodeUsage, "--type")
	runWith(t, nil, "url: https://x\n", "notifications", "put", "ops", "--from-file", "-", "--gateway", f.url).ends(t, exit.CodeUsage, "type: in its file")
	runWith(t, nil, "type: pager\n", "notifications", "put", "ops", "--from-file", "-", "--gateway", f.url).ends(t, exit.CodeUsage, "webhook")
	if len(f.asked) != 0 {
		t.Errorf("asked %v", f.asked)
	}
}

func TestNotificationsListAndTest(t *testing.T) {
	f := fake(t)
	script(f, &v1.ListNotificationTargetsResponse{Items: []*v1.NotificationTarget{{Name: "ops", Type: "webhook", UpdatedAt: after(5), UpdatedBy: "ann"}}})
	got := run(t, "notifications", "list", "--gateway", f.url)
	if got.code != 0 || !strings.Contains(got.stdout, "ops") || !strings.Contains(got.stdout, "webhook") {
		t.Errorf("%+v", got)
	}
	script(f, &v1.TestNotificationTargetResponse{Answer: "200 OK", Url: "https://yard.example.com/ui/runs/x"})
	got = run(t, "notifications", "test", "ops", "--gateway", f.url)
	if got.code != 0 || !strings.Contains(got.stderr, "has accepted a test message: 200 OK") || requests[*v1.TestNotificationTargetRequest](f)[0].GetName() != "ops" ||
		!strings.Contains(got.stderr, "https://yard.example.com/ui/runs/x") {
		t.Errorf("%+v", got)
	}
	script(f, &v1.TestNotificationTargetResponse{Answer: "200 OK"})
	if got = run(t, "notifications", "test", "ops", "--gateway", f.url); !strings.Contains(got.stderr, "--external-url") {
		t.Errorf("without a link: %+v", got)
	}
}

func TestNotificationsGetWritesAFileForPut(t *testing.T) {
	f := fake(t)
	config := &v1.NotificationTarget_Email{Email: &v1.EmailTarget{Host: "mail.example.com", Port: 2525, From: "yard@example.com", To: []string{"ops@example.com", "Bob <bob@example.org>"}, Username: "yes", Password: "store:mail"}}
	script(f, &v1.GetNotificationTargetResponse{Target: &v1.NotificationTarget{Name: "ops", Type: "email", Config: config, UpdatedAt: after(5)}})
	got := run(t, "notifications", "get", "ops", "-o", "yaml", "--gateway", f.url)
	if got.code != 0 || !strings.HasPrefix(got.stdout, "type: email\n") {
		t.Fatalf("%+v", got)
	}
	script(f, &v1.PutNotificationTargetResponse{Target: &v1.NotificationTarget{Name: "ops"}})
	if put := run(t, "notifications", "put", "ops", "--from-file", write(t, "mail.yaml", got.stdout), "--gateway", f.url); put.code != 0 {
		t.Fatalf("%+v", put)
	}
	if sent := requests[*v1.PutNotificationTargetRequest](f)[0].GetTarget().GetEmail(); !proto.Equal(sent, config.Email) {
		t.Errorf("sent %v", sent)
	}
}

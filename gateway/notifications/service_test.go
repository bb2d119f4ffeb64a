package notifications

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/hostlist"
	"switchyard/activities/notifications"
	"switchyard/activities/secrets/vault"
	"switchyard/activities/store/storetest"
	"switchyard/dev/servicetest"
	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

func TestServiceStoresAndTestsTargets(t *testing.T) {
	kept := storetest.Open(t, "mem://")
	s := Service{Targets: notifications.NewTargets(kept, time.Now), Vault: vault.New(kept, filepath.Join(t.TempDir(), "key"), time.Now), ExternalURL: func() string { return "https://yard.example.com" }, Now: time.Now}
	s.Sender = notifications.NewSender(s.Targets, s.Vault, hostlist.List{"127.0.0.1"}, time.Now)
	defer s.Sender.Close()
	status := http.StatusAccepted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	ctx := auth.With(t.Context(), &auth.Principal{Name: "ann", Role: v1.Role_ROLE_OPERATOR, Kind: auth.KindToken})

	put := func(name, url string) *v1.PutNotificationTargetRequest {
		return &v1.PutNotificationTargetRequest{Name: name, Target: &v1.NotificationTarget{Config: &v1.NotificationTarget_Webhook{Webhook: &v1.WebhookTarget{Url: url, Secret: "store:hook"}}}}
	}
	servicetest.Refused(t, ctx, s.PutNotificationTarget, put("ops", server.URL), connect.CodeInvalidArgument, "switchyard secrets set hook")
	key := []byte("whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567")))
	if _, err := s.Vault.Set(ctx, "hook", key, v1.RoleAdmin, ""); err != nil {
		t.Fatal(err)
	}
	servicetest.Refused(t, ctx, s.PutNotificationTarget, put("ops", server.URL), connect.CodePermissionDenied)
	if _, err := s.Vault.Set(ctx, "hook", key, v1.RoleOperator, ""); err != nil {
		t.Fatal(err)
	}
	servicetest.Refused(t, ctx, s.PutNotificationTarget, put("ops", "ftp://x"), connect.CodeInvalidArgument)
	without := put("ops", server.URL)
	without.Target.GetWebhook().Secret = ""
	servicetest.Refused(t, ctx, s.PutNotificationTarget, without, connect.CodeInvalidArgument, "webhook.secret is required: ", `echo "whsec_$(`)
	for _, bad := range []string{"hunter2", "c2VjcmV0", "whsec_hunter2"} {
		if _, err := s.Vault.Set(ctx, "bad", []byte(bad), v1.RoleOperator, ""); err != nil {
			t.Fatal(err)
		}
		malformed := put("ops", server.URL)
		malformed.Target.GetWebhook().Secret = "store:bad"
		servicetest.Refused(t, ctx, s.PutNotificationTarget, malformed, connect.CodeInvalidArgument, "secret bad: the value of its signing key is not")
	}
	for _, name := range []string{"ops", "a", "ops"} {
		if got := servicetest.Do(t, ctx, s.PutNotificationTarget, put(name, server.URL)).GetTarget(); got.GetName() != name || got.GetType() != "webhook" || got.GetUpdatedBy() != "ann" {
			t.Errorf("it is %v", got)
		}
	}
	var listed []string
	for _, page := range servicetest.Pages(t, ctx, s.ListNotificationTargets, &v1.ListNotificationTargetsRequest{PageSize: 1}) {
		for _, target := range page.GetItems() {
			listed = append(listed, target.GetName())
		}
	}
	if strings.Join(listed, " ") != "a ops" {
		t.Errorf("listed %v", listed)
	}
	if got := servicetest.Do(t, ctx, s.TestNotificationTarget, &v1.TestNotificationTargetRequest{Name: "ops"}); got.GetAnswer() != "202 Accepted" || !strings.HasPrefix(got.GetUrl(), "https://yard.example.com/ui/runs/test-") {
		t.Errorf("the answer is %v", got)
	}
	status = http.StatusForbidden
	servicetest.Refused(t, ctx, s.TestNotificationTarget, &v1.TestNotificationTargetRequest{Name: "ops"}, connect.CodeAborted)
	servicetest.Do(t, ctx, s.DeleteNotificationTarget, &v1.DeleteNotificationTargetRequest{Name: "ops"})
	servicetest.Refused(t, ctx, s.GetNotificationTarget, &v1.GetNotificationTargetRequest{Name: "ops"}, connect.CodeNotFound)
	servicetest.Refused(t, ctx, s.TestNotificationTarget, &v1.TestNotificationTargetRequest{Name: "op"}, connect.CodeNotFound)
}

package web

import (
	"net/http"
	"testing"
	"time"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	listDeadLetters = switchyardv1connect.RunServiceListDeadLettersProcedure
	retryDeadLetter = switchyardv1connect.RunServiceRetryDeadLetterProcedure
	purgeDeadLetter = switchyardv1connect.RunServicePurgeDeadLetterProcedure
)

func someDeadLetters() *v1.ListDeadLettersResponse {
	letter := func(task string) *v1.DeadLetter {
		return &v1.DeadLetter{Run: "build-1", Task: task, Workflow: "build", Type: "shell", Reason: v1.ReasonExitCode, Error: "exit code 2", DeadLetteredAt: before(time.Hour), Attempts: []*v1.Attempt{
			{Attempt: 0, Node: "n1", State: v1.TaskFailed, Reason: v1.ReasonTimeout, Error: "took longer than 5m"}, {Attempt: 1, Node: "n2", State: v1.TaskFailed, Reason: v1.ReasonExitCode, Error: "exit code 2"},
		}}
	}
	other := letter("push")
	other.Run = "deploy-2"
	return &v1.ListDeadLettersResponse{Items: []*v1.DeadLetter{letter("compile"), letter("test"), other}, Warnings: []string{"run x-1 cannot be read"}, NextPageToken: "more"}
}

func TestDeadLettersShowWhyAndOfferToRetry(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, listDeadLetters, someDeadLetters())
	v := newVisitor(t, f, v1.RoleUser)
	page := v.get("/ui/dead-letters?run=build-1&type=shell&node=n2&page=tok")
	mustBeHarmless(t, page)
	if got := servicetest.Requests[v1.ListDeadLettersRequest](f)[0]; got.GetRun() != "build-1" || got.GetType() != "shell" || got.GetNode() != "n2" || got.GetPageToken() != "tok" {
		t.Errorf("request %v", got)
	}
	mustContain(t, page.text("#dead-build-1-compile"), "dead_letter", "compile", "build-1", "build", "2 attempts", "last on n2", "exit code 2", "exit_code", "took longer than 5m", "Retry all of this run")
	mustNotContain(t, page.text("#dead-build-1-test"), "all of this run")
	mustNotContain(t, page.text("#dead-deploy-2-push"), "all of this run")
	mustContain(t, page.text("#dead-letters-end"), "run x-1 cannot be read", "First page", "Next page")
	servicetest.AnswerWith(f, listDeadLetters, &v1.ListDeadLettersResponse{})
	mustContain(t, v.get("/ui/dead-letters").text("#dead-letters-end"), "There are no dead letters")
}

// TestPurgeAsksFirstWithoutScript checks that the confirmation is a separate page for browsers without script.
func TestPurgeAsksFirstWithoutScript(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, listDeadLetters, someDeadLetters())
	servicetest.AnswerWith(f, purgeDeadLetter, &v1.PurgeDeadLetterResponse{Run: "build-1", Tasks: []string{"test"}})
	v := newVisitor(t, f, v1.RoleUser)
	ask := v.submitPlain(v.get("/ui/dead-letters"), "purge-dead-letter", "task", "test")
	if ask.status != http.StatusOK || len(servicetest.Requests[v1.PurgeDeadLetterRequest](f)) > 0 {
		t.Fatalf("the question: %d, purges %v", ask.status, servicetest.Requests[v1.PurgeDeadLetterRequest](f))
	}
	mustContain(t, ask.text("main"), "from the dead letters permanently", "Purge")
	done := v.submitPlain(ask, "purge-dead-letter")
	if done.status != http.StatusSeeOther || done.header.Get("Location") != "/ui/dead-letters" || len(servicetest.Requests[v1.PurgeDeadLetterRequest](f)) != 1 {
		t.Fatalf("after the question: %d %s", done.status, done.header)
	}
	mustContain(t, v.get("/ui/dead-letters").text("#notice"), "Removed test of run build-1 from the dead letters.")
}

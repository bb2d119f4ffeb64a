package notifications

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/notifications"
	"switchyard/activities/secrets/vault"
	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
	"switchyard/workflows/nearest"
)

// defaultPage is the page size of a request without one.
const defaultPage = 1000

// Service implements NotificationService. It is safe for concurrent use.
type Service struct {
	Targets *notifications.Targets
	// Sender delivers test messages, or is nil if this gateway sends none.
	Sender *notifications.Sender
	// Vault holds the secrets of targets, or is nil if this gateway keeps none.
	Vault *vault.Vault
	// ExternalURL returns the URL at which people open the page, or "" if it is not known.
	ExternalURL func() string
	Now         func() time.Time
}

var _ switchyardv1connect.NotificationServiceHandler = Service{}

// PutNotificationTarget stores a target.
func (s Service) PutNotificationTarget(ctx context.Context, req *connect.Request[v1.PutNotificationTargetRequest]) (*connect.Response[v1.PutNotificationTargetResponse], error) {
	target := req.Msg.GetTarget()
	if err := notifications.Check(target); err != nil {
		return nil, rpcerror.Invalid("%w", err)
	}
	for _, name := range notifications.Secrets(target) {
		if err := s.mayUse(ctx, name); err != nil {
			return nil, err
		}
	}
	if err := notifications.CheckSigningKey(ctx, s.Vault, target); err != nil {
		return nil, rpcerror.Invalid("%w", err)
	}
	stored, replaced, err := s.Targets.Put(ctx, req.Msg.GetName(), target, auth.From(ctx).Name)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.PutNotificationTargetResponse{Target: stored, Replaced: replaced}), nil
}

// mayUse returns an error unless a target of the caller may use a stored secret.
func (s Service) mayUse(ctx context.Context, name string) error {
	if s.Vault == nil {
		return rpcerror.WrongState("the target names store:%s, and this gateway stores no secrets because it has no key file; start it with --secrets-key FILE", name)
	}
	secret, err := s.Vault.Get(ctx, name)
	switch {
	case errors.Is(err, vault.ErrUnknown):
		return rpcerror.Invalid("there is no secret %s; set it with `switchyard secrets set %s`, and store the target again", name, name)
	case err != nil:
		return err
	}
	if by := auth.From(ctx); !by.Role.Includes(v1.ParseRole(secret.GetRole())) {
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("secret %s requires the role %s, and %s has the role %s", name, secret.GetRole(), by.Name, by.Role.Word()))
	}
	return nil
}

// GetNotificationTarget returns a target.
func (s Service) GetNotificationTarget(ctx context.Context, req *connect.Request[v1.GetNotificationTargetRequest]) (*connect.Response[v1.GetNotificationTargetResponse], error) {
	target, err := s.Targets.Get(ctx, req.Msg.GetName())
	if err != nil {
		return nil, s.toConnectError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.GetNotificationTargetResponse{Target: target}), nil
}

// ListNotificationTargets lists the targets.
func (s Service) ListNotificationTargets(ctx context.Context, req *connect.Request[v1.ListNotificationTargetsRequest]) (*connect.Response[v1.ListNotificationTargetsResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var first string // name of the first target of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if first, _, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	all, warnings, err := s.Targets.List(ctx)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	all = all[sort.Search(len(all), func(i int) bool { return all[i].GetName() >= first }):]
	res := &v1.ListNotificationTargetsResponse{Items: all[:min(len(all), limit)], Warnings: warnings}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), "")
	}
	return connect.NewResponse(res), nil
}

// DeleteNotificationTarget deletes a target.
func (s Service) DeleteNotificationTarget(ctx context.Context, req *connect.Request[v1.DeleteNotificationTargetRequest]) (*connect.Response[v1.DeleteNotificationTargetResponse], error) {
	target, err := s.Targets.Delete(ctx, req.Msg.GetName())
	if err != nil {
		return nil, s.toConnectError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.DeleteNotificationTargetResponse{Target: target}), nil
}

// TestNotificationTarget sends a test message, once.
func (s Service) TestNotificationTarget(ctx context.Context, req *connect.Request[v1.TestNotificationTargetRequest]) (*connect.Response[v1.TestNotificationTargetResponse], error) {
	name, by := req.Msg.GetName(), auth.From(ctx).Name
	if s.Sender == nil {
		return nil, rpcerror.WrongState("this gateway sends no notifications")
	}
	notice := &historyv1.Notice{
		Run: names.NewRunID("test"), Workflow: "test", State: v1.RunFailed, Reason: v1.ReasonTaskFailed, Error: "this is a test", At: timestamppb.New(s.Now()),
		Failures: 1, SubmittedBy: by, Failed: []*historyv1.FailedTask{{Name: "example", State: v1.TaskFailed, Reason: v1.ReasonExitCode, Error: "exit code 1", Lines: []string{"the last line of its log"}}},
	}
	notice.Url = notifications.PageURL(s.ExternalURL(), notice.GetRun(), "", notice.GetWorkflow())
	answer, err := s.Sender.Send(ctx, notice, &historyv1.NotificationMessage{
		Target: name, Event: v1.NotifyFailed, Key: names.NotificationKey(notice.GetRun(), 0, v1.NotifyFailed, "", name),
		Title: "test message of Switchyard", Text: "This is a test of the notification target " + name + ". No run has failed.",
	})
	if errors.Is(err, notifications.ErrUnknown) {
		return nil, s.toConnectError(ctx, name, err)
	}
	if err != nil {
		return nil, rpcerror.WrongState("%w", err)
	}
	return connect.NewResponse(&v1.TestNotificationTargetResponse{Answer: answer, Url: notice.GetUrl()}), nil
}

// toConnectError converts an error about a target to the code that clients receive, with the nearest name for an unknown one.
func (s Service) toConnectError(ctx context.Context, name string, err error) error {
	if !errors.Is(err, notifications.ErrUnknown) {
		return err
	}
	all, _, listErr := s.Targets.List(ctx)
	if listErr != nil {
		return rpcerror.Missing("notification target", name, "")
	}
	var known []string
	for _, target := range all {
		known = append(known, target.GetName())
	}
	return rpcerror.Missing("notification target", name, nearest.DidYouMean(name, known))
}

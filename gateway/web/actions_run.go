package web

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"connectrpc.com/connect"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// versionField names the field of approve-run with the version of the run that the page shows.
const versionField = "version"

// approveRun returns the button that approves a run in the version that is shown.
func approveRun(run *v1.Run, caller *auth.Principal) Action {
	version := strconv.Itoa(int(run.GetApproval().GetDefinitionVersion()))
	return newAction("approve-run", run.GetId(), caller, "run", run.GetId(), versionField, version)
}

// runActions are the actions on runs. Their field run is the ID of the run.
var runActions = []actionKind{
	{
		verb: "cancel-run", label: "Cancel", call: runService + "CancelRun", reason: true,
		asks: "Cancel run %s? Running tasks are stopped. If it has tasks in finally, they run after that.",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			run := form.Get("run")
			res, err := s.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: run, PageSize: 1, Brief: true}))
			if err != nil {
				return "", "", err
			}
			if phrase.IsInFinally(res.Msg.GetRun().GetError()) {
				return "", "", rpcerror.WrongState("finally of run %s has begun; `Cancel finally` ends it", run)
			}
			// Repeated requests of a page count once, even if finally begins between them.
			request := &v1.CancelRunRequest{Id: run, Reason: form.Get(reasonField), RequestId: "page-" + strconv.Itoa(int(res.Msg.GetRun().GetGeneration()))}
			_, err = s.runs.CancelRun(ctx, connect.NewRequest(request))
			return "Run " + run + " is being cancelled.", "", err
		},
	},
	{
		verb: "cancel-finally", label: "Cancel finally", call: runService + "CancelRun", reason: true,
		asks: "End finally of run %s? Its clean-up is stopped where it is, and tasks of it that have not begun do not run.",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.runs.CancelRun(ctx, connect.NewRequest(&v1.CancelRunRequest{Id: form.Get("run"), Reason: form.Get(reasonField), Now: true}))
			return "finally of run " + form.Get("run") + " is being cancelled.", "", err
		},
	},
	{
		verb: "terminate-run", label: "Cancel by force", call: runService + "CancelRun", reason: true,
		asks: "Terminate run %s and its child runs immediately? Their tasks cannot clean up, and finally does not run.",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.runs.CancelRun(ctx, connect.NewRequest(&v1.CancelRunRequest{Id: form.Get("run"), Reason: form.Get(reasonField), Force: true}))
			return "Run " + form.Get("run") + " is terminated.", "", err
		},
	},
	{
		verb: "pause-run", label: "Pause", call: runService + "PauseRun", reason: true,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.runs.PauseRun(ctx, connect.NewRequest(&v1.PauseRunRequest{Id: form.Get("run"), Reason: form.Get(reasonField)}))
			return "Run " + form.Get("run") + " is paused; running tasks continue.", "", err
		},
	},
	{
		verb: "resume-run", label: "Resume", call: runService + "ResumeRun",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.runs.ResumeRun(ctx, connect.NewRequest(&v1.ResumeRunRequest{Id: form.Get("run")}))
			return "Run " + form.Get("run") + " is resumed.", "", err
		},
	},
	{
		verb: "retry-run", label: "Retry", call: runService + "RetryRun",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			res, err := s.runs.RetryRun(ctx, connect.NewRequest(&v1.RetryRunRequest{Id: form.Get("run")}))
			if err != nil {
				return "", "", err
			}
			return fmt.Sprintf("Run %s continues as generation %d.", res.Msg.GetId(), res.Msg.GetGeneration()), "", nil
		},
	},
	{
		verb: "rerun-run", label: "Rerun", call: runService + "RerunRun",
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			res, err := s.runs.RerunRun(ctx, connect.NewRequest(&v1.RerunRunRequest{Id: form.Get("run")}))
			if err != nil {
				return "", "", err
			}
			return "Run " + res.Msg.GetId() + " is started.", runURL(res.Msg.GetId()), nil
		},
	},
	{
		verb: "approve-run", label: "Approve", call: runService + "ApproveRun", reason: true,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			version, err := strconv.ParseInt(form.Get(versionField), 10, 32)
			if err != nil {
				return "", "", rpcerror.Invalid("the form names no version of run %s; reload the page", form.Get("run"))
			}
			_, err = s.runs.ApproveRun(ctx, connect.NewRequest(&v1.ApproveRunRequest{Id: form.Get("run"), Reason: form.Get(reasonField), DefinitionVersion: int32(version)}))
			return "Run " + form.Get("run") + " is approved and starts.", "", err
		},
	},
	{
		verb: "reject-run", label: "Reject", call: runService + "RejectRun", asks: "Reject run %s? It ends without having started.", reason: true,
		do: func(ctx context.Context, s services, form url.Values) (string, string, error) {
			_, err := s.runs.RejectRun(ctx, connect.NewRequest(&v1.RejectRunRequest{Id: form.Get("run"), Reason: form.Get(reasonField)}))
			return "Run " + form.Get("run") + " is rejected.", "", err
		},
	},
}

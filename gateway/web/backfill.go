package web

import (
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// spanLayout is the layout of a datetime-local field.
	spanLayout = "2006-01-02T15:04"
	// maxBackfillListed bounds the times that the confirmation of a backfill counts.
	maxBackfillListed = 1000
	// fewTimes is how many of these times the confirmation shows.
	fewTimes = 10
)

// backfillForm is the form that backfills the runs of a time span.
type backfillForm struct {
	From, To, Overlap string
	Zone              string
	Button            button
	Failed            string
	// Times holds the first times of the span once the form asks for confirmation, which IsAsked marks.
	Times   []nextTime
	Count   int
	HasMore bool // beyond Count
	IsAsked bool
}

// Overlaps returns the policies for a start while another run is open.
func (backfillForm) Overlaps() []inputOption {
	return []inputOption{
		{Value: "queue", Text: "one run after the other"}, {Value: "allow", Text: "all at once"}, {Value: "skip", Text: "skip while a run is open"},
		{Value: "replace", Text: "cancel the open run first"},
	}
}

func newBackfillForm(s *v1.Schedule, caller *auth.Principal) backfillForm {
	b := newButton("Backfill", "backfill", scheduleService+"BackfillSchedule", caller)
	return backfillForm{Zone: zoneName(s.GetTimezone()), Overlap: "queue", Button: b}
}

// span parses the typed times in the time zone of the schedule.
func (f backfillForm) span() (from, to time.Time, err error) {
	zone := zoneOf(f.Zone)
	for _, field := range []struct {
		name, text string
		to         *time.Time
	}{{"From", f.From, &from}, {"To", f.To, &to}} {
		for _, layout := range []string{spanLayout, spanLayout + ":05", time.RFC3339} {
			if *field.to, err = time.ParseInLocation(layout, strings.Replace(field.text, " ", "T", 1), zone); err == nil {
				break
			}
		}
		if err != nil {
			return from, to, rpcerror.Invalid("%s is %q; write a time such as 2026-03-04T12:00", field.name, field.text)
		}
	}
	if to.Before(from) {
		return from, to, rpcerror.Invalid("the range ends before it starts")
	}
	return from, to, nil
}

// postSchedule asks for confirmation of a backfill and then starts it.
func (w *Web) postSchedule(rw http.ResponseWriter, r *http.Request, req request, failed error) {
	view, err := w.loadSchedule(r.Context(), req)
	if err != nil {
		w.writeError(rw, r, err)
		return
	}
	form := &view.Backfill
	form.From, form.To, form.Overlap = r.PostForm.Get("from"), r.PostForm.Get("to"), r.PostForm.Get("overlap")
	done := ""
	if err = failed; err == nil {
		done, err = w.handleBackfill(r, req.values["schedule"], form)
	}
	if done != "" && err == nil {
		redirect(rw, r, scheduleURL(req.values["schedule"]), done)
		return
	}
	if err != nil {
		form.Failed = messageOf(err)
	}
	w.writeView(rw, r, statusOf(err), viewData{"Schedule " + view.GetName(), "schedule", view}, req, true)
}

// handleBackfill starts a confirmed backfill and returns a message. It returns "" if the form must ask for confirmation
// first.
func (w *Web) handleBackfill(r *http.Request, name string, form *backfillForm) (done string, err error) {
	from, to, err := form.span()
	if err != nil {
		return "", err
	}
	ctx := r.Context()
	if r.PostForm.Get(confirmedField) != yes {
		return "", w.countBackfill(r, name, form, from, to)
	}
	res, err := w.services.schedules.BackfillSchedule(ctx, connect.NewRequest(&v1.BackfillScheduleRequest{
		Name: name, From: timestamppb.New(from), To: timestamppb.New(to), Overlap: form.Overlap,
	}))
	if err != nil {
		return "", err
	}
	done = "Schedule " + name + " starts " + plural(len(res.Msg.GetTimes()), "run") + "."
	if n := res.Msg.GetExisting(); n > 0 {
		done += " " + plural(n, "time") + " in the range already had a run."
	}
	return done, nil
}

// countBackfill fills the form with the times of a span for the confirmation.
func (w *Web) countBackfill(r *http.Request, name string, form *backfillForm, from, to time.Time) error {
	res, err := w.services.schedules.ListScheduleTimes(r.Context(), connect.NewRequest(&v1.ListScheduleTimesRequest{
		Name: name, Count: maxBackfillListed, From: timestamppb.New(from),
	}))
	if err != nil {
		return err
	}
	times := res.Msg.GetTimes()
	for form.Count < len(times) && !times[form.Count].AsTime().After(to) {
		form.Count++
	}
	if form.Count == 0 {
		return rpcerror.Invalid("the schedule has no times between %s and %s", form.From, form.To)
	}
	form.IsAsked, form.HasMore = true, form.Count == maxBackfillListed
	form.Times = nextTimes(times[:min(form.Count, fewTimes)], form.Zone)
	return nil
}

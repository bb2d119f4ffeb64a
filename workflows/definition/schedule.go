package definition

import (
	"errors"
	"fmt"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
	"switchyard/workflows/definition/source"
)

// scheduleRules checks the schedule of a stored workflow.
type scheduleRules struct{ *decoder }

// check checks the schedule of a stored workflow.
func (r scheduleRules) check(def *v1.Definition, p *source.Path) {
	s := def.GetSchedule()
	if s == nil {
		return
	}
	if r.depth > 0 {
		r.Warn(r.locateKey(p), p, "schedule has no effect in the definition of a task of type run", "`switchyard workflows put` creates the schedule of a stored definition")
	}
	r.durationOr(s.GetJitter(), p.Field("jitter"), "leave it out for no delay")
	r.catchUp(s.GetCatchUp(), p.Field("catchUp"))
	r.word(s.GetExpectedBy(), p.Field("expectedBy"), timeOfDay().MatchString, "not a time of the day", `such as "06:00", from 00:00 to 23:59`)
	if zone := r.timezone(s, p.Field("timezone")); zone != nil {
		r.crons(s, zone, p)
	}
	if len(def.GetInputs()) > 0 {
		inputRules{r.decoder}.input(def.GetInputs(), s.GetInput(), p.Field("input"), false)
	}
}

// timeOfDay matches a time of the day.
var timeOfDay = lazyPattern(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// timezone returns the time zone of a schedule, or nil if it has reported a problem.
func (r scheduleRules) timezone(s *v1.ScheduleDefinition, p *source.Path) *time.Location {
	zone, err := cron.Zone(s.GetTimezone())
	if bad, ok := errors.AsType[*cron.Error](err); ok {
		r.Add(r.locate(p), p, p.Local()+" is "+source.Quote(s.GetTimezone())+", "+bad.Message, bad.Hint)
	}
	return zone
}

// crons checks the times of a schedule.
func (r scheduleRules) crons(s *v1.ScheduleDefinition, zone *time.Location, p *source.Path) {
	at := p.Field("cron")
	var all []cron.Expression
	inZone, good := false, true
	for i, text := range s.GetCron() {
		e, ok := r.cron(text, at.Item(i))
		all, inZone, good = append(all, e), inZone || e.Every == 0, good && ok
	}
	if !good {
		return
	}
	for _, pair := range cron.Repeated(all) {
		item := at.Item(pair[0])
		r.Warn(r.locate(item), item, fmt.Sprintf("%s has the same times as schedule.cron[%d], and no effect", item.Local(), pair[1]), "")
	}
	if zone := p.Field("timezone"); s.GetTimezone() != "" && !inZone {
		r.Warn(r.locateKey(zone), zone, "schedule.timezone has no effect on @every, which counts from 1970", "")
	}
	gap, delay := cron.ShortestGap(all, zone), p.Field("jitter")
	if gap > 0 && Jitter(s) > gap {
		r.Warn(r.locate(delay), delay, fmt.Sprintf("schedule.jitter is %s, but two times are only %s apart; no start is delayed beyond the next time", s.GetJitter(), cron.Duration(gap)), "")
	}
}

// cron parses an expression of a schedule. ok is false if it has reported a problem.
func (r scheduleRules) cron(text string, p *source.Path) (e cron.Expression, ok bool) {
	e, err := cron.Parse(text)
	if bad, ok := errors.AsType[*cron.Error](err); ok {
		r.Add(r.locate(p), p, p.Local()+" is "+source.Quote(text)+", "+bad.Message, bad.Hint)
		return e, false
	}
	if !e.HasTimes() {
		r.Add(r.locate(p), p, p.Local()+" is "+source.Quote(text)+", which never occurs: none of its months has that day", "")
		return e, false
	}
	if e.RestrictsDays() {
		r.Warn(r.locate(p), p, p.Local()+" restricts both the day of the month and the weekday, and a day must match both; in a crontab either is enough", "write two expressions if either is enough")
	}
	return e, true
}

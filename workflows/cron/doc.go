// Package cron parses the cron expressions and time zones of schedules like Temporal, and computes their times.
//
//	"0 2 * * MON-FRI" ── Parse ──> Expression ── Next ──> times, one by one
//
// It differs from crontab(5) where Temporal does: a day must match both the day of the month and the weekday. The times are
// those of Temporal, except on days on which the clocks of a zone change, where Temporal has rules of its own: here a time that
// the clocks skip does not occur that day, and one that they show twice occurs twice. So the times are good for checks, but the
// times shown to people come from Temporal.
//
// The package is pure: it imports workflows/nearest, and time zones, which it embeds for machines without them.
package cron

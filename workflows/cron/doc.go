// Package cron reads the cron expressions and time zones of schedules as Temporal does, and computes the times that
// they have.
//
//	"0 2 * * MON-FRI" ── Parse ──> Expression ── Next ──> times, one by one
//
// It differs from crontab(5) where Temporal does: a day must meet both the day of the month and the weekday. The times
// are those of Temporal but on the days on which the clocks of a zone change, where Temporal has rules of its own: here a
// time that the clocks skip does not come that day, and one that they show twice comes twice. So they are good for
// checks, and what people are shown comes from Temporal.
//
// The package is pure: it imports workflows/nearest, and time zones, which it embeds for machines without them.
package cron

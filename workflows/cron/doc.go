// Package cron parses the cron expressions and time zones of schedules, and computes their times.
//
//	"0 2 * * MON-FRI" ── Parse ──> Expression ──┬── Next ──> times, one by one
//	                                            └── Calendars ──> calendars in UTC, for Temporal
//
// It differs from crontab(5) where Temporal does: a day must match both the day of the month and the weekday. On days on which
// the clocks of a zone change the times are those of crontab(5): a minute that the clocks show twice counts once, and one that
// they skip counts right after the gap, unless the expression has every hour and so follows the clocks. Calendars compiles these
// times to UTC, because Temporal's own calendars are wrong on such days.
//
// The package is pure: it imports workflows/nearest, and time zones, which it embeds for machines without them.
package cron

package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/drawing/words"
)

// View returns the picture of a running run, in at most height lines of at most width cells. If there are more tasks
// than lines, running and failed tasks come first, and a last line counts the others.
func View(b *Status, now time.Time, width, height int, style Style) []string {
	lines := []string{cut(title(b, now, style), width)}
	names := b.order()
	if len(names) == 0 {
		return lines
	}
	// Three lines are for the title, the headings, and the cursor.
	room := max(1, height-3)
	if len(names) <= room {
		return append(lines, table(b, names, now, width, room-len(names), style)...)
	}
	room = max(1, room-1)
	// Failed instances take some of the room from less important tasks.
	spare := 0
	for name := range b.instances {
		spare += min(len(b.failed(name)), maxFailedRows)
	}
	spare = min(spare, room/3)
	shown := busiest(b, names, room-spare)
	lines = append(lines, table(b, shown, now, width, spare, style)...)
	return append(lines, cut(rest(b, shown, style), width))
}

func title(b *Status, now time.Time, style Style) string {
	state := b.run.GetState()
	text := fmt.Sprintf("run %s  %s", b.run.GetId(), style.paint(state, state))
	if b.run.GetCreatedAt() == nil {
		return text
	}
	if b.run.GetCompletedAt() != nil {
		now = b.run.GetCompletedAt().AsTime()
	}
	text += "  " + words.Duration(now.Sub(b.run.GetCreatedAt().AsTime()))
	if why := b.run.GetError(); why != "" && !b.Ended() {
		text += "  " + words.OneLine(why)
	}
	return text
}

// busiest picks the n most relevant tasks and keeps the order of names.
func busiest(b *Status, names []string, n int) []string {
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i
	}
	byPlace := func(x, y string) int { return cmp.Compare(place[x], place[y]) }
	picked := slices.SortedStableFunc(slices.Values(names), func(x, y string) int {
		return cmp.Compare(words.Interest(words.Tone(b.tasks[x])), words.Interest(words.Tone(b.tasks[y])))
	})[:n]
	slices.SortFunc(picked, byPlace)
	return picked
}

// rest returns a line that counts the hidden tasks.
func rest(b *Status, shown []string, style Style) string {
	counts, left := b.counts(), b.total
	for _, name := range shown {
		counts[b.tasks[name].GetState()]--
		left--
	}
	return fmt.Sprintf("and %d more: %s", left, style.tally(counts))
}

// tally counts tasks by state: "3 completed, 1 failed".
func (s Style) tally(counts map[string]int) string {
	var parts []string
	for _, c := range words.StateCounts(counts) {
		parts = append(parts, s.paint(c.State, c.String()))
	}
	return strings.Join(parts, ", ")
}

package storekey

import (
	"fmt"
	"strconv"
	"strings"
)

// Journal is where a dispatch of a task keeps its journal.
type Journal struct {
	Home, Task        string
	Generation, Claim int32
}

// Prefix is how all keys of the journal start.
func (j Journal) Prefix() string {
	return JournalsPrefix(j.Home, j.Task) + itoa(j.Generation) + "." + itoa(j.Claim) + "/"
}

// JournalsPrefix is how the keys of all journals of a task or an instance start. So may start those of instances of the task;
// ParseJournal separates them.
func JournalsPrefix(home, task string) string {
	return RunPrefix(home) + "journal/" + segment(task) + "."
}

// Entry is the key of entry n, from 0.
func (j Journal) Entry(n int) string { return j.Prefix() + fmt.Sprintf("%06d", n) }

// From is the key of the prefix of the journal that this one continues.
func (j Journal) From() string { return j.Prefix() + "from" }

// Archive is the key of what says which archive is the newest.
func (j Journal) Archive() string { return j.Prefix() + "archive" }

// ArchivePart is the key of a part, from 0, of one of the two archives that a journal has room for.
func (j Journal) ArchivePart(slot, part int) string {
	return j.Prefix() + "archive." + strconv.Itoa(slot) + "." + strconv.Itoa(part)
}

// ParseJournal returns the journal that a key or a prefix is of, and what stands behind Prefix.
func ParseJournal(key string) (j Journal, rest string, ok bool) {
	run, below, err := SplitRun(key)
	if err != nil {
		return Journal{}, "", false
	}
	chain, below, _ := strings.Cut(below, "/")
	below, ok = strings.CutPrefix(below, "journal/")
	if !ok {
		return Journal{}, "", false
	}
	dispatch, rest, _ := strings.Cut(below, "/")
	task, generation, claim, ok := parseAttempt(dispatch)
	j = Journal{Home: run + "/" + chain, Task: task, Generation: generation, Claim: claim}
	return j, rest, ok && strings.HasPrefix(key, j.Prefix())
}

// ParseEntry returns the number of the entry of a journal, given what ParseJournal returns as rest.
func ParseEntry(rest string) (n int, ok bool) {
	if len(rest) < 6 || strings.ContainsFunc(rest, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil && rest == fmt.Sprintf("%06d", n)
}

// isJournalKey reports whether a key is one of those above.
func isJournalKey(j Journal, key, rest string) bool {
	if _, ok := ParseEntry(rest); ok || key == j.From() || key == j.Archive() {
		return true
	}
	text, part, _ := cutLast(rest, ".")
	_, slot, _ := cutLast(text, ".")
	p, errPart := strconv.ParseUint(part, 10, 16)
	return errPart == nil && (slot == "0" || slot == "1") && key == j.ArchivePart(int(slot[0]-'0'), int(p))
}

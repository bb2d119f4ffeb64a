package storekey

import (
	"fmt"
	"strconv"
	"strings"
)

// Journal identifies the journal of a dispatch of a task.
type Journal struct {
	Home, Task        string
	Generation, Claim int32
}

// Prefix returns the prefix of the journal's keys.
func (j Journal) Prefix() string {
	return JournalsPrefix(j.Home, j.Task) + itoa(j.Generation) + "." + itoa(j.Claim) + "/"
}

// JournalsPrefix returns the prefix of the keys of all journals of a task or instance. The keys of the journals of a
// task's instances may start with it, too; ParseJournal tells them apart.
func JournalsPrefix(home, task string) string {
	return RunPrefix(home) + "journal/" + segment(task) + "."
}

// Entry returns the key of entry n, from 0.
func (j Journal) Entry(n int) string { return j.Prefix() + fmt.Sprintf("%06d", n) }

// From returns the key of the value that names the journal that this one continues.
func (j Journal) From() string { return j.Prefix() + "from" }

// Archive returns the key of the value that names the newest archive.
func (j Journal) Archive() string { return j.Prefix() + "archive" }

// ArchivePart returns the key of a part, from 0, of one of the two archives of a journal.
func (j Journal) ArchivePart(slot, part int) string {
	return j.Prefix() + "archive." + strconv.Itoa(slot) + "." + strconv.Itoa(part)
}

// ParseJournal returns the journal of a key or a prefix, and the rest of the key after Prefix.
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

// ParseEntry returns the number of a journal entry from the rest that ParseJournal returns.
func ParseEntry(rest string) (n int, ok bool) {
	if len(rest) < 6 || strings.ContainsFunc(rest, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil && rest == fmt.Sprintf("%06d", n)
}

// isJournalKey reports whether key, whose rest follows the prefix of j, is one of the keys above.
func isJournalKey(j Journal, key, rest string) bool {
	if _, ok := ParseEntry(rest); ok || key == j.From() || key == j.Archive() {
		return true
	}
	text, part, _ := cutLast(rest, ".")
	_, slot, _ := cutLast(text, ".")
	p, errPart := strconv.ParseUint(part, 10, 16)
	return errPart == nil && (slot == "0" || slot == "1") && key == j.ArchivePart(int(slot[0]-'0'), int(p))
}

package executor

import (
	"context"
	"iter"
)

// Journal is what the attempts of a task record, one after the other, so that the next one continues where the last one was.
// An attempt on any node finds it, also after a worker was killed and after `runs retry`. Methods are called by one goroutine
// at a time.
type Journal interface {
	// Entries returns what earlier attempts have appended, oldest first. It is called before the first Append.
	Entries(ctx context.Context) iter.Seq2[[]byte, error]
	// Append records an entry of at most MaxJournalEntry bytes. When it returns nil, a later attempt finds the entry.
	Append(ctx context.Context, entry []byte) error
	// Archive returns the newest archive, or nil if there is none.
	Archive(ctx context.Context) ([]byte, error)
	// SaveArchive replaces the archive by one of at most MaxJournalArchive bytes. If it fails, or the process is killed
	// meanwhile, the earlier one stays.
	SaveArchive(ctx context.Context, data []byte) error
}

const (
	// MaxJournalEntry is the largest entry of a journal, in bytes.
	MaxJournalEntry = 8 << 20
	// MaxJournalArchive is the largest archive of a journal, in bytes.
	MaxJournalArchive = 64 << 20
)

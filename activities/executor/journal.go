package executor

import (
	"context"
	"iter"
)

// Journal is a record that the attempts of a task append to in turn, so that each continues where the last one stopped.
// Attempts on any node find it, even after a worker was killed and after `runs retry`. Its methods are called by one
// goroutine at a time.
type Journal interface {
	// Entries returns the entries of earlier attempts, oldest first. It is called before the first Append.
	Entries(ctx context.Context) iter.Seq2[[]byte, error]
	// Append records an entry of at most MaxJournalEntry bytes. Once it returns nil, later attempts find the entry.
	Append(ctx context.Context, entry []byte) error
	// Archive returns the newest archive, or nil if there is none.
	Archive(ctx context.Context) ([]byte, error)
	// SaveArchive replaces the archive with one of at most MaxJournalArchive bytes. If it fails, or the process is killed
	// meanwhile, the earlier archive stays.
	SaveArchive(ctx context.Context, data []byte) error
}

const (
	// MaxJournalEntry is the largest entry of a journal, in bytes.
	MaxJournalEntry = 8 << 20
	// MaxJournalArchive is the largest archive of a journal, in bytes.
	MaxJournalArchive = 64 << 20
)

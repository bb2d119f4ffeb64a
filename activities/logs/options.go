package logs

import (
	"time"

	"switchyard/activities/secrets/mask"
)

// Options are the bounds of a Writer. A zero field means its default.
type Options struct {
	// FlushInterval is how long output may wait before it is stored, and so how
	// often a blob is written at most, full chunks aside; 200 ms.
	FlushInterval time.Duration
	// ChunkBytes is the size at which a chunk is stored at once; 1 MiB, at least
	// 1 KiB. A Writer holds two chunks in memory at most: one that fills and one
	// that is being stored.
	ChunkBytes int
	// TailBytes is how much of the end of each stream Tail returns at most; 64 KiB.
	TailBytes int
	// MaxBytes is how much output of an attempt the log takes; DefaultMaxBytes.
	MaxBytes int64
	// Masks are replaced in what is written to the streams, before log and tail have it; nil: nothing is. What may be the
	// beginning of a value is held back until more follows, or Begin, Flush or Close.
	Masks *mask.Set
	// StoreTimeout is how long the store may take for one chunk before the write
	// counts as failed; 10 s.
	StoreTimeout time.Duration
}

// DefaultMaxBytes is how much output of an attempt its log takes.
const DefaultMaxBytes int64 = 256 << 20

// minChunkBytes leaves room for a notice.
const minChunkBytes = 1 << 10

func (o Options) withDefaults() Options {
	return Options{
		FlushInterval: positiveOr(o.FlushInterval, 200*time.Millisecond),
		ChunkBytes:    max(positiveOr(o.ChunkBytes, 1<<20), minChunkBytes),
		TailBytes:     positiveOr(o.TailBytes, 64<<10),
		MaxBytes:      positiveOr(o.MaxBytes, DefaultMaxBytes),
		Masks:         o.Masks,
		StoreTimeout:  positiveOr(o.StoreTimeout, 10*time.Second),
	}
}

func positiveOr[T int | int64 | time.Duration](value, standard T) T {
	if value > 0 {
		return value
	}
	return standard
}

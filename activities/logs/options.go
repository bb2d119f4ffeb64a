package logs

import (
	"time"

	"switchyard/activities/secrets/mask"
)

// Options configures a Writer. A zero field means its default.
type Options struct {
	// FlushInterval is how long output may wait before it is stored, and thus the shortest time between two blobs, except
	// for full chunks. The default is 200 ms.
	FlushInterval time.Duration
	// ChunkBytes is the size at which a chunk is stored immediately. The default is 1 MiB and the minimum 1 KiB. A Writer
	// holds at most two chunks in memory: one that fills and one that is being stored.
	ChunkBytes int
	// TailBytes bounds the part of each stream that Tail returns. The default is 64 KiB.
	TailBytes int
	// MaxBytes bounds the output of an attempt in the log. The default is DefaultMaxBytes.
	MaxBytes int64
	// Masks replaces secrets in the streams before log and tail receive the output. If nil, nothing is replaced. Output
	// that may be the beginning of a secret is held back until more output, Begin, Flush or Close follows.
	Masks *mask.Set
	// Held is what Writer.Held of the previous writer returned, if Resume continues its streams with new output, or nil.
	Held []byte
	// StoreTimeout is how long the store may take for one chunk before the write counts as failed. The default is 10 s.
	StoreTimeout time.Duration
}

// DefaultMaxBytes bounds the output of an attempt in its log by default.
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

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shirou/gopsutil/v3/disk"

	"switchyard/activities/store/storekey"
)

// ErrLowSpace is in the chain of the error of a Put of a chunk of a log or of artifacts if the store has too little free space for
// such chunks. The remaining space is reserved for values that runs depend on, such as results.
var ErrLowSpace = errors.New("too little free space for logs and artifacts")

// spaceRemedy is what users can do about a store without free space.
const spaceRemedy = "free space there, or lower --retention"

const (
	// maxFloor bounds the free space that logs must leave on a file system.
	maxFloor = 1 << 30
	// floorShare is the fraction of a small file system that logs must leave: 1/20, which is 5%.
	floorShare = 20
	// MaxNoticeBytes is the largest chunk that may be stored below the floor, so that a log can say why it ends. Below
	// half of the floor even such chunks are refused.
	MaxNoticeBytes = 1 << 10
)

// floored is a folder that refuses log chunks when its file system is nearly full.
type floored struct{ *folder }

func openFloored(dir string) (backend, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	return floored{f}, nil
}

func (f floored) put(ctx context.Context, key string, value []byte) error {
	if err := f.checkSpace(ctx, key, len(value)); err != nil {
		return err
	}
	return f.folder.put(ctx, key, value)
}

func (f floored) putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	if err := f.checkSpace(ctx, key, len(value)); err != nil {
		return false, err
	}
	return f.folder.putIfAbsent(ctx, key, value)
}

// Floor returns the free space in bytes below which a store on a file system of the given size refuses logs.
func Floor(total uint64) uint64 { return min(maxFloor, total/floorShare) }

// checkSpace returns ErrLowSpace for a chunk that must not be stored, and nil for any other value.
func (f floored) checkSpace(ctx context.Context, key string, size int) error {
	if _, _, isLog := storekey.ParseLogChunk(key); !isLog && !strings.HasPrefix(key, storekey.ChunksPrefix) {
		return nil
	}
	usage, err := disk.UsageWithContext(ctx, f.dir)
	if err != nil {
		return nil // the write itself reports the error
	}
	floor := Floor(usage.Total)
	if usage.Free >= floor || size <= MaxNoticeBytes && usage.Free >= floor/2 {
		return nil
	}
	return fmt.Errorf("%w: the file system of %s has %d MiB left, and %d MiB are reserved for other data; %s", ErrLowSpace, f.dir, usage.Free>>20, floor>>20, spaceRemedy)
}

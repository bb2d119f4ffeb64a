package store_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// objects are those of a bucket, whose API somebody else speaks.
type objects struct {
	mu       sync.Mutex
	values   map[string][]byte
	modified map[string]time.Time
}

func newObjects() objects {
	return objects{values: map[string][]byte{}, modified: map[string]time.Time{}}
}

func (o *objects) set(key string, value []byte) {
	o.values[key], o.modified[key] = value, time.Now()
}

// find is a page of a list: names of objects, and prefixes that end in the
// delimiter.
func (o *objects) find(prefix, delimiter, after, size string) (names []string, more bool) {
	for key := range o.values {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
			key = prefix + rest[:i+1]
		}
		if key > after {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	most, err := strconv.Atoi(size)
	if err != nil {
		most = 1000
	}
	if len(names) > most {
		return names[:most], true
	}
	return names, false
}

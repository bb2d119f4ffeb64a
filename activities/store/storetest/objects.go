package storetest

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Objects holds the objects of a bucket that a fake serves. Mu guards the maps.
type Objects struct {
	Mu       sync.Mutex
	Values   map[string][]byte
	Modified map[string]time.Time
}

// maxPage is the largest page of a list. Real ones have 1000 names.
const maxPage = 100

// NewObjects returns the objects of an empty bucket.
func NewObjects() Objects {
	return Objects{Values: map[string][]byte{}, Modified: map[string]time.Time{}}
}

// Set stores a value under a key. The caller holds Mu.
func (o *Objects) Set(key string, value []byte) {
	o.Values[key], o.Modified[key] = value, time.Now()
}

// Find returns a page of a list: names of objects, and prefixes that end with the delimiter. The caller holds Mu.
func (o *Objects) Find(prefix, delimiter, after, size string) (names []string, more bool) {
	for key := range o.Values {
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
	if err != nil || most > maxPage {
		most = maxPage
	}
	if len(names) > most {
		return names[:most], true
	}
	return names, false
}

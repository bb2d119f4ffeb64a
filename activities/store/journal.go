package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync"
)

const (
	// maxEntryBytes is the largest value that is stored in a journal itself.
	maxEntryBytes = 4 << 10
	// headBytes is the size of the head of an entry:
	//
	//	mark       4 bytes
	//	checksum   4 bytes, CRC-32C of everything after it
	//	writer     8 bytes, unique to the write
	//	kind       1 byte
	//	key        2 bytes, its length
	//	value      4 bytes, its length
	//
	// The key and the value follow the head. Numbers are little-endian.
	headBytes = 4 + 4 + 8 + 1 + 2 + 4
)

// Kinds of entries.
const (
	valueEntry byte = iota + 1 // contains the value
	fileEntry                  // contains the name of the file with the value, in the directory of the key
)

var (
	entryMark = []byte{0xE5, 'S', 'y', 'J'}
	crcTable  = crc32.MakeTable(crc32.Castagnoli)
)

// journal is the file of a run to which values are appended that must be the first of their key. The file system orders
// the appends of several processes, so the first entry of a key wins for all of them without a lock. An incomplete entry,
// whose writer was killed, is skipped.
type journal struct {
	path string

	mu     sync.Mutex
	closed bool
	file   *os.File // nil if it did not exist yet
	covers int64    // bytes of the file that the index covers
	index  map[string]span
}

// span is the place of a key's value in the file.
type span struct {
	offset int64
	length int32
	kind   byte
	writer uint64
}

// entry returns the encoded bytes of an entry.
func entry(writer uint64, kind byte, key string, value []byte) []byte {
	b := make([]byte, headBytes, headBytes+len(key)+len(value))
	copy(b, entryMark)
	binary.LittleEndian.PutUint64(b[8:], writer)
	b[16] = kind
	binary.LittleEndian.PutUint16(b[17:], uint16(len(key)))
	binary.LittleEndian.PutUint32(b[19:], uint32(len(value)))
	b = append(append(b, key...), value...)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], crcTable))
	return b
}

// parse reads the entry at the start of b and returns its length, or 0 if b does not start with a complete entry.
func parse(b []byte) (key string, s span, length int) {
	if len(b) < headBytes || !bytes.Equal(b[:4], entryMark) {
		return "", span{}, 0
	}
	keyEnd := headBytes + int(binary.LittleEndian.Uint16(b[17:]))
	valueBytes := binary.LittleEndian.Uint32(b[19:])
	if valueBytes > maxEntryBytes || keyEnd+int(valueBytes) > len(b) {
		return "", span{}, 0
	}
	length = keyEnd + int(valueBytes)
	if crc32.Checksum(b[8:length], crcTable) != binary.LittleEndian.Uint32(b[4:]) {
		return "", span{}, 0
	}
	return string(b[headBytes:keyEnd]), span{
		offset: int64(keyEnd), length: int32(valueBytes), kind: b[16], writer: binary.LittleEndian.Uint64(b[8:]),
	}, length
}

// find returns the journal's entry for a key. The caller holds mu.
func (j *journal) find(key string) (span, bool, error) {
	if err := j.catchUp(); err != nil {
		return span{}, false, err
	}
	s, ok := j.index[key]
	return s, ok, nil
}

// add appends an entry and reports whether another one precedes it. The caller holds mu and has not found the key.
func (j *journal) add(writer uint64, kind byte, key string, value []byte) (existed bool, err error) {
	if j.file == nil {
		if j.file, err = os.OpenFile(j.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, fileMode); err != nil {
			return false, err
		}
	}
	if _, err := j.file.Write(entry(writer, kind, key, value)); err != nil {
		return false, err
	}
	s, ok, err := j.find(key)
	if err == nil && !ok {
		err = fmt.Errorf("%s: the appended entry is missing", j.path)
	}
	return s.writer != writer, err
}

// value reads the bytes of a span. The caller holds mu.
func (j *journal) value(s span) ([]byte, error) {
	b := make([]byte, s.length)
	_, err := j.file.ReadAt(b, s.offset)
	return b, err
}

// catchUp reads the entries that any process has appended since the last call. If the file was removed with its run, the
// journal becomes empty.
func (j *journal) catchUp() error {
	info, err := os.Stat(j.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if j.file != nil {
		mine, statErr := j.file.Stat()
		if statErr != nil {
			return statErr
		}
		if err != nil || !os.SameFile(info, mine) {
			j.forget()
		}
	}
	if err != nil {
		return nil
	}
	if j.file == nil {
		if j.file, err = os.OpenFile(j.path, os.O_RDWR|os.O_APPEND, 0); err != nil {
			return err
		}
	}
	if info.Size() == j.covers {
		return nil
	}
	return j.read(info.Size())
}

// read adds the entries up to size to the index.
func (j *journal) read(size int64) error {
	b := make([]byte, size-j.covers)
	n, err := j.file.ReadAt(b, j.covers)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for b = b[:n]; len(b) > 0; {
		key, s, length := parse(b)
		if length == 0 {
			skip := next(b)
			if skip < 0 {
				return nil // another process is writing it
			}
			j.covers, b = j.covers+int64(skip), b[skip:]
			continue
		}
		if _, ok := j.index[key]; !ok {
			s.offset += j.covers
			j.index[key] = s
		}
		j.covers, b = j.covers+int64(length), b[length:]
	}
	return nil
}

// next returns the offset of the next complete entry after the broken one at the start of b, or -1.
func next(b []byte) int {
	for at := 1; ; at++ {
		i := bytes.Index(b[at:], entryMark)
		if i < 0 {
			return -1
		}
		at += i
		if _, _, length := parse(b[at:]); length > 0 {
			return at
		}
	}
}

// forget closes the file if it is open, and clears the index. The caller holds mu.
func (j *journal) forget() {
	if j.file != nil {
		_ = j.file.Close() // writes are unbuffered, so nothing is lost
	}
	j.file, j.covers, j.index = nil, 0, map[string]span{}
}

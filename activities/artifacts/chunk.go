package artifacts

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"switchyard/activities/store/storekey"
)

const (
	// maxChunk is the size of the largest chunk that can be read.
	maxChunk = 4 << 20
	// newChunk is the size of the largest chunk that is stored: with its key, it fits in a buffer of 2 MiB.
	newChunk = 2<<20 - 4<<10
	// minChunk is the least size at which a chunk ends between two small files.
	minChunk = 1 << 19
	// maxTree bounds the uncompressed size of a tree.
	maxTree = 512 << 20
	// worthwhile is the fraction of a chunk that compression must save for the chunk to be stored compressed: 1/16.
	worthwhile = 16
	// sample is the size of the parts of a chunk, and samples their number, that tell whether compression is worthwhile.
	sample, samples = 16 << 10, 4
)

// The first byte of a stored chunk says how the rest is stored.
const (
	storedPlain byte = iota
	storedZstd
)

// digestPrefix makes the digest of a chunk differ from that of its bytes.
const digestPrefix = "switchyard chunk\n"

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
})

// newDecoder returns a decoder for at most so many bytes.
func newDecoder(most uint64) *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(most), zstd.WithDecoderConcurrency(2))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
}

var (
	chunkDecoder = sync.OnceValue(func() *zstd.Decoder { return newDecoder(maxChunk) })
	treeDecoder  = sync.OnceValue(func() *zstd.Decoder { return newDecoder(maxTree) })
)

// proofPrefix makes the proof of a chunk differ from its digest.
const proofPrefix = "switchyard proof\n"

// digestOf returns the digest that names a chunk.
func digestOf(content []byte) []byte { return prefixedDigest(digestPrefix, content) }

// proofOf returns a digest that only who has the content of a chunk can compute. It is nowhere stored.
func proofOf(content []byte) []byte { return prefixedDigest(proofPrefix, content) }

func prefixedDigest(prefix string, content []byte) []byte {
	h := sha256.New()
	h.Write([]byte(prefix))
	h.Write(content)
	return h.Sum(nil)
}

// encodeChunk returns a chunk in the form in which it is stored. The value may use the memory of a buffer.
func encodeChunk(content, buffer []byte) []byte {
	if isCompressible(content, buffer) {
		if buffer = encoder().EncodeAll(content, append(buffer[:0], storedZstd)); isWorthwhile(buffer, content) {
			return buffer
		}
	}
	return append(append(buffer[:0], storedPlain), content...)
}

// isCompressible reports whether a part of a chunk can be compressed, as far as samples show. It may overwrite a buffer.
func isCompressible(content, buffer []byte) bool {
	if len(content) < samples*sample {
		return true
	}
	for i := range samples {
		at := i * (len(content) - sample) / (samples - 1)
		part := content[at : at+sample]
		if buffer = encoder().EncodeAll(part, buffer[:0]); isWorthwhile(buffer, part) {
			return true
		}
	}
	return false
}

func isWorthwhile(value, content []byte) bool {
	return len(value) <= len(content)-len(content)/worthwhile
}

// decodeChunk returns the content of a stored chunk, which may share the memory of value. It returns an error unless the content
// has the digest.
func decodeChunk(digest, value []byte) (content []byte, err error) {
	switch {
	case len(value) == 0:
		return nil, errors.New("the chunk is empty")
	case value[0] == storedPlain:
		content = value[1:]
	case value[0] == storedZstd:
		if content, err = chunkDecoder().DecodeAll(value[1:], nil); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("the chunk is stored in the unknown form %d", value[0])
	}
	if len(content) > maxChunk {
		return nil, fmt.Errorf("the chunk has %d bytes, and the maximum is %d", len(content), maxChunk)
	}
	if !bytes.Equal(digestOf(content), digest) {
		return nil, errors.New("the chunk has another digest than its key")
	}
	return content, nil
}

// CheckChunk returns an error unless a value from an untrusted source may be stored under a key of storekey.Chunk.
func CheckChunk(key string, value []byte) error {
	digest, ok := storekey.ParseChunk(key)
	if !ok {
		return fmt.Errorf("%q is not the key of a chunk", key)
	}
	_, err := decodeChunk(digest, value)
	return err
}

package artifacts

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// MaxEntries bounds the files, folders and links of an artifact.
const MaxEntries = 500_000

// ErrInvalid is in the chain of the error of files or a manifest that cannot be an artifact, and never will be.
var ErrInvalid = errors.New("not a valid artifact")

func invalid(format string, args ...any) error {
	return fmt.Errorf(format+" (%w)", append(args, ErrInvalid)...)
}

// digestOfTree returns the digest of names, modes and contents, as in Artifact.digest.
func digestOfTree(tree *v1.ArtifactTree, m *v1.ArtifactManifest) string {
	h := sha256.New()
	h.Write([]byte("switchyard tree\n"))
	field := func(b []byte) {
		var size [binary.MaxVarintLen64]byte
		h.Write(binary.AppendUvarint(size[:0], uint64(len(b))))
		h.Write(b)
	}
	for _, e := range tree.GetEntries() {
		field([]byte(e.GetPath()))
		field([]byte(e.GetTarget()))
		field(fmt.Appendf(nil, "%d %o %d", e.GetKind(), e.GetMode(), e.GetSize()))
	}
	for _, digest := range m.GetChunks() {
		field(digest)
	}
	if len(m.GetContent()) > 0 {
		content, _ := chunkDecoder().DecodeAll(m.GetContent(), nil)
		field(content)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// readTree returns the tree of a manifest. It returns ErrInvalid unless unpacking the tree in an empty folder stays in that
// folder and gives exactly the artifact.
func readTree(m *v1.ArtifactManifest) (*v1.ArtifactTree, error) {
	encoded, err := treeDecoder().DecodeAll(m.GetTree(), nil)
	if err != nil {
		return nil, invalid("the list of files is damaged: %v", err)
	}
	tree := &v1.ArtifactTree{}
	if err := proto.Unmarshal(encoded, tree); err != nil {
		return nil, invalid("the list of files is damaged: %v", err)
	}
	if len(m.GetChunks()) != len(m.GetChunkSizes()) {
		return nil, invalid("it has %d chunks and the sizes of %d", len(m.GetChunks()), len(m.GetChunkSizes()))
	}
	kinds := map[string]v1.ArtifactEntry_Kind{".": v1.ArtifactEntry_KIND_FOLDER}
	size, files := int64(0), int32(0)
	for i, e := range tree.GetEntries() {
		if err := checkEntry(e, kinds, i == 0); err != nil {
			return nil, err
		}
		kinds[e.GetPath()] = e.GetKind()
		if e.GetKind() == v1.ArtifactEntry_KIND_UNSPECIFIED {
			size, files = size+e.GetSize(), files+1
		}
	}
	stored := int64(0)
	for i, n := range m.GetChunkSizes() {
		if n <= 0 || n > maxChunk || len(m.GetChunks()[i]) != sha256.Size {
			return nil, invalid("chunk %d is none", i)
		}
		stored += int64(n)
	}
	if len(m.GetContent()) > 0 {
		content, err := chunkDecoder().DecodeAll(m.GetContent(), nil)
		if err != nil || stored > 0 {
			return nil, invalid("the contents are damaged")
		}
		stored = int64(len(content))
	}
	a := m.GetArtifact()
	if size != stored || size != a.GetSize() || files != a.GetFiles() || digestOfTree(tree, m) != a.GetDigest() {
		return nil, invalid("the list of files is not that of artifact %s with digest %s", a.GetName(), a.GetDigest())
	}
	return tree, nil
}

// checkEntry returns an error unless an entry may follow those of the given kinds.
func checkEntry(e *v1.ArtifactEntry, kinds map[string]v1.ArtifactEntry_Kind, isFirst bool) error {
	name := e.GetPath()
	parent, known := kinds[path.Dir(name)]
	_, again := kinds[name]
	switch {
	case !fs.ValidPath(name) || strings.ContainsRune(name, 0):
		return invalid("%q is not a path in a folder", name)
	case name == "." && (!isFirst || e.GetKind() != v1.ArtifactEntry_KIND_FOLDER):
		return invalid("the artifact would replace its folder")
	case name != "." && again:
		return invalid("%s occurs twice", name)
	case !known || parent != v1.ArtifactEntry_KIND_FOLDER:
		return invalid("%s is not in a folder of the artifact", name)
	case e.GetSize() < 0 || e.GetSize() > 0 && e.GetKind() != v1.ArtifactEntry_KIND_UNSPECIFIED:
		return invalid("%s has the size %d", name, e.GetSize())
	}
	switch e.GetKind() {
	case v1.ArtifactEntry_KIND_UNSPECIFIED, v1.ArtifactEntry_KIND_FOLDER:
		return nil
	case v1.ArtifactEntry_KIND_SYMLINK:
		return checkLink(name, e.GetTarget())
	case v1.ArtifactEntry_KIND_HARD_LINK:
		if of, ok := kinds[e.GetTarget()]; !ok || of != v1.ArtifactEntry_KIND_UNSPECIFIED {
			return invalid("%s is a hard link to %s, which is not a file before it", name, e.GetTarget())
		}
		return nil
	}
	return invalid("%s is of the unknown kind %d", name, e.GetKind())
}

// checkLink returns an error if a symbolic link leads out of the artifact, or could do so through another link. All folders above a link
// are real ones, so that a ".." at the beginning of its target leads to one of them.
func checkLink(name, target string) error {
	above, isBelow := strings.Count(name, "/"), false
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		above = -1
	}
	for _, part := range strings.Split(target, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			isBelow = true
		case isBelow && above >= 0:
			return invalid("%s is a link to %s, which may lead out of the artifact; write .. only at the beginning", shown(name), shown(target))
		default:
			above--
		}
	}
	if above < 0 {
		return invalid("%s is a link that leads out of the artifact, to %s", shown(name), shown(target))
	}
	return nil
}

// shown returns a name for a message: in quotes if it would not be one line of plain text.
func shown(name string) string {
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name {
		return quoted
	}
	return name
}

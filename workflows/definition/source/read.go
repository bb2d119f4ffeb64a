package source

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
)

// These bounds keep the work for any document far below a second and its memory below a few hundred MiB.
const (
	MaxBytes = 1 << 20
	maxDepth = 64
	// maxAliased is the most values that YAML aliases may stand for. Without it, a document of 1 KiB could stand for more
	// values than fit in memory.
	maxAliased = 100_000
)

// Read parses the document into a tree. It returns nil if there is no usable document; the report then holds the reason.
func (r *Report) Read(data []byte) *Node {
	if len(data) > MaxBytes {
		r.Add(Position{1, 1}, Root, "the document is larger than 1 MiB", "split the workflow or move data out of it")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	blank := len(bytes.TrimSpace(data)) == 0
	isJSON := !blank && r.isJSON(data)
	r.Lines = newText(data, !isJSON)
	if at, ok := r.Lines.invalidUTF8(); ok {
		r.Add(at, Root, "the document is not valid UTF-8", "save it as UTF-8")
		return nil
	}
	if blank {
		r.addEmpty()
		return nil
	}
	if isJSON {
		return r.readJSON(data)
	}
	return r.readYAML(data)
}

func (r *Report) addEmpty() {
	r.Add(Position{1, 1}, Root, "the document is empty", "a definition has a name and tasks")
}

func (r *Report) isJSON(data []byte) bool {
	extension := strings.ToLower(filepath.Ext(r.File))
	switch {
	case extension == ".json":
		return true
	case bytes.TrimSpace(data)[0] != '{':
		return false
	}
	// A YAML flow mapping begins with a brace, too.
	return extension != ".yaml" && extension != ".yml" || json.Valid(data)
}

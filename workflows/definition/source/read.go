package source

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
)

// Bounds of a document. They keep the work for any input far below a second
// and its memory below a few hundred MiB.
const (
	MaxBytes = 1 << 20
	maxDepth = 64
	// maxAliased bounds the values that YAML aliases stand for; without it a
	// document of 1 KiB can stand for more values than there is memory.
	maxAliased = 100_000
)

// Read turns the document into a tree; nil when there is none to speak of, and
// then the report says why.
func (r *Report) Read(data []byte) *Node {
	if len(data) > MaxBytes {
		r.Add(Position{1, 1}, Root, "the document is larger than 1 MiB", "split the workflow, or move data out of it")
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
	// A YAML flow mapping begins with a brace too.
	return extension != ".yaml" && extension != ".yml" || json.Valid(data)
}

package docs

import "embed"

// Files holds the pages and their pictures by path, such as compatibility.md.
//
//go:embed *.md *.png migration
var Files embed.FS

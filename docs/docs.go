package docs

import "embed"

// Files holds the pages and their pictures by path, such as compatibility.md.
//
//go:embed *.md *.png development examples migration operations
var Files embed.FS

// Language is the guide to the language of definitions, in Markdown.
//
//go:embed language.md
var Language string

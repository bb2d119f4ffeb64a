package site

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// anchors makes the IDs of headings, by the rules of GitHub, so that a link works there and on the site.
type anchors map[string]bool

// Generate returns the ID of a heading: its letters and digits in lower case, with dashes for spaces. Later ones of equal
// headings end in a number.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(string(heading)))
	one := id
	for n := 1; a[one]; n++ {
		one = id + "-" + strconv.Itoa(n)
	}
	a[one] = true
	return []byte(one)
}

// Put marks an ID as used.
func (a anchors) Put(id []byte) { a[string(id)] = true }

// add marks the IDs of HTML elements as used.
func (a anchors) add(html string) {
	for _, found := range htmlID.FindAllStringSubmatch(html, -1) {
		a[found[1]] = true
	}
}

package source

import (
	"strconv"
	"strings"
)

// Path is a place in a definition, linked from its leaf up to the root, which is nil. Going down a level copies none of the
// levels above.
type Path struct {
	Parent *Path
	Name   string // field, or key of a map
	Index  int    // index in a list, or -1 for a name
	// begins is set where an inline definition of a task of type run begins.
	begins bool
}

// Root is the path of the definition itself.
var Root *Path

// Field returns the path of a field of the message at p.
func (p *Path) Field(name string) *Path { return &Path{Parent: p, Name: name, Index: -1} }

// Key returns the path of an entry of the map at p.
func (p *Path) Key(name string) *Path { return &Path{Parent: p, Name: name, Index: -1} }

// Item returns the path of an item of the list at p, counted from 0.
func (p *Path) Item(i int) *Path { return &Path{Parent: p, Index: i} }

// Inline returns the same path, marked as the root of an inline definition.
func (p *Path) Inline() *Path { return &Path{p.Parent, p.Name, p.Index, true} }

// plainKey reports whether a key reads as one word. Paths are formatted for every value of a document, so this is a loop rather
// than a regular expression.
func plainKey(key string) bool {
	if key == "" || len(key) > 100 || key[0] == '-' {
		return false
	}
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// String formats the path as "tasks.build.dependsOn[0]". A key that would not read as one word is quoted: env["A B"].
func (p *Path) String() string { return render(p.steps()) }

// Local formats the path relative to the enclosing task, or to the defaults of tasks: "retry.backoffMs".
func (p *Path) Local() string {
	steps := p.inner()
	switch {
	case len(steps) > 2 && holdsTasks(steps[0]):
		steps = steps[2:]
	case len(steps) > 1 && steps[0].Name == "defaults":
		steps = steps[1:]
	case len(steps) == 0:
		steps = p.steps()
	}
	return render(steps)
}

// Task returns the path of the task that contains p, or nil if none does.
func (p *Path) Task() *Path {
	if steps := p.inner(); len(steps) >= 2 && holdsTasks(steps[0]) {
		return steps[1]
	}
	return nil
}

// holdsTasks reports whether a step from the root of a definition leads to tasks.
func holdsTasks(step *Path) bool { return step.Name == "tasks" || step.Name == "finally" }

// inner returns the steps of p from the root of the innermost definition that contains it.
func (p *Path) inner() []*Path {
	steps := p.steps()
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].begins {
			return steps[i+1:]
		}
	}
	return steps
}

func (p *Path) steps() []*Path {
	if p == nil {
		return nil
	}
	return append(p.Parent.steps(), p)
}

func render(steps []*Path) string {
	var b strings.Builder
	for _, step := range steps {
		switch {
		case step.Index >= 0:
			b.WriteString("[" + strconv.Itoa(step.Index) + "]")
		case !plainKey(step.Name):
			b.WriteString("[" + Quote(step.Name) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step.Name)
		}
	}
	return b.String()
}

// maxQuoted is the most characters of a value that a message repeats.
const maxQuoted = 60

// Quote formats a value of the document for a message.
func Quote(s string) string {
	if runes := []rune(s); len(runes) > maxQuoted {
		s = string(runes[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}

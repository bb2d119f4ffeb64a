package source

import (
	"strconv"
	"strings"
)

// Path is a place in a definition, from its leaf up to the root, which is nil.
// Going down a level makes no copy of the levels above.
type Path struct {
	Parent *Path
	Name   string // field, or key of a map
	Index  int    // of a list; -1 for a name
	// begins says that a definition begins here: the inline one of a task of type run.
	begins bool
}

// Root is the definition itself.
var Root *Path

// Field returns the place of a field of a message at p.
func (p *Path) Field(name string) *Path { return &Path{Parent: p, Name: name, Index: -1} }

// Key returns the place of an entry of a map at p.
func (p *Path) Key(name string) *Path { return &Path{Parent: p, Name: name, Index: -1} }

// Item returns the place of an item of a list at p, from 0.
func (p *Path) Item(i int) *Path { return &Path{Parent: p, Index: i} }

// Inline returns the same place as the root of a definition.
func (p *Path) Inline() *Path { return &Path{p.Parent, p.Name, p.Index, true} }

// plainKey says that a key reads as one word. Paths are written for every value
// of a document, so this is a loop and no regular expression.
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

// String renders the path as "tasks.build.dependsOn[0]"; a key that would not
// read as one word is quoted: env["A B"].
func (p *Path) String() string { return render(p.steps()) }

// Local renders the path as seen from the task, or from the defaults of tasks,
// that it is in: "retry.backoffMs".
func (p *Path) Local() string {
	steps := p.inner()
	switch {
	case len(steps) > 2 && steps[0].Name == "tasks":
		steps = steps[2:]
	case len(steps) > 1 && steps[0].Name == "defaults":
		steps = steps[1:]
	case len(steps) == 0:
		steps = p.steps()
	}
	return render(steps)
}

// Task returns the name of the task that p is in or below.
func (p *Path) Task() (string, bool) {
	if steps := p.inner(); len(steps) >= 2 && steps[0].Name == "tasks" {
		return steps[1].Name, true
	}
	return "", false
}

// inner returns the steps from the root of the definition that p is in.
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

// maxQuoted bounds how much of a value is repeated in a message, in characters.
const maxQuoted = 60

// Quote renders a value of the document inside a message.
func Quote(s string) string {
	if runes := []rune(s); len(runes) > maxQuoted {
		s = string(runes[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}

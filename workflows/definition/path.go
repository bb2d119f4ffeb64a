package definition

import (
	"strconv"
	"strings"
)

// path is a place in a definition, from its leaf up to the root, which is nil.
// Going down a level makes no copy of the levels above.
type path struct {
	parent *path
	name   string // field, or key of a map
	index  int    // of a list; -1 for a name
	// begins says that a definition begins here: the inline one of a task of type run.
	begins bool
}

// root is the definition itself.
var root *path

func (p *path) field(name string) *path { return &path{parent: p, name: name, index: -1} }
func (p *path) key(name string) *path   { return &path{parent: p, name: name, index: -1} }
func (p *path) item(i int) *path        { return &path{parent: p, index: i} }

// inline returns the same place as the root of a definition.
func (p *path) inline() *path { return &path{p.parent, p.name, p.index, true} }

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
func (p *path) String() string { return render(p.steps()) }

// local renders the path as seen from the task, or from the defaults of tasks,
// that it is in: "retry.backoffMs".
func (p *path) local() string {
	steps := p.inner()
	switch {
	case len(steps) > 2 && steps[0].name == "tasks":
		steps = steps[2:]
	case len(steps) > 1 && steps[0].name == "defaults":
		steps = steps[1:]
	case len(steps) == 0:
		steps = p.steps()
	}
	return render(steps)
}

// task returns the name of the task that p is in or below.
func (p *path) task() (string, bool) {
	if steps := p.inner(); len(steps) >= 2 && steps[0].name == "tasks" {
		return steps[1].name, true
	}
	return "", false
}

// inner returns the steps from the root of the definition that p is in.
func (p *path) inner() []*path {
	steps := p.steps()
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].begins {
			return steps[i+1:]
		}
	}
	return steps
}

func (p *path) steps() []*path {
	if p == nil {
		return nil
	}
	return append(p.parent.steps(), p)
}

func render(steps []*path) string {
	var b strings.Builder
	for _, step := range steps {
		switch {
		case step.index >= 0:
			b.WriteString("[" + strconv.Itoa(step.index) + "]")
		case !plainKey(step.name):
			b.WriteString("[" + quote(step.name) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step.name)
		}
	}
	return b.String()
}

// maxQuoted bounds how much of a value is repeated in a message, in characters.
const maxQuoted = 60

// quote renders a value of the document inside a message.
func quote(s string) string {
	if runes := []rune(s); len(runes) > maxQuoted {
		s = string(runes[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}

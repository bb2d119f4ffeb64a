package definition

import (
	"slices"
	"strconv"
	"strings"
)

// namedParent matches the places where an expression names a task, and namedTask those in `finally`.
var (
	namedParent = lazyPattern(`\bparent` + keyPattern)
	namedTask   = lazyPattern(`\b(?:parent|tasks)` + keyPattern)
)

const keyPattern = `(?:\.([A-Za-z_][A-Za-z0-9_]*)|\['([A-Za-z0-9_-]+)'\]|\["([A-Za-z0-9_-]+)"\])`

// shapeOf returns an expression with its tasks replaced by numbers, and those tasks. Two expressions of the same shape are both
// valid or both invalid if their tasks may be read. A large workflow has thousands of expressions but few shapes, and CEL
// checks each shape once. mark returns what else distinguishes a task. ok is false if the expression may read tasks that are not found
// here.
func shapeOf(text string, isInFinally bool, mark func(task string) string) (shape string, tasks []string, ok bool) {
	named, words := namedParent, strings.Count(text, "parent")
	if isInFinally {
		named, words = namedTask, words+strings.Count(text, "tasks")
	}
	places := named().FindAllStringSubmatchIndex(text, -1)
	if len(places) != words {
		return "", nil, false
	}
	if len(places) == 0 {
		return text, nil, true
	}
	var b strings.Builder
	end := 0
	for _, place := range places {
		from, to := place[2], place[3]
		for k := 4; from < 0; k += 2 {
			from, to = place[k], place[k+1]
		}
		name := text[from:to]
		if place[2] >= 0 && !plainName(name, text[to:]) {
			return "", nil, false
		}
		number := slices.Index(tasks, name)
		if number < 0 {
			number = len(tasks)
			tasks = append(tasks, name)
		}
		b.WriteString(text[end:from])
		b.WriteString("#" + strconv.Itoa(number) + mark(name))
		end = to
	}
	b.WriteString(text[end:])
	return b.String(), tasks, true
}

// plainName reports whether CEL reads the name after a dot as a complete task name, given the text that follows.
func plainName(name, rest string) bool {
	switch name {
	case "in", "true", "false", "null":
		return false
	}
	rest = strings.TrimLeft(rest, " \t\r\n")
	return !strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "(")
}

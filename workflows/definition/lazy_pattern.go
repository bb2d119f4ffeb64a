package definition

import (
	"regexp"
	"sync"
)

// lazyPattern returns a function that compiles a regular expression at its first use, because most commands of the program
// check no definition.
func lazyPattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

package definition

import (
	"regexp"
	"sync"
)

// lazyPattern returns a regular expression that is compiled at its first use, since most commands of the program check no definition.
func lazyPattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

package tui

import "fmt"

// Count returns a number of things in words: "1 task", "3 tasks".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

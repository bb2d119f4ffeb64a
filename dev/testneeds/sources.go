package testneeds

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Sources makes the source of a program that a test builds an input of that test, so that `go test` runs the test again
// after a change instead of using a cached result. It opens the relevant files: go.mod, and the folders of all packages
// of this module in the program.
func Sources(program string) error {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{.GoMod}}\n{{$.Dir}}{{end}}{{end}}", program).Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", program, err)
	}
	for path := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == '\n' }) {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

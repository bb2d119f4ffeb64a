package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"switchyard/docs"
	"switchyard/docs/site"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./dev/docs FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes the site into a folder. It removes nothing from the folder.
func write(folder string) error {
	if folder == "" { // the working directory, in a script whose variable is unset
		return errors.New("the name of the folder is empty; use . for this one")
	}
	files, err := site.Render(docs.Files)
	if err != nil {
		return err
	}
	for name, data := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

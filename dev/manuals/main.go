package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"switchyard/cli"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: manuals FOLDER VERSION")
		os.Exit(2)
	}
	if err := write(cli.Commands(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "manuals:", err)
		os.Exit(1)
	}
}

// write writes the pages and the completions into a folder.
func write(root *cobra.Command, folder, version string) error {
	man, completions := filepath.Join(folder, "man"), filepath.Join(folder, "completions")
	for _, dir := range []string{man, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "switchyard " + version, Manual: "Switchyard"}
	if err := doc.GenManTree(root, header, man); err != nil {
		return err
	}
	for name, generate := range map[string]func(string) error{
		"switchyard.bash": func(path string) error { return root.GenBashCompletionFileV2(path, true) },
		"_switchyard":     root.GenZshCompletionFile,
		"switchyard.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
	} {
		if err := generate(filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	return nil
}

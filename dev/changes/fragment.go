package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fragmentFolder holds the fragments, and a README that is none.
const fragmentFolder = "changes"

// categories are the headings of a section in the order in which a release shows them, from https://keepachangelog.com.
var categories = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}

// fragmentName matches 52.md and 52-doctor.md: the number of the issue, and words that tell two fragments of it apart.
var fragmentName = regexp.MustCompile(`^([0-9]+)(-[a-z0-9-]+)?\.md$`)

// entry is one point of a changelog, in Markdown, with the lines that continue it.
type entry struct {
	category string
	issue    string
	lines    []string
}

// readFragments returns the entries of all fragments in a folder, ordered by file name. The error names every problem.
func readFragments(folder string) ([]entry, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []entry
	var problems []error
	for _, file := range files {
		if file.Name() == "README.md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return nil, err
		}
		entries, err := parseFragment(file.Name(), string(text))
		problems = append(problems, err)
		all = append(all, entries...)
	}
	return all, errors.Join(problems...)
}

// parseFragment returns the entries of a fragment: headings with a category, and below each at least one point.
func parseFragment(name, text string) ([]entry, error) {
	match := fragmentName.FindStringSubmatch(name)
	if match == nil {
		return nil, fmt.Errorf("%s/%s: name the fragment for its issue, such as 52.md or 52-doctor.md", fragmentFolder, name)
	}
	var entries []entry
	category := ""
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, " \n")
		heading, isHeading := strings.CutPrefix(line, "### ")
		switch {
		case line == "":
		case isHeading && slices.Contains(categories, heading):
			category = heading
		case strings.HasPrefix(line, "- ") && category != "":
			entries = append(entries, entry{category, match[1], []string{line}})
		case strings.HasPrefix(line, "  ") && len(entries) > 0 && entries[len(entries)-1].category == category:
			last := &entries[len(entries)-1]
			last.lines = append(last.lines, line)
		default:
			return nil, fmt.Errorf("%s/%s:%d: %q is neither a heading (### %s), nor a point below one (- ...), nor its continuation (two spaces)",
				fragmentFolder, name, number, line, strings.Join(categories, ", ### "))
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%s/%s: the fragment has no point", fragmentFolder, name)
	}
	return entries, nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// newest separates the introduction of CHANGELOG.md from its sections, the newest first.
const newest = "<!-- newest first -->\n"

var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$`)

// release writes the fragments of a repository into its CHANGELOG.md as the section of a version, and removes them.
func release(repository, version string, at time.Time) error {
	if !versionForm.MatchString(version) {
		return fmt.Errorf("%q is no version: give one such as 0.1.0, without a v", version)
	}
	folder, path := filepath.Join(repository, fragmentFolder), filepath.Join(repository, "CHANGELOG.md")
	entries, err := readFragments(folder)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s has no fragments, so %s would change nothing", folder, version)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	introduction, sections, found := strings.Cut(string(text), newest)
	if !found {
		return fmt.Errorf("%s lacks the line %q, below which the sections begin", path, strings.TrimSpace(newest))
	}
	if strings.Contains(sections, "\n## "+version+" ") {
		return fmt.Errorf("%s has a section %s already", path, version)
	}
	text = []byte(introduction + newest + section(version, at, entries) + sections)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(folder, "[0-9]*.md"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// section returns the Markdown of one version, with the entries of each category in their order.
func section(version string, at time.Time, entries []entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s - %s\n", version, at.Format(time.DateOnly))
	for _, category := range categories {
		heading := "\n### " + category + "\n\n"
		for _, e := range entries {
			if e.category != category {
				continue
			}
			fmt.Fprintf(&b, "%s%s (#%s)\n", heading, strings.Join(e.lines, "\n"), e.issue)
			heading = ""
		}
	}
	return b.String()
}

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// surface holds the files that change when something changes that users rely on, as patterns of package path.
var surface = []string{
	"docs/cli.md",                  // commands, flags and exit codes
	"docs/language-reference.md",   // definitions
	"gateway/openapi/openapi.json", // REST
	"proto/switchyard/v1/*.proto",  // Connect and gRPC
}

// commit is a commit with its whole message and the files that it changes. removed lists those of them that it removes.
type commit struct {
	hash    string
	message string
	files   []string
	removed []string
}

var (
	withoutEntry = regexp.MustCompile(`(?m)^Changelog: none\b`)
	lateEntry    = regexp.MustCompile(`(?m)^Changelog-For: ([0-9a-f]{7,40})$`)
)

// checkCommits returns an error with each commit that changes the surface and has no entry: no new or changed file in the folder of
// fragments, no line "Changelog: none", and no later commit that has "Changelog-For" with its hash.
func checkCommits(commits []commit) error {
	var covered []string
	for _, c := range commits {
		for _, match := range lateEntry.FindAllStringSubmatch(c.message, -1) {
			covered = append(covered, match[1])
		}
	}
	var problems []error
	for _, c := range commits {
		changed := c.changedSurface()
		if len(changed) == 0 || c.hasEntry() || hasPrefixOf(c.hash, covered) {
			continue
		}
		subject, _, _ := strings.Cut(c.message, "\n")
		problems = append(problems, fmt.Errorf("%.12s %q changes %s and has no entry in %s/: add one, or the line \"Changelog: none\" to its message; "+
			"if the commit has landed, add the entry in a commit with the line \"Changelog-For: %.12s\"", c.hash, subject, strings.Join(changed, ", "), fragmentFolder, c.hash))
	}
	return errors.Join(problems...)
}

// changedSurface returns the files of the surface that the commit changes.
func (c commit) changedSurface() []string {
	var changed []string
	for _, file := range c.files {
		for _, pattern := range surface {
			if isMatch, _ := path.Match(pattern, file); isMatch { // the patterns are constants, and valid
				changed = append(changed, file)
			}
		}
	}
	return changed
}

func (c commit) hasEntry() bool {
	for _, file := range c.files {
		if path.Dir(file) == fragmentFolder && !slices.Contains(c.removed, file) && fragmentName.MatchString(path.Base(file)) {
			return true
		}
	}
	return withoutEntry.MatchString(c.message)
}

// hasPrefixOf reports whether a hash begins with one of the prefixes.
func hasPrefixOf(hash string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(hash, prefix) {
			return true
		}
	}
	return false
}

// commitsSinceRelease returns the commits of a repository since the last tag v*, or since changes/README.md was added if there
// is no tag. It returns those that a shallow clone has.
func commitsSinceRelease(repository string) ([]commit, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", repository}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	since, err := git("describe", "--tags", "--abbrev=0", "--match", "v*")
	if err != nil { // there is no tag
		since, err = git("log", "--diff-filter=A", "--format=%H", "-1", "--", fragmentFolder+"/README.md")
		if err != nil {
			return nil, fmt.Errorf("read the commits of %s: %w", repository, err)
		}
		if since == "" {
			return nil, nil
		}
	}
	log, err := git("log", "--no-merges", "--format=%x00%H%n%B%x01", "--name-status", "--no-renames", since+"..HEAD")
	if err != nil {
		return nil, fmt.Errorf("read the commits since %s: %w", since, err)
	}
	var commits []commit
	for _, text := range strings.Split(log, "\x00")[1:] {
		head, files, _ := strings.Cut(text, "\x01")
		hash, message, _ := strings.Cut(head, "\n")
		c := commit{hash: hash, message: message}
		for line := range strings.Lines(strings.TrimSpace(files)) {
			status, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
			c.files = append(c.files, file)
			if status == "D" {
				c.removed = append(c.removed, file)
			}
		}
		commits = append(commits, c)
	}
	return commits, nil
}

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchyard/docs/site"
)

// documents returns all documents of the repository by path.
func documents(t *testing.T) map[string]*site.Page {
	t.Helper()
	found := map[string]*site.Page{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "dist") {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		text, err := os.ReadFile(file)
		found[filepath.ToSlash(file)] = site.Parse(filepath.ToSlash(file), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestLinksLeadSomewhere checks that every link in a document leads to a file, and its fragment to an anchor in it.
func TestLinksLeadSomewhere(t *testing.T) {
	pages := documents(t)
	checked := 0
	for name, page := range pages {
		from := name
		if strings.HasPrefix(name, "changes/") && name != "changes/README.md" {
			from = "CHANGELOG.md" // where a release moves the fragments
		}
		for _, l := range page.Links {
			file, fragment := l.File(from)
			if file == "" {
				continue
			}
			checked++
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: there is no file for the link to %s", name, l.Target)
			} else if target := pages[file]; fragment != "" && (target == nil || !target.Anchors[fragment]) {
				t.Errorf("%s: there is no heading for the link to %s", name, l.Target)
			}
			if l.Picture && l.Text == "" {
				t.Errorf("%s: the picture %s has no text for those who cannot see it", name, l.Target)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d links were checked", checked)
	}
}

// TestEveryPageIsReachable checks that the links of docs/index.md lead to every page of the documentation, over other pages
// if need be.
func TestEveryPageIsReachable(t *testing.T) {
	pages := documents(t)
	const index = "docs/index.md"
	reached := map[string]bool{index: true}
	for queue := []string{index}; len(queue) > 0; queue = queue[1:] {
		for _, l := range pages[queue[0]].Links {
			if file, _ := l.File(queue[0]); pages[file] != nil && !reached[file] {
				reached[file], queue = true, append(queue, file)
			}
		}
	}
	for name := range pages {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("no link leads from %s to %s", index, name)
		}
	}
}

// TestCommentsNameDocuments checks that every document that a comment names exists, seen from the file or from the root.
func TestCommentsNameDocuments(t *testing.T) {
	named := regexp.MustCompile(`[\w.-]+/[\w./-]*\w\.md\b|\b(?:README|ARCHITECTURE|CONTRIBUTING|SECURITY|CHANGELOG)\.md\b`)
	checked := 0
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasPrefix(file, "docs/site/") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		for _, group := range parsed.Comments {
			for _, name := range named.FindAllString(group.Text(), -1) {
				checked++
				_, beside := os.Stat(path.Join(filepath.Dir(file), name))
				if _, err := os.Stat(name); err != nil && beside != nil {
					t.Errorf("%s: a comment names %s, which does not exist", file, name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 5 {
		t.Errorf("only %d names were checked", checked)
	}
}

// TestErrorsInTheDocumentationExist checks that the product's sources have the texts of which the headings in
// docs/troubleshooting.md are made.
func TestErrorsInTheDocumentationExist(t *testing.T) {
	const page, least = "docs/troubleshooting.md", 40
	var texts []string
	for _, top := range []string{"activities", "cli", "gateway", "workers", "workflows"} {
		err := filepath.WalkDir(top, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if l, isLiteral := n.(*ast.BasicLit); isLiteral && l.Kind == token.STRING {
					if text, err := strconv.Unquote(l.Value); err == nil {
						texts = append(texts, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	variable := regexp.MustCompile(`"?\.\.\."?`)
	entries := 0
	for _, h := range documents(t)[page].Headings {
		if h.Level != 3 {
			continue
		}
		entries++
		longest := ""
		for _, part := range variable.Split(h.Text, -1) {
			if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) }) {
				t.Errorf("%s: %s: no string of the sources contains %q", page, h.Text, part)
			}
			if len(part) > len(longest) {
				longest = part
			}
		}
		if len(longest) < 10 {
			t.Errorf("%s: %s: the longest part between the variable ones is %q, by which no error can be recognized", page, h.Text, longest)
		}
	}
	if entries < least {
		t.Errorf("%s has %d entries, want %d at least", page, entries, least)
	}
}

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// tableHead is the head of the guide's table of paths. A blank line ends the table.
const tableHead = "| Method | Path | What it does |\n|---|---|---|\n"

// updateGuide writes the table of paths into a guide file.
func updateGuide(file string, document object) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("update the guide: %w", err)
	}
	before, after, found := strings.Cut(string(text), tableHead)
	if !found {
		return fmt.Errorf("update the guide: %s has no table that begins with %q", file, tableHead)
	}
	_, rest, found := strings.Cut(after, "\n\n")
	if !found {
		return fmt.Errorf("update the guide: in %s no blank line follows the table of paths", file)
	}
	whole := before + tableHead + pathTable(document) + "\n" + rest
	if err := os.WriteFile(file, []byte(whole), 0o644); err != nil {
		return fmt.Errorf("update the guide: %w", err)
	}
	return nil
}

// pathTable returns a row for each operation, sorted by path.
func pathTable(document object) string {
	var rows strings.Builder
	paths, _ := document["paths"].(object)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, _ := paths[path].(object)
		for _, method := range slices.Sorted(maps.Keys(item)) {
			operation, _ := item[method].(object)
			description, _ := operation["description"].(string)
			fmt.Fprintf(&rows, "| %s | `%s` | %s |\n", strings.ToUpper(method), path, firstSentence(description))
		}
	}
	return rows.String()
}

// firstSentence returns a text up to its first full stop, as one line.
func firstSentence(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if end := strings.Index(line, ". "); end >= 0 {
		line = line[:end+1]
	}
	return line
}

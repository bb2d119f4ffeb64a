package definition

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"switchyard/docs/site"
	v1 "switchyard/proto/switchyard/v1"
)

// TestDefinitionsOfDocuments checks every definition in the documentation, and every fragment of one.
func TestDefinitionsOfDocuments(t *testing.T) {
	t.Parallel()
	checked := 0
	pages, _, err := site.Read(os.DirFS("../../docs"))
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range pages {
		for _, f := range page.Fences {
			if f.Language != "yaml" || f.Info == "settings" {
				continue
			}
			at := fmt.Sprintf("docs/%s:%d", name, f.Line)
			isUsed := slices.ContainsFunc(page.Fences, func(other site.Fence) bool { return other.Language == "sh" && strings.Contains(other.Text, f.File()) })
			switch isWhole := regexp.MustCompile(`(?m)^"?tasks"?:`).MatchString(f.Text); {
			case f.Info != "" && f.File() == "":
				t.Errorf("%s: ```yaml %s: write settings, or the name of the file, or nothing", at, f.Info)
			case f.Info != "" && !isUsed:
				t.Errorf("%s: no command of the page uses %s", at, f.Info)
			case f.Info != "" && !isWhole: // a file of another kind, which its command checks
			default:
				checked++
				if err := checkFragment(f.Text); err != nil {
					t.Errorf("%s: %v", at, err)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d definitions were checked", checked)
	}
}

// checkFragment checks a definition, the fields of a workflow, of a task or of a spec, or a map of tasks: whichever the text is.
func checkFragment(text string) error {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return fmt.Errorf("not a mapping: %w", err)
	}
	stub := map[string]any{"type": "shell", "spec": map[string]any{"command": "true"}}
	var first error
	readings := []map[string]any{
		overlay(map[string]any{"tasks": map[string]any{"stub": stub}}, fields),
		{"tasks": complete(map[string]any{"fragment": fields})},
		{"tasks": complete(fields)},
	}
	for _, taskType := range v1.TaskTypes() {
		described, _ := v1.FindTaskType(taskType)
		spec := overlay(map[string]any{described.MainField: "text"}, fields)
		readings = append(readings, map[string]any{"tasks": complete(map[string]any{"fragment": map[string]any{"type": taskType, "spec": spec}})})
	}
	for _, reading := range readings {
		err := parseFragment(reading, stub, text)
		if err == nil {
			return nil
		}
		if first == nil || strings.Contains(first.Error(), "unknown field") && !strings.Contains(err.Error(), "unknown field") {
			first = err
		}
	}
	return first
}

// parseFragment checks a definition. Tasks that it names and does not have are added.
func parseFragment(definition, stub map[string]any, text string) error {
	definition = overlay(map[string]any{"name": "fragment"}, definition)
	tasks, _ := definition["tasks"].(map[string]any)
	if _, ok := definition["tasks"]; ok && !regexp.MustCompile(`(?m)^tasks:`).MatchString(text) {
		tasks = overlay(map[string]any{}, tasks)
		for _, named := range regexp.MustCompile(`parent\.([A-Za-z0-9_-]+)|(?:dependsOn|depends_on): *\[([^\]]*)\]`).FindAllStringSubmatch(text, -1) {
			for name := range strings.SplitSeq(named[1]+","+named[2], ",") {
				if name = strings.TrimSpace(name); name != "" && tasks[name] == nil {
					tasks[name] = stub
				}
			}
		}
		definition["tasks"] = tasks
	}
	data, err := yaml.Marshal(definition)
	if err != nil {
		return err
	}
	checked, err := ParseChecked("fragment", data)
	if err == nil && len(checked.Warnings) > 0 {
		err = checked.Warnings
	}
	return err
}

// complete returns tasks of which each has a type, a spec, and the parents that it names.
func complete(tasks map[string]any) map[string]any {
	completed := map[string]any{}
	for name, task := range tasks {
		fields, ok := task.(map[string]any)
		if !ok {
			completed[name] = task
			continue
		}
		fields = overlay(map[string]any{"type": "shell"}, fields)
		if fields["spec"] == nil && fields["type"] == "shell" {
			fields["spec"] = map[string]any{"command": "true"}
		}
		parents := []string{}
		for _, named := range parentName.FindAllStringSubmatch(fmt.Sprint(fields), -1) {
			parents = append(parents, named[1])
		}
		completed[name] = overlay(map[string]any{"dependsOn": parents}, fields)
	}
	return completed
}

// parentName matches an expression about a parent.
var parentName = regexp.MustCompile(`\bparent\.([A-Za-z0-9_-]+)`)

// overlay returns the entries of both maps; those of the second one win.
func overlay(first, second map[string]any) map[string]any {
	all := map[string]any{}
	for _, entries := range []map[string]any{first, second} {
		for name, value := range entries {
			all[name] = value
		}
	}
	return all
}

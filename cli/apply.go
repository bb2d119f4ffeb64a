package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
)

// defaultOwner owns what apply stores if no flag names an owner.
const defaultOwner = "apply"

// What apply does with a definition, and import with an item.
const (
	stepCreate = "created"
	stepChange = "changed"
	stepAdopt  = "adopted"
	stepKeep   = "unchanged"
	stepDelete = "deleted"
)

// applyFlags holds the flags of apply.
type applyFlags struct {
	path, owner          string
	prune, dryRun, adopt bool
}

func newApply(sys *system) *cobra.Command {
	f := applyFlags{owner: defaultOwner}
	cmd := &cobra.Command{
		Use:   "apply -f DIR",
		Short: "Make the stored definitions those of a folder",
		Long: `Makes the stored definitions those of the files in a folder and the folders below it (.yaml,
.yml and .json; hidden ones are left out). It prints what is different, checks everything
before it changes anything, and stores only what is new or changed. Schedules are parts of
definitions.

What it stores has an owner. Definitions with another owner, and those that a person has
stored with "workflows put", are refused unless --adopt takes them over. With --prune it
deletes the definitions of the owner that the folder no longer has.

Exit codes with --dry-run: 0 nothing would change, 1 something would.`,
		Args: arguments(0, 0, ""),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.path, "filename", "f", "", "folder with definitions, or one file")
	flags.BoolVar(&f.prune, "prune", false, "delete the owner's definitions that the folder does not have; needs --owner")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only print what would change")
	flags.StringVar(&f.owner, "owner", defaultOwner, "owner of the definitions, such as the name of their repository")
	flags.BoolVar(&f.adopt, "adopt", false, "take over definitions that have another owner or none")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		switch {
		case f.path == "":
			return exit.Usagef("-f is missing: give a folder with definitions")
		case f.prune && !flags.Changed("owner"):
			return exit.Usagef("--prune deletes what an owner has stored: name the owner with --owner, another one for each folder")
		}
		documents, err := readFolder(sys, f.path)
		if err != nil {
			return err
		}
		steps, err := f.plan(ctx, a, documents)
		if err != nil {
			return err
		}
		if err := writeSteps(sys, format.Value, steps, applyStep.text); err != nil {
			return err
		}
		if !f.dryRun {
			return f.carryOut(ctx, sys, a, steps)
		}
		for _, step := range steps {
			printWarnings(sys, step.Name, step.warnings)
		}
		if slices.ContainsFunc(steps, applyStep.changes) {
			return exit.Silent(exit.CodeNotDone)
		}
		return nil
	})
	return cmd
}

// applyStep is what apply does with one definition.
type applyStep struct {
	Name   string `json:"name"`
	Action string `json:"action"`
	// File is the file of the definition, or "" if it is deleted.
	File string `json:"file"`
	// Diff is the difference between the stored definition and the one of the file, in the unified format.
	Diff string `json:"diff"`

	document *document
	warnings []*v1.Problem
}

func (s applyStep) changes() bool { return s.Action != stepKeep }

// readFolder reads and checks the definitions of a folder, or of one file. Its error lists the problems of all files.
func readFolder(sys *system, path string) ([]*document, error) {
	var documents []*document
	var problems source.Problems
	files := map[string]string{} // by the name of the definition
	err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(filepath.Base(file), ".") && file != path; {
		case err != nil:
			return unreadable(err)
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir() || file != path && !isDefinitionFile(file):
			return nil
		}
		d, err := readDocument(sys, file)
		if found, listed := errors.AsType[source.Problems](err); listed {
			problems = append(problems, found...)
			return nil
		}
		if err != nil {
			return err
		}
		name := d.def.GetName()
		if first, twice := files[name]; twice {
			problems = append(problems, &v1.Problem{File: file, Message: fmt.Sprintf("workflow %s is also in %s", name, first), Hint: "give one of them another name"})
		}
		files[name] = file
		documents = append(documents, d)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(problems) > 0:
		return nil, &exit.Error{Code: exit.CodeUsage, Err: problems}
	case len(documents) == 0:
		return nil, exit.Usagef("%s contains no definition (.yaml, .yml or .json)", path)
	}
	return documents, nil
}

func isDefinitionFile(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// plan compares the documents with what is stored. It returns an error that lists everything that the gateway refuses.
func (f applyFlags) plan(ctx context.Context, a *client.Client, documents []*document) ([]applyStep, error) {
	var steps []applyStep
	var refused []error
	named := map[string]bool{}
	for _, d := range documents {
		named[d.def.GetName()] = true
		plan, err := client.Call(ctx, a, a.Workflows.PlanWorkflow, &v1.PlanWorkflowRequest{Document: string(d.text), File: d.file})
		if exit.CodeOf(ctx, err) == exit.CodeUsage {
			refused = append(refused, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		step := applyStep{Name: plan.GetName(), Action: stepCreate, File: d.file, document: d, warnings: plan.GetWarnings()}
		switch same := proto.Equal(plan.GetStored(), plan.GetDefinition()); {
		case plan.GetStored() == nil:
		case plan.GetOwner() != f.owner && !f.adopt:
			refused = append(refused, fmt.Errorf("%s: workflow %s %s; leave it out of the folder, or take it over with --adopt", d.file, step.Name, ownedBy(plan.GetOwner())))
		case same && plan.GetOwner() == f.owner:
			step.Action = stepKeep
		case same:
			step.Action = stepAdopt
		default:
			step.Action = stepChange
		}
		if step.Diff, err = diffOf(step.Name, d.file, plan.GetStored(), plan.GetDefinition()); err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	if len(refused) > 0 {
		return nil, &exit.Error{Code: exit.CodeUsage, Err: errors.Join(refused...), Hint: "nothing has been changed"}
	}
	if !f.prune {
		return steps, nil
	}
	for token := ""; ; {
		page, err := client.Call(ctx, a, a.Workflows.ListWorkflows, &v1.ListWorkflowsRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			return nil, err
		}
		for _, stored := range page.GetItems() {
			if stored.GetOwner() == f.owner && !named[stored.GetName()] {
				steps = append(steps, applyStep{Name: stored.GetName(), Action: stepDelete})
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return steps, nil
		}
	}
}

func ownedBy(owner string) string {
	if owner == "" {
		return "was stored without an owner"
	}
	return "is owned by " + owner
}

// diffOf returns the lines in which two definitions differ, or "" if one of them is missing or they are the same.
func diffOf(name, file string, stored, next *v1.Definition) (string, error) {
	if stored == nil || proto.Equal(stored, next) {
		return "", nil
	}
	before, err := definition.Print(stored)
	if err != nil {
		return "", err
	}
	after, err := definition.Print(next)
	if err != nil {
		return "", err
	}
	return unifiedDiff("stored "+name, file, string(before), string(after))
}

// unifiedDiff returns the lines in which two texts differ.
func unifiedDiff(fromName, toName, from, to string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(from), B: difflib.SplitLines(to), FromFile: fromName, ToFile: toName, Context: 3,
	})
}

// text returns the step as lines for people.
func (s applyStep) text() string { return stepText(s.Action, s.Name, s.Diff) }

// stepText returns what is done with something, and the difference that it makes, as lines for people.
func stepText(action, what, diff string) string {
	text := fmt.Sprintf("%-9s  %s\n", action, what)
	for line := range strings.Lines(diff) {
		text += "    " + line
	}
	return text
}

// writeSteps prints steps.
func writeSteps[Step any](sys *system, format string, steps []Step, text func(Step) string) error {
	if format == output.JSON {
		return output.WriteJSON(sys.stdout, map[string]any{"items": steps})
	}
	for _, step := range steps {
		if _, err := io.WriteString(sys.stdout, text(step)); err != nil {
			return err
		}
	}
	return nil
}

// carryOut stores and deletes definitions, and then prints the warnings about what it has stored.
func (f applyFlags) carryOut(ctx context.Context, sys *system, a *client.Client, steps []applyStep) error {
	for _, step := range steps {
		switch step.Action {
		case stepKeep:
			continue
		case stepDelete:
			_, err := client.Call(ctx, a, a.Workflows.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: step.Name, Owner: f.owner})
			if err != nil && exit.CodeOf(ctx, err) != exit.CodeUsage { // lists lag behind, so it may be gone
				return err
			}
			continue
		}
		if _, err := client.Call(ctx, a, a.Workflows.PutWorkflow, &v1.PutWorkflowRequest{
			Source: &v1.PutWorkflowRequest_Document{Document: string(step.document.text)}, File: step.File, Owner: f.owner, Adopt: f.adopt,
		}); err != nil {
			return err
		}
	}
	for _, step := range steps {
		if step.document == nil || step.Action == stepKeep {
			continue
		}
		// A definition may refer to one that was stored after it.
		plan, err := client.Call(ctx, a, a.Workflows.PlanWorkflow, &v1.PlanWorkflowRequest{Document: string(step.document.text), File: step.File})
		if err != nil {
			return err
		}
		printWarnings(sys, step.Name, plan.GetWarnings())
	}
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// dryRunNote is the last line of a dry run, on standard error.
const dryRunNote = "a dry run: nothing has been changed"

// applyFlags holds the flags of apply.
type applyFlags struct {
	paths                []string
	owner                string
	prune, dryRun, adopt bool
}

func newApply(sys *system) *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply -f DIR",
		Short: "Make the stored definitions those of a folder",
		Long: `Makes the stored definitions those of the files in a folder and the folders below it (.yaml,
.yml and .json; hidden ones are left out). It checks everything before it changes anything,
stores only what is new or changed, and prints what it has done. Schedules are parts of
definitions.

What it stores has an owner. Definitions with another owner, and those that a person has
stored with "workflows put", are refused unless --adopt takes them over. With --prune it
deletes the definitions of the owner that the folders do not have.

Exit codes with --dry-run: 0 nothing would change, 1 something would.`,
		Args: arguments(0, 0, ""),
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.paths, "filename", "f", nil, "folder with definitions, or one file; may be repeated")
	flags.BoolVar(&f.prune, "prune", false, "delete the owner's definitions that the folders do not have; needs --owner")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only print what would change")
	flags.StringVar(&f.owner, "owner", defaultOwner, "owner of the definitions, such as the name of their repository")
	flags.BoolVar(&f.adopt, "adopt", false, "take over definitions that have another owner or none")
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, _ []string) error {
		switch {
		case len(f.paths) == 0:
			return exit.Usagef("-f is missing: give a folder with definitions")
		case f.owner == "":
			return exit.Usagef("--owner is empty: give the name of an owner")
		case f.prune && f.owner == defaultOwner && !flags.Changed("owner"):
			return exit.Usagef("--prune deletes what an owner has stored: name the owner with --owner, another one for each folder")
		}
		documents, err := f.readDocuments(sys)
		if err != nil {
			return err
		}
		steps, err := f.plan(ctx, a, documents)
		if err != nil {
			return err
		}
		done := len(steps)
		if !f.dryRun {
			done, err = f.carryOut(ctx, a, steps)
		}
		if failure := writeSteps(sys, format.Value, steps[:done], applyStep.text); err == nil {
			err = failure
		}
		if err != nil {
			return err
		}
		for _, step := range steps {
			printWarnings(sys, step.Name, step.warnings)
		}
		if f.dryRun {
			sys.printLines([]string{dryRunNote})
		}
		if f.dryRun && slices.ContainsFunc(steps, applyStep.changes) {
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
	// From is the owner from whom apply takes the definition, "" if it had none; nil if it takes it from no owner.
	From *string `json:"from,omitempty"`

	document *document
	warnings []*v1.Problem
}

// title names the definition, and from whom apply takes it.
func (s applyStep) title() string {
	switch {
	case s.From == nil:
		return s.Name
	case *s.From == "":
		return s.Name + "  (had no owner)"
	}
	return s.Name + "  (from " + *s.From + ")"
}

func (s applyStep) changes() bool { return s.Action != stepKeep }

// readDocuments reads and checks the definitions of all folders and files. Its error lists the problems of all of them.
func (f applyFlags) readDocuments(sys *system) ([]*document, error) {
	var documents []*document
	var problems source.Problems
	files := map[string]string{} // by the name of the definition
	for _, path := range f.paths {
		found, err := f.findFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			d, err := readDocument(sys, file)
			if listed, are := errors.AsType[source.Problems](err); are {
				problems = append(problems, listed...)
				continue
			}
			if err != nil {
				return nil, err
			}
			name := d.def.GetName()
			if first, twice := files[name]; twice {
				problems = append(problems, &v1.Problem{File: file, Message: fmt.Sprintf("workflow %s is also in %s", name, first), Hint: "give one of them another name"})
			}
			files[name] = file
			documents = append(documents, d)
		}
	}
	if len(problems) > 0 {
		return nil, &exit.Error{Code: exit.CodeUsage, Err: problems}
	}
	return documents, nil
}

// findFiles returns the files with definitions in a folder and below it, or path itself if it is a file. A link must not lead out of
// the folder: whoever writes into a repository does not decide what else of this machine is read and shown.
func (f applyFlags) findFiles(path string) (found []string, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, &exit.Error{Code: exit.CodeUsage, Err: fmt.Errorf("read the folder: %w", err), Hint: "give a folder with definitions"}
	case info.Mode().IsRegular() && f.prune:
		return nil, exit.Usagef("%s is a file: --prune deletes what a folder does not have, so give the folder", path)
	case info.Mode().IsRegular():
		return []string{path}, nil
	case !info.IsDir():
		return nil, exit.Usagef("%s is neither a folder nor a file", path)
	}
	root, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, unreadable(err)
	}
	// With the separator, a link to a folder is walked, too.
	err = filepath.WalkDir(path+string(filepath.Separator), func(file string, entry fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(filepath.Base(file), ".") && filepath.Clean(file) != filepath.Clean(path); {
		case err != nil:
			return unreadable(err)
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		}
		mode := entry.Type()
		if mode&fs.ModeSymlink != 0 {
			info, err := os.Stat(file)
			if err != nil {
				return unreadable(err)
			}
			if info.IsDir() {
				return exit.Usagef("%s is a link to a folder, which is not followed; give that folder with a further -f", file)
			}
			mode = info.Mode()
			target, err := filepath.EvalSymlinks(file)
			if err != nil {
				return unreadable(err)
			}
			if inside, err := filepath.Rel(root, target); isDefinitionFile(file) && (err != nil || !filepath.IsLocal(inside)) {
				return exit.Usagef("%s is a link that leads out of the folder; put the file into the folder", file)
			}
		}
		if !isDefinitionFile(file) {
			return nil
		}
		if !mode.IsRegular() {
			return exit.Usagef("%s is not a regular file", file)
		}
		found = append(found, filepath.Clean(file))
		return nil
	})
	if err == nil && len(found) == 0 {
		err = exit.Usagef("%s contains no definition (.yaml, .yml or .json)", path)
	}
	return found, err
}

func isDefinitionFile(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// plan compares the documents with what is stored. It returns an error that lists everything that the gateway refuses. Each step
// comes after those for the workflows that its runs start in any case, so that what is stored never refers to itself meanwhile.
func (f applyFlags) plan(ctx context.Context, a *client.Client, documents []*document) ([]applyStep, error) {
	folder := map[string]*document{}
	for _, d := range documents {
		folder[d.def.GetName()] = d
	}
	var deleted []string
	if f.prune {
		var err error
		if deleted, err = f.ownedOutside(ctx, a, folder); err != nil {
			return nil, err
		}
	}
	var steps []applyStep
	var refused []error
	for _, d := range inOrder(documents, folder) {
		step, err := f.compare(ctx, a, d, folder, deleted)
		switch exit.CodeOf(ctx, err) {
		case exit.CodeDone:
			steps = append(steps, step)
		case exit.CodeUsage:
			refused = append(refused, err)
		case exit.CodeNotDone:
			refused = append(refused, fmt.Errorf("%s: %w; leave it out of the folder, or take it over with --adopt", d.file, err))
		default:
			return nil, err
		}
	}
	if len(refused) > 0 {
		return nil, &exit.Error{Code: exit.CodeUsage, Err: errors.Join(refused...), Hint: "nothing has been changed"}
	}
	for _, name := range deleted {
		steps = append(steps, applyStep{Name: name, Action: stepDelete})
	}
	return steps, nil
}

// ownedOutside returns the definitions that the owner has stored and that the folder does not have.
func (f applyFlags) ownedOutside(ctx context.Context, a *client.Client, folder map[string]*document) (found []string, err error) {
	for token := ""; ; {
		page, err := client.Call(ctx, a, a.Workflows.ListWorkflows, &v1.ListWorkflowsRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			return nil, err
		}
		for _, stored := range page.GetItems() {
			if stored.GetOwner() == f.owner && folder[stored.GetName()] == nil {
				found = append(found, stored.GetName())
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			return found, nil
		}
	}
}

// inOrder returns the documents, each after those whose workflows its runs start in any case.
func inOrder(documents []*document, folder map[string]*document) (ordered []*document) {
	seen := map[*document]bool{}
	var add func(d *document)
	add = func(d *document) {
		if d == nil || seen[d] {
			return
		}
		seen[d] = true
		for _, name := range definition.CertainRuns(d.def) {
			add(folder[name])
		}
		ordered = append(ordered, d)
	}
	for _, d := range documents {
		add(d)
	}
	return ordered
}

// alongside returns the texts of the documents in the folder that a document refers to, also through others.
func alongside(d *document, folder map[string]*document) (texts []string) {
	seen := map[*document]bool{d: true}
	for todo := []*document{d}; len(todo) > 0; todo = todo[1:] {
		for _, name := range todo[0].names {
			if other := folder[name]; other != nil && !seen[other] {
				seen[other] = true
				texts, todo = append(texts, string(other.text)), append(todo, other)
			}
		}
	}
	return texts
}

// compare returns what apply does with a document.
func (f applyFlags) compare(ctx context.Context, a *client.Client, d *document, folder map[string]*document, deleted []string) (applyStep, error) {
	plan, err := client.Call(ctx, a, a.Workflows.PlanWorkflow, &v1.PlanWorkflowRequest{
		Document: string(d.text), File: d.file, Owner: f.owner, Adopt: f.adopt, Alongside: alongside(d, folder), Deleted: deleted,
	})
	if err != nil {
		return applyStep{}, err
	}
	step := applyStep{Name: plan.GetName(), Action: stepCreate, File: d.file, document: d, warnings: plan.GetWarnings()}
	if plan.GetStored() == nil {
		return step, nil
	}
	if plan.GetOwner() != f.owner {
		step.From = &plan.Owner
	}
	// A person may have paused or resumed the schedule, while the definition says otherwise.
	wanted := plan.GetDefinition().GetSchedule()
	sets := wanted != nil && wanted.Paused != nil && plan.GetSchedule() != nil && wanted.GetPaused() != plan.GetSchedule().GetPaused()
	switch same := proto.Equal(plan.GetStored(), plan.GetDefinition()) && !sets; {
	case !same:
		step.Action = stepChange
	case step.From != nil:
		step.Action = stepAdopt
	default:
		step.Action = stepKeep
	}
	step.Diff, err = diffOf(step.Name, d.file, plan.GetStored(), plan.GetDefinition())
	if sets {
		step.Diff += fmt.Sprintf("the definition says schedule.paused: %t, and the schedule is otherwise\n", wanted.GetPaused())
	}
	return step, err
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
func (s applyStep) text() string { return stepText(s.Action, s.title(), s.Diff) }

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

// carryOut stores and deletes definitions. It returns the number of steps that are done.
func (f applyFlags) carryOut(ctx context.Context, a *client.Client, steps []applyStep) (done int, err error) {
	for k, step := range steps {
		if err := f.carryOutStep(ctx, a, step); err != nil {
			return k, &exit.Error{Code: exit.CodeOf(ctx, err), Err: err, Hint: fmt.Sprintf("%d of %d definitions are as they should be; the same command continues with the others", k, len(steps))}
		}
	}
	return len(steps), nil
}

func (f applyFlags) carryOutStep(ctx context.Context, a *client.Client, step applyStep) error {
	switch step.Action {
	case stepKeep:
		return nil
	case stepDelete:
		_, err := client.Call(ctx, a, a.Workflows.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: step.Name, Owner: f.owner})
		if exit.CodeOf(ctx, err) == exit.CodeUsage { // lists lag behind, so it may be gone
			return nil
		}
		return err
	}
	_, err := client.Call(ctx, a, a.Workflows.PutWorkflow, &v1.PutWorkflowRequest{
		Source: &v1.PutWorkflowRequest_Document{Document: string(step.document.text)}, File: step.File, Owner: f.owner, Adopt: f.adopt,
	})
	return err
}

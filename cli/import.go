package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/exportfile"
	"switchyard/cli/output"
	v1 "switchyard/proto/switchyard/v1"
)

// stepConflict is the action of a step that import refuses.
const stepConflict = "conflict"

// importFlags holds the flags of import.
type importFlags struct {
	skip              []string
	dryRun, overwrite bool
}

func newImport(sys *system) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Set up a fleet as a file of export says",
		Long: `Sets up what a file of "switchyard export" contains, in an empty fleet or beside what a fleet
already has. It prints what is new and what is different, and checks everything before it
changes anything. If the fleet has something different under a name of the file, all is
refused unless --overwrite replaces it. What the file does not have is kept.

A second import changes nothing. Schedules begin to start runs at once, except those that
were paused. FILE may be - for standard input. Only an admin can import.

Exit codes with --dry-run: 0 nothing would change, 1 something would.`,
		Args: arguments(1, 1, "FILE"),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "only print what would change")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace what is different")
	skipFlag(cmd, &f.skip)
	passphraseFlag(cmd)
	clientFlag(cmd)
	format := output.FormatFlag(cmd, output.Text, output.JSON)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		file, err := f.read(sys, args[0])
		if err != nil {
			return err
		}
		if err := sys.openSecrets(cmd, file); err != nil {
			return err
		}
		steps, err := f.plan(ctx, a, args[0], file.Items)
		if err != nil {
			return err
		}
		if err := writeSteps(sys, format.Value, steps, importStep.text); err != nil {
			return err
		}
		if n := countSteps(steps, stepConflict); n > 0 {
			return &exit.Error{
				Code: exit.CodeNotDone, Err: fmt.Errorf("%d of %d items are different in this fleet; nothing has been changed", n, len(steps)),
				Hint: "replace them with --overwrite, or leave their kind out with --skip KIND",
			}
		}
		if !f.dryRun {
			return f.carryOut(ctx, sys, a, steps)
		}
		for _, step := range steps {
			sys.printLines(step.warnings)
		}
		sys.printLines([]string{dryRunNote})
		if countSteps(steps, stepKeep) < len(steps) {
			return exit.Silent(exit.CodeNotDone)
		}
		return nil
	})
	return cmd
}

// importStep is what import does with one item.
type importStep struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Action string `json:"action"`
	// Diff is the difference between the stored item and the one of the file, in the unified format, without values of secrets.
	Diff string `json:"diff"`

	item     *v1.ExportedItem
	warnings []string
}

// text returns the step as lines for people.
func (s importStep) text() string { return stepText(s.Action, s.Kind+" "+s.Name, s.Diff) }

func countSteps(steps []importStep, action string) (n int) {
	for _, step := range steps {
		if step.Action == action {
			n++
		}
	}
	return n
}

// read reads the file to import.
func (f importFlags) read(sys *system, path string) (exportfile.File, error) {
	in, name := sys.stdin, "stdin"
	if path != "-" {
		opened, err := os.Open(path)
		if err != nil {
			return exportfile.File{}, unreadable(err)
		}
		defer opened.Close()
		in, name = opened, path
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return exportfile.File{}, unreadable(err)
	}
	if err := lightValidator(); err != nil {
		return exportfile.File{}, fmt.Errorf("set up validation: %w", err)
	}
	file, err := exportfile.Read(name, text, f.skip)
	if err != nil {
		return file, &exit.Error{Code: exit.CodeUsage, Err: err}
	}
	return file, checkKinds(f.skip, slices.Concat(exportKinds(), file.UnknownKinds))
}

// openSecrets opens the secrets of a file with the pass phrase.
func (s *system) openSecrets(cmd *cobra.Command, file exportfile.File) error {
	isSecret := func(item *v1.ExportedItem) bool { return item.GetSecret() != nil }
	if !slices.ContainsFunc(file.Items, isSecret) {
		return nil
	}
	passphrase, err := s.givenPassphrase(cmd)
	if err == nil && passphrase == "" {
		passphrase, err = s.askPassphrase(cmd.Context(), false)
	}
	if err != nil {
		return err
	}
	key, err := exportfile.OpenKey(file.Key, passphrase)
	if err != nil {
		return &exit.Error{Code: exit.CodeUsage, Err: err, Hint: "leave the secrets out with --skip secret"}
	}
	var faults []error
	for _, item := range file.Items {
		if isSecret(item) {
			faults = append(faults, key.OpenSecret(item))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return &exit.Error{Code: exit.CodeUsage, Err: err, Hint: "leave the secrets out with --skip secret"}
	}
	return nil
}

// plan compares items with what is stored. It returns an error that lists everything that the gateway refuses.
func (f importFlags) plan(ctx context.Context, a *client.Client, name string, items []*v1.ExportedItem) ([]importStep, error) {
	var steps []importStep
	var refused []error
	code := exit.CodeNotDone
	disabled := map[string]bool{} // kinds that the gateway stores none of
	for _, item := range items {
		plan, err := client.Call(ctx, a, a.Export.PlanImport, &v1.PlanImportRequest{Item: item})
		switch exit.CodeOf(ctx, err) {
		case exit.CodeUsage:
			refused, code = append(refused, fmt.Errorf("%s %s: %w", item.GetKind(), item.GetName(), err)), exit.CodeUsage
			continue
		case exit.CodeNotDone:
			if !disabled[item.GetKind()] {
				refused = append(refused, fmt.Errorf("%s %s: %w (--skip %s)", item.GetKind(), item.GetName(), err, item.GetKind()))
			}
			disabled[item.GetKind()] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		step := importStep{Kind: item.GetKind(), Name: item.GetName(), Action: stepKeep, item: item, warnings: plan.GetWarnings()}
		switch action := plan.GetAction(); {
		case action == v1.ImportCreate:
			step.Action = stepCreate
		case action == v1.ImportChange && f.overwrite:
			step.Action = stepChange
		case action == v1.ImportChange:
			step.Action = stepConflict
		}
		if plan.GetAction() == v1.ImportChange {
			if step.Diff, err = diffOfItems(name, plan.GetStored(), item); err != nil {
				return nil, err
			}
		}
		steps = append(steps, step)
	}
	if len(refused) > 0 {
		return nil, &exit.Error{Code: code, Err: errors.Join(refused...), Hint: "nothing has been changed"}
	}
	return steps, nil
}

// diffOfItems returns the lines in which two items differ, without values of secrets.
func diffOfItems(file string, stored, next *v1.ExportedItem) (string, error) {
	if next.GetSecret() != nil {
		next = proto.CloneOf(next)
		next.GetSecret().Value = nil
	}
	before, err := exportfile.Spec(stored)
	if err != nil {
		return "", err
	}
	after, err := exportfile.Spec(next)
	if err != nil {
		return "", err
	}
	return unifiedDiff("stored "+next.GetName(), file, before, after)
}

// carryOut stores items, and then prints what they still need.
func (f importFlags) carryOut(ctx context.Context, sys *system, a *client.Client, steps []importStep) error {
	for k, step := range steps {
		if step.Action == stepKeep {
			continue
		}
		if _, err := client.Call(ctx, a, a.Export.ImportItem, &v1.ImportItemRequest{Item: step.item, Overwrite: f.overwrite}); err != nil {
			return &exit.Error{
				Code: exit.CodeOf(ctx, err), Err: fmt.Errorf("%s %s: %w", step.Kind, step.Name, err),
				Hint: fmt.Sprintf("%d of %d items are as the file says; the same command continues with the others", k, len(steps)),
			}
		}
	}
	for _, step := range steps {
		if len(step.warnings) == 0 {
			continue
		}
		// An item may refer to one that was stored after it.
		plan, err := client.Call(ctx, a, a.Export.PlanImport, &v1.PlanImportRequest{Item: step.item})
		if err != nil {
			return err
		}
		sys.printLines(plan.GetWarnings())
	}
	return nil
}

// printLines prints lines on standard error.
func (s *system) printLines(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(s.screen, line)
	}
}

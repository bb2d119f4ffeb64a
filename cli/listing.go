package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"switchyard/cli/client"
	"switchyard/cli/exit"
	"switchyard/cli/output"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

// listing holds the flags of a command that lists items page by page.
type listing struct {
	limit  int32
	most   int32 // highest value of --limit
	token  string
	format *output.Choice
}

// listFlags adds --limit, --page-token and -o.
func listFlags(cmd *cobra.Command, what string, limit, most int32) *listing {
	l := &listing{most: most}
	cmd.Flags().Int32Var(&l.limit, "limit", limit, fmt.Sprintf("maximum number of %s to list, up to %d", what, most))
	cmd.Flags().StringVar(&l.token, "page-token", "", "nextPageToken of the previous page")
	l.format = output.FormatFlag(cmd, output.Text, output.JSON, output.JSONL)
	return l
}

// check returns an error for a limit that the gateway would refuse.
func (l *listing) check() error {
	if l.limit < 1 || l.limit > l.most {
		return exit.Usagef("--limit %d: it must be 1 to %d", l.limit, l.most)
	}
	return nil
}

// listPage is the reply to a request for one page.
type listPage[M proto.Message] interface {
	GetItems() []M
	GetNextPageToken() string
}

// listCommand describes a command that prints one page of a list.
type listCommand[M proto.Message] struct {
	use, short string
	// args checks the arguments, or is nil if the command takes none.
	args cobra.PositionalArgs
	// what names the items in the usage of --limit; limit is its default and most its highest value.
	what        string
	limit, most int32
	// fetch requests a page of at most size items that begins at token.
	fetch func(ctx context.Context, a *client.Client, args []string, size int32, token string) (listPage[M], error)
	// item returns an item as JSON prints it. It is nil if JSON prints the whole message.
	item func(M) (any, error)
	// rows returns a page as a table for people; the first row is the header.
	rows func([]M) [][]string
	// keep is the number of leading columns that a narrow terminal shows besides the last, or 0 for 2.
	keep int
}

// command returns the command without the flags that select items.
func (l listCommand[M]) command(sys *system) *cobra.Command {
	cmd := &cobra.Command{Use: l.use, Short: l.short, Args: l.args}
	if cmd.Args == nil {
		cmd.Args = arguments(0, 0, "")
	}
	clientFlag(cmd)
	list := listFlags(cmd, l.what, l.limit, l.most)
	cmd.RunE = onGateway(sys, func(ctx context.Context, a *client.Client, args []string) error {
		if err := list.check(); err != nil {
			return err
		}
		page, err := l.fetch(ctx, a, args, list.limit, list.token)
		if err != nil {
			return err
		}
		if w, ok := page.(interface{ GetWarnings() []string }); ok {
			for _, warning := range w.GetWarnings() {
				fmt.Fprintf(sys.screen, "warning: %s\n", words.OneLine(warning))
			}
		}
		return l.write(sys, list.format.Value, page)
	})
	return cmd
}

// write writes a page as one document, as one line per item, or as a table for people.
func (l listCommand[M]) write(sys *system, format string, page listPage[M]) error {
	if format == output.Text {
		if err := output.WriteTable(sys.stdout, output.Fit(l.rows(page.GetItems()), sys.dataWidth(), cmp.Or(l.keep, 2))); err != nil {
			return err
		}
		if counted, ok := page.(interface{ GetTotals() map[string]int32 }); ok && len(counted.GetTotals()) > 0 {
			fmt.Fprintf(sys.stdout, "\nin all: %s\n", totalsText(counted.GetTotals()))
		}
		if next := page.GetNextPageToken(); next != "" {
			fmt.Fprintf(sys.screen, "there are more: --page-token %s\n", next)
		}
		return nil
	}
	items := make([]any, 0, len(page.GetItems())) // never null in JSON
	for _, m := range page.GetItems() {
		item, err := l.itemOf(m)
		if err != nil {
			return err
		}
		items = append(items, item)
	}
	if format == output.JSON {
		var total *int32
		var totals map[string]int32
		switch counted := any(page).(type) {
		case *v1.ListRunsResponse:
			total, totals = counted.Total, counted.GetTotals()
		case interface{ GetTotal() int32 }:
			total = new(counted.GetTotal())
		}
		after := ""
		if readTo, ok := page.(interface{ GetAfter() string }); ok {
			after = readTo.GetAfter()
		}
		return output.WriteJSON(sys.stdout, struct {
			Items         []any            `json:"items"`
			NextPageToken string           `json:"nextPageToken"`
			Total         *int32           `json:"total,omitempty"`  // for counted lists: the items of all pages
			Totals        map[string]int32 `json:"totals,omitempty"` // for runs with --totals: by state
			After         string           `json:"after,omitempty"`  // for events: the position read up to
		}{items, page.GetNextPageToken(), total, totals, after})
	}
	for _, item := range items {
		if err := output.WriteLine(sys.stdout, item); err != nil {
			return err
		}
	}
	return nil
}

func (l listCommand[M]) itemOf(m M) (any, error) {
	if l.item != nil {
		return l.item(m)
	}
	text, err := output.CompactJSON(m)
	return json.RawMessage(text), err
}

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
)

// listing are the flags of a command that lists something page by page.
type listing struct {
	limit  int32
	most   int32 // that --limit may be
	token  string
	output *choice
}

// listFlags adds --limit, --page-token and -o.
func listFlags(cmd *cobra.Command, what string, limit, most int32) *listing {
	l := &listing{most: most}
	cmd.Flags().Int32Var(&l.limit, "limit", limit, fmt.Sprintf("most %s to list, up to %d", what, most))
	cmd.Flags().StringVar(&l.token, "page-token", "", "go on from the nextPageToken of the list before")
	l.output = outputFlag(cmd, formatText, formatJSON, formatJSONL)
	return l
}

// check refuses a limit that the gateway would refuse.
func (l *listing) check() error {
	if l.limit < 1 || l.limit > l.most {
		return usageError("--limit %d: it must be 1 to %d", l.limit, l.most)
	}
	return nil
}

// writeList writes a page of a list: as one document, a line an item, or a table
// for people. next is the token of the next page.
func writeList[Item any](sys *system, l *listing, items []Item, next string, table func(io.Writer) error) error {
	switch l.output.value {
	case formatJSON:
		if items == nil {
			items = []Item{} // never null
		}
		return writeJSON(sys.stdout, struct {
			Items         []Item `json:"items"`
			NextPageToken string `json:"nextPageToken"`
		}{items, next})
	case formatJSONL:
		for _, item := range items {
			if err := writeLine(sys.stdout, item); err != nil {
				return err
			}
		}
		return nil
	}
	if err := table(sys.stdout); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(sys.screen, "there are more: --page-token %s\n", next)
	}
	return nil
}

// messages are messages in their JSON form with zero values printed; never nil.
func messages[M proto.Message](all []M) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, 0, len(all))
	for _, m := range all {
		text, err := compactJSON(m)
		if err != nil {
			return nil, err
		}
		items = append(items, text)
	}
	return items, nil
}

// writeMessage writes a message as one indented document, zero values printed.
func writeMessage(w io.Writer, m proto.Message) error {
	text, err := compactJSON(m)
	if err != nil {
		return err
	}
	return writeJSON(w, json.RawMessage(text))
}

// writeTable writes rows in columns for people; the first is the header.
func writeTable(w io.Writer, rows [][]string) error {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

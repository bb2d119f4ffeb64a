package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"switchyard/cli/client"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
)

func newAudit(sys *system) *cobra.Command {
	req := &v1.ListAuditEntriesRequest{}
	var since, until string
	cmd := listCommand[*v1.AuditEntry]{
		use: "audit", short: "List who did what and what was refused, newest first",
		what: "entries", limit: 100, most: 1000, keep: auditKeep,
		fetch: func(ctx context.Context, a *client.Client, _ []string, size int32, token string) (listPage[*v1.AuditEntry], error) {
			var err error
			if since != "" {
				if req.Since, err = parseTime("since", since, sys.now()); err != nil {
					return nil, err
				}
			}
			if until != "" {
				if req.Until, err = parseTime("until", until, sys.now()); err != nil {
					return nil, err
				}
			}
			return a.AuditEntries(ctx, req, size, token)
		},
		rows: func(entries []*v1.AuditEntry) [][]string { return auditRows(sys, entries) },
	}.command(sys)
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "", "only entries newer than a duration such as 10m, or since a time such as 2026-03-14T15:09:26Z")
	flags.StringVar(&until, "until", "", "only entries older than a duration such as 10m, or before a time")
	flags.StringVar(&req.Who, "who", "", "only calls by this name")
	flags.StringVar(&req.What, "what", "", "only calls whose name contains this, such as SubmitRun")
	flags.StringVar(&req.Object, "object", "", "only calls about this run, node, workflow, secret, ...")
	flags.StringVar(&req.Result, "result", "", "only calls with this result: ok, refused, failed, or a code such as not_found")
	return cmd
}

// auditKeep is the number of leading columns that a narrow terminal keeps besides the last one.
const auditKeep = 4

func auditRows(sys *system, entries []*v1.AuditEntry) [][]string {
	rows := [][]string{{"AT", "WHO", "WHAT", "RESULT", "FROM", "OBJECT"}}
	for _, e := range entries {
		rows = append(rows, []string{
			sys.formatTime(e.GetAt()), words.OneLine(e.GetBy()), actionText(e), resultText(e), words.OneLine(e.GetFrom()), objectsText(e),
		})
	}
	return rows
}

// actionText returns the name of a call without its service, or the method and path of a plain HTTP request.
func actionText(e *v1.AuditEntry) string {
	service, call, found := strings.Cut(e.GetAction(), "/")
	if found && !strings.ContainsFunc(service, unicode.IsSpace) {
		return words.OneLine(call)
	}
	return words.OneLine(e.GetAction())
}

// resultText returns the result of a call and the number of similar calls without an entry of their own. For a session
// it returns the duration and the bytes that the client sent and received.
func resultText(e *v1.AuditEntry) string {
	if e.GetLasted() != nil {
		return fmt.Sprintf("%s (%s, %d B in, %d B out)", e.GetResult(), e.GetLasted().AsDuration().Round(10*time.Millisecond), e.GetSentBytes(), e.GetReceivedBytes())
	}
	if e.GetOmitted() == 0 {
		return e.GetResult()
	}
	return fmt.Sprintf("%s (+%d)", e.GetResult(), e.GetOmitted())
}

// objectsText returns the objects of a call in one line.
func objectsText(e *v1.AuditEntry) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(e.GetObjects())) {
		parts = append(parts, kind+" "+words.OneLine(e.GetObjects()[kind]))
	}
	return strings.Join(parts, ", ")
}

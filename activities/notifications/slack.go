package notifications

import (
	"cmp"
	"context"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// The limits of Block Kit, in characters: https://docs.slack.dev/reference/block-kit/blocks.
const (
	slackHeader = 150
	slackText   = 3000
	slackFields = 10
)

type slackDocument struct {
	Text   string       `json:"text"` // for notifications of clients, which do not show blocks
	Blocks []slackBlock `json:"blocks"`
}

type slackBlock struct {
	Type   string          `json:"type"`
	Text   *slackElement   `json:"text,omitempty"`
	Fields []*slackElement `json:"fields,omitempty"`
}

type slackElement struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// slack sends a message to an incoming webhook of Slack.
func (t *try) slack(ctx context.Context, to *v1.SlackTarget, notice *historyv1.Notice, message *historyv1.NotificationMessage) (string, error) {
	return t.postJSON(ctx, to.GetUrl(), message, newSlackDocument(notice, message))
}

// newSlackDocument returns the body of a message.
func newSlackDocument(notice *historyv1.Notice, message *historyv1.NotificationMessage) slackDocument {
	d := slackDocument{Text: slackEscape(message.GetTitle())}
	section := func(markdown string) {
		d.Blocks = append(d.Blocks, slackBlock{Type: "section", Text: &slackElement{"mrkdwn", markdown}})
	}
	d.Blocks = append(d.Blocks, slackBlock{Type: "header", Text: &slackElement{"plain_text", cut(message.GetTitle(), slackHeader)}})
	if message.GetText() != "" {
		section(cut(slackEscape(message.GetText()), slackText))
	}
	fields := slackBlock{Type: "section"}
	for _, f := range facts(notice) {
		if len(fields.Fields) < slackFields {
			fields.Fields = append(fields.Fields, &slackElement{"mrkdwn", "*" + f.label + "*\n" + cut(slackEscape(f.value), 1900)})
		}
	}
	if len(fields.Fields) > 0 {
		d.Blocks = append(d.Blocks, fields)
	}
	for _, task := range notice.GetFailed() {
		section("*" + cut(slackEscape(failedTitle(task)), slackText-10) + "*")
		if len(task.GetLines()) > 0 {
			section("```" + cutFront(slackEscape(strings.ReplaceAll(strings.Join(task.GetLines(), "\n"), "```", "'''")), slackText-10) + "```")
		}
	}
	if text := omitted(notice); text != "" {
		section(text)
	}
	if notice.GetUrl() != "" {
		section("<" + notice.GetUrl() + "|" + slackEscape(cmp.Or(notice.GetRun(), notice.GetWorkflow())) + ">")
	}
	return d
}

// slackEscape escapes the three characters that Slack gives a meaning.
func slackEscape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

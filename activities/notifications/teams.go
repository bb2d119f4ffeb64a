package notifications

import (
	"context"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// teamsBytes is the largest message of Teams, with some room:
// https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook.
const teamsBytes = 25 << 10

// The most characters of the message's own text and of a log in a card. A card that is too large has less of the logs.
const (
	teamsText = 4000
	teamsLog  = 4000
)

type teamsDocument struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

type teamsAttachment struct {
	ContentType string       `json:"contentType"`
	Content     adaptiveCard `json:"content"`
}

// adaptiveCard is a card of https://adaptivecards.io in version 1.4.
type adaptiveCard struct {
	Schema  string       `json:"$schema"`
	Type    string       `json:"type"`
	Version string       `json:"version"`
	Body    []cardItem   `json:"body"`
	Actions []cardAction `json:"actions,omitempty"`
}

type cardItem struct {
	Type     string     `json:"type"`
	Text     string     `json:"text,omitempty"`
	Size     string     `json:"size,omitempty"`
	Weight   string     `json:"weight,omitempty"`
	FontType string     `json:"fontType,omitempty"`
	Wrap     bool       `json:"wrap,omitempty"`
	Facts    []cardFact `json:"facts,omitempty"`
}

type cardFact struct {
	Title string `json:"title"`
	Value string `json:"value"`
}

type cardAction struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// teams sends a message to an incoming webhook of Microsoft Teams.
func (t *try) teams(ctx context.Context, to *v1.TeamsTarget, notice *historyv1.Notice, message *historyv1.NotificationMessage) (string, error) {
	log := teamsLog
	document := newTeamsDocument(notice, message, log)
	for ; log > 100; document = newTeamsDocument(notice, message, log) {
		if body, err := encode(document); err != nil || len(body) <= teamsBytes {
			break
		}
		log /= 2
	}
	return t.postJSON(ctx, to.GetUrl(), message, document)
}

// newTeamsDocument returns the body of a message with at most the given number of characters of each log.
func newTeamsDocument(notice *historyv1.Notice, message *historyv1.NotificationMessage, log int) teamsDocument {
	card := adaptiveCard{Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Type: "AdaptiveCard", Version: "1.4"}
	add := func(item cardItem) { card.Body = append(card.Body, item) }
	add(cardItem{Type: "TextBlock", Text: cut(teamsEscape(message.GetTitle()), 500), Size: "large", Weight: "bolder", Wrap: true})
	if message.GetText() != "" {
		add(cardItem{Type: "TextBlock", Text: cut(teamsEscape(message.GetText()), teamsText), Wrap: true})
	}
	table := cardItem{Type: "FactSet"}
	for _, f := range facts(notice) {
		table.Facts = append(table.Facts, cardFact{f.label, cut(teamsEscape(f.value), 500)})
	}
	if len(table.Facts) > 0 {
		add(table)
	}
	for _, task := range notice.GetFailed() {
		add(cardItem{Type: "TextBlock", Text: cut(teamsEscape(failedTitle(task)), 500), Weight: "bolder", Wrap: true})
		if len(task.GetLines()) > 0 {
			// A blank line keeps the line break in Markdown.
			add(cardItem{Type: "TextBlock", Text: cutFront(teamsEscape(strings.Join(task.GetLines(), "\n\n")), log), FontType: "monospace", Wrap: true})
		}
	}
	if text := omitted(notice); text != "" {
		add(cardItem{Type: "TextBlock", Text: text, Wrap: true})
	}
	if notice.GetUrl() != "" {
		card.Actions = []cardAction{{"Action.OpenUrl", "Open the page", notice.GetUrl()}}
	}
	return teamsDocument{Type: "message", Attachments: []teamsAttachment{{"application/vnd.microsoft.card.adaptive", card}}}
}

// teamsMarks escapes the characters by which Markdown makes links, emphasis and code.
var teamsMarks = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `<`, `\<`, `>`, `\>`, `*`, `\*`, `_`, `\_`, `~`, `\~`, `#`, `\#`, "`", "\\`")

// teamsEscape escapes a text, which may come from the output of a task, so that a card shows it as it is.
func teamsEscape(text string) string { return teamsMarks.Replace(text) }

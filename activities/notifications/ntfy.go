package notifications

import (
	"context"
	"mime"
	"net/http"
	"strings"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// ntfyText is the largest message of ntfy, in bytes: https://docs.ntfy.sh/publish/#limitations.
const ntfyText = 4000

// ntfy publishes a message to a topic of an ntfy server.
func (t *try) ntfy(ctx context.Context, to *v1.NtfyTarget, notice *historyv1.Notice, message *historyv1.NotificationMessage) (string, error) {
	url, err := t.reveal(ctx, to.GetUrl())
	if err != nil {
		return "", err
	}
	header := http.Header{
		"Content-Type": {"text/plain; charset=utf-8"}, idempotencyHeader: {message.GetKey()},
		"Title": {mime.BEncoding.Encode("utf-8", cut(message.GetTitle(), 200))}, "Priority": {"default"},
	}
	if message.GetEvent() == v1.NotifyFailed {
		header.Set("Priority", "high")
	}
	if notice.GetUrl() != "" {
		header.Set("Click", notice.GetUrl())
	}
	if to.GetToken() != "" {
		token, err := t.reveal(ctx, to.GetToken())
		if err != nil {
			return "", err
		}
		header.Set("Authorization", "Bearer "+token)
	}
	text := plainText(notice, message)
	if len(text) > ntfyText {
		text = strings.ToValidUTF8(text[:ntfyText-3], "") + "..."
	}
	return t.post(ctx, url, header, []byte(text))
}

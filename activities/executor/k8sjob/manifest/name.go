package manifest

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"switchyard/activities/executor"
)

// namePrefix is the prefix of all object names.
const namePrefix = "sy-"

// encoding encodes hashes in letters and digits that are valid in names.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hashOf returns a hash of some values as n characters of 5 bits each.
func hashOf(n int, values ...string) string {
	text, _ := json.Marshal(values) // strings always encode, and JSON keeps their boundaries
	sum := sha256.Sum256(text)
	return encoding.EncodeToString(sum[:])[:n]
}

// Name returns the name of the objects of an attempt, which is a DNS label. The name depends on neither the node nor
// the dispatch, and different attempts have different names.
func Name(id executor.Identity) string {
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	hash := hashOf(26, id.Run, id.Chain, number(id.Generation), number(id.PutBacks), id.Task, number(id.Index), number(id.Attempt))
	words := id.Run + "-" + id.Task
	if id.Index >= 0 {
		words += "-" + number(id.Index)
	}
	return namePrefix + readable(strings.ToLower(words), validation.DNS1123LabelMaxLength-len(namePrefix)-len(hash)-1) + "-" + hash
}

// readable returns at most n characters of a text, with '-' in place of characters that names cannot contain.
func readable(text string, n int) string {
	var b strings.Builder
	for _, r := range text {
		isPlain := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		switch {
		case isPlain:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == n {
			break
		}
	}
	if text := strings.TrimRight(b.String(), "-"); text != "" {
		return text
	}
	return "x"
}

// LabelValue returns a text as the value of a label: unchanged if it is valid, else its start and a hash.
func LabelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	hash := hashOf(16, text)
	return readable(text, validation.LabelValueMaxLength-len(hash)-1) + "-" + hash
}
